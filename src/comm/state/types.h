/* What may be said of types, operations and calls. Layer: comm; pure. */
#pragma once

#include <stdbool.h>

#include <muster/comm.h>

bool types_has_type(enum muster_type type);
bool types_has_op(enum muster_op op);
bool types_has_kind(enum muster_collective kind);
bool types_reduces(enum muster_collective kind);
/* The call has a root. */
bool types_has_peer(enum muster_collective kind);
const char *types_kind_name(enum muster_collective kind);
/* All-gatherv and all-to-allv. */
bool types_has_counts(const struct muster_call *call);
/* The call without the counts that its kind does not have, whatever the fields hold. */
struct muster_call types_own_fields(const struct muster_call *call);
/* SIZE_MAX: so many at least. */
size_t types_total(const size_t *counts, int size);
/* Of rank `rank` of `size`: its output overlaps its input. */
bool types_is_in_place(const struct muster_call *call, int rank, int size);
