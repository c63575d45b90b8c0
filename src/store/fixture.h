/* What the store's tests share: a store in a folder of its own, and fast paths to make objects.
 *
 * Tests only. */
#pragma once

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/testing/test_folder.h"
#include "base/testing/test_wait.h"
#include "store/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fixture {
    char folder[TEST_FOLDER_BYTES];
    char path[80];
    struct store *store;
    struct muster_err err;
};

static inline int64_t fixture_grace_s(const char *resource, const json_t *object)
{
    return strcmp(resource, "pods") == 0 &&
                   strcmp(doc_text(object, "status.phase", ""), "Running") == 0
               ? 30
               : 0;
}

static inline void fixture_open(struct fixture *f)
{
    const struct store_options options = {
        .changes_max = 20, .events_max = 5, .grace_s = fixture_grace_s};
    int r = store_open(f->path, &options, &f->store, &f->err);
    if (r < 0) {
        print_message("%s\n", f->err.text);
    }
    assert_int_equal(r, 0);
}

static inline void fixture_init(struct fixture *f)
{
    *f = (struct fixture){0};
    test_folder_make(f->folder);
    (void)snprintf(f->path, sizeof f->path, "%s/store.db", f->folder);
    fixture_open(f);
}

static inline void fixture_done(struct fixture *f)
{
    f->store = store_close(f->store);
    test_folder_remove(f->folder);
}

/* Waits until the store's thread has done all its work. */
static inline void fixture_rest(struct store *store)
{
    for (int64_t end = 0; !checkpoint_rests(store);) {
        assert_true(test_turn(&end));
    }
}

/* Creates an object and returns its uid, which the caller frees. */
static inline char *put(struct fixture *f, const char *resource, const char *text)
{
    muster_auto(doc) json_t *object = parse(text);
    muster_auto(doc) json_t *stored = NULL;
    assert_int_equal(store_create(f->store, resource, object, &stored, &f->err), 0);
    return strdup(doc_text(stored, "metadata.uid", ""));
}

static inline struct store_key key_of(const char *resource, const char *name)
{
    return (struct store_key){resource, "default", name};
}

static inline json_t *fetch(struct fixture *f, const char *resource, const char *name)
{
    json_t *object = NULL;
    assert_int_equal(store_get(f->store, key_of(resource, name), &object, &f->err), 0);
    return object;
}

static inline bool exists(struct fixture *f, const char *resource, const char *name)
{
    muster_auto(doc) json_t *object = NULL;
    return store_get(f->store, key_of(resource, name), &object, NULL) == 0;
}

/* Returns the names of the objects that the query finds, with spaces between. */
static inline const char *names(struct fixture *f, const struct store_query *query)
{
    static char text[512];
    struct store_page page;
    assert_int_equal(store_list(f->store, query, &page, &f->err), 0);
    text[0] = '\0';
    size_t i;
    json_t *item;
    json_array_foreach (page.items, i, item) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                       doc_text(item, "metadata.name", "?"));
    }
    store_page_done(&page);
    return text;
}

#define OBJECT(name, rest) "{'metadata':{'name':'" name "','namespace':'default'}" rest "}"
