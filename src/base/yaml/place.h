/* Where each value of a document stands in the text.
 *
 * Layer: base; pure. Used by load.c and tree.c only. Ownership: new/free.
 */
#pragma once

#include "base/yaml/yaml.h"

enum { YAML_NO_PLACE = -1, YAML_ROOT_PLACE = 0 };

/* Returns places that have only the root (place 1:1), or NULL when out of memory. */
struct yaml_places *yaml_places_new(void);
struct yaml_places *yaml_places_free(struct yaml_places *places);

/* Adds a value under `parent`: with a key in a mapping, or as the next element of a list if key is
 * NULL. Returns its id, or YAML_NO_PLACE when out of memory or when parent is YAML_NO_PLACE. */
int yaml_places_add(struct yaml_places *places, int parent, const char *key,
                    struct yaml_place place);

/* Returns the value under `parent` that has this key, or YAML_NO_PLACE if there is none. */
int yaml_places_find(const struct yaml_places *places, int parent, const char *key);

/* Sets the place where the document starts. */
void yaml_places_set_root(struct yaml_places *places, struct yaml_place place);

struct yaml_place yaml_places_get(const struct yaml_places *places, int id);

/* Appends the field path of `id`. */
void yaml_places_path(const struct yaml_places *places, int id, struct buf *out);
