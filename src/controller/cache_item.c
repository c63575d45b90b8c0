/* See cache_item.h. */
#include "controller/cache_item.h"

#include "base/doc.h"
#include "control/projection/projection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cache_item_id(enum control_resource resource, const char *namespace, const char *name,
                          char ret_id[CACHE_ID_BYTES])
{
    snprintf(ret_id, CACHE_ID_BYTES, "%c%s/%s", 'a' + (char)resource, namespace, name);
    return ret_id;
}

static const char *append(char **at, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *start = memcpy(*at, text, bytes);
    *at += bytes;
    return start;
}

struct cache_item *cache_item_new(enum control_resource resource, const char *id, const char *job,
                                  const char *uid, const char *version, const char *document)
{
    const char *texts[] = {id, job, uid, version, document};
    size_t bytes = sizeof(struct cache_item);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bytes += strlen(texts[i]) + 1;
    }
    struct cache_item *item = calloc(1, bytes);
    if (item) {
        char *at = item->texts;
        item->resource = resource;
        item->size_bytes = bytes;
        item->id = append(&at, id);
        item->job = append(&at, job);
        item->uid = append(&at, uid);
        item->version = append(&at, version);
        item->document = append(&at, document);
    }
    return item;
}

char *cache_item_document(enum control_resource resource, const json_t *object)
{
    if (resource == CONTROL_JOB) {
        return doc_print(object);
    }
    json_t *own = resource == CONTROL_POD          ? control_project_pod(object)
                  : resource >= CONTROL_AUTOSCALER ? control_project_companion(object)
                                                   : control_project_object(object);
    char *text = own ? doc_print(own) : NULL;
    json_decref(own);
    return text;
}

json_t *cache_item_parse(const struct cache_item *item)
{
    json_t *doc = NULL;
    return doc_parse(item->document, strlen(item->document), &doc, NULL) == 0 ? doc : NULL;
}
