/* See sources.h. */
#include "cli/submit/sources.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <string.h>

struct source {
    char *path;
    struct job_file file;
};

struct sources {
    struct source *list;
    size_t count;
};

int sources_keep(struct sources **list, const char *path, struct job_file *file)
{
    struct sources *all = *list ? *list : calloc(1, sizeof *all);
    if (!all) {
        return MUSTER_ENOMEM;
    }
    *list = all;
    struct source *more = reallocarray(all->list, all->count + 1, sizeof *more);
    char *copy = strdup(strcmp(path, "-") == 0 ? "standard input" : path);
    all->list = more ? more : all->list;
    if (!more || !copy) {
        free(copy);
        return MUSTER_ENOMEM;
    }
    all->list[all->count++] = (struct source){copy, *file};
    *file = (struct job_file){0};
    return 0;
}

struct sources *sources_free(struct sources *list)
{
    for (size_t i = 0; list && i < list->count; i++) {
        free(list->list[i].path);
        job_file_done(&list->list[i].file);
    }
    if (list) {
        free(list->list);
        free(list);
    }
    return NULL;
}

static bool same(const json_t *a, const json_t *b, const char *field)
{
    return strcmp(doc_text(a, field, ""), doc_text(b, field, "")) == 0;
}

/* How well an object of a file fits: its namespace may have been filled in, or replaced by
 * --namespace, after it was read. */
enum fit { NONE, OTHER_NAMESPACE, NO_NAMESPACE, EXACT };

static enum fit compare(const json_t *of_file, const json_t *object)
{
    if (!same(of_file, object, "kind") || !same(of_file, object, "metadata.name")) {
        return NONE;
    }
    if (same(of_file, object, "metadata.namespace")) {
        return EXACT;
    }
    return *doc_text(of_file, "metadata.namespace", "") ? OTHER_NAMESPACE : NO_NAMESPACE;
}

const char *sources_find(const struct sources *list, const json_t *object, const char *field,
                         struct yaml_place *ret_place)
{
    const char *path = NULL;
    enum fit best = NONE;
    for (size_t i = 0; list && i < list->count; i++) {
        const struct job_file *file = &list->list[i].file;
        for (size_t j = 0; j < file->object_count; j++) {
            enum fit fit = compare(file->objects[j], object);
            if (fit > best) {
                best = fit;
                path = list->list[i].path;
                *ret_place = yaml_place_of(&file->sources[j], field);
            }
        }
    }
    return path;
}
