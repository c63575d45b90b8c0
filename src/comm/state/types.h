/* Names and checks of types, operations and calls. Layer: comm; pure. */
#pragma once

#include <stdbool.h>

#include <muster/comm.h>

#include "comm/state/prepared.h"

enum types_need { TYPES_NONE, TYPES_ALL, TYPES_ROOT }; /* which ranks have a buffer */
enum types_counts { TYPES_NO_COUNTS, TYPES_OUT_COUNTS, TYPES_BOTH_COUNTS };

/* What calls of one kind need. */
struct types_kind {
    bool reduces;
    bool rooted;
    enum types_need in;
    enum types_need out;
    enum types_counts counts; /* the counts that it may be given, for blocks of different lengths */
};

/* Returns NULL if there is no such kind. */
const struct types_kind *types_find_kind(enum muster_collective kind);
bool types_has_type(enum muster_type type);
/* Returns the same as muster_type_bytes, which a program may replace; 0: there is no such type. */
size_t types_bytes(enum muster_type type);
bool types_has_op(enum muster_op op);
const char *types_kind_name(enum muster_collective kind);
/* Returns the sum of the counts; SIZE_MAX: at least this many. */
size_t types_total(const size_t *counts, int size);
/* Whether the output of rank `rank` of `size` overlaps its input. */
bool types_is_in_place(const struct prepared *call, int rank, int size);
