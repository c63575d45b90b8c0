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

const char *sources_place(const struct sources *list, const json_t *object, const char *field,
                          struct yaml_place *ret_place)
{
    for (size_t i = 0; list && i < list->count; i++) {
        const struct job_file *file = &list->list[i].file;
        for (size_t j = 0; j < file->object_count; j++) {
            if (same(file->objects[j], object, "kind") &&
                same(file->objects[j], object, "metadata.name")) {
                *ret_place = yaml_place_of(&file->sources[j], field);
                return list->list[i].path;
            }
        }
    }
    return NULL;
}
