/* The lost workers: how many in all, and the last ones by name and reason. They are kept in the
 * journal, because people ask at the end, whatever has happened to the coordinator meanwhile.
 *
 * Layer: program (coordinator). Pure. Memory: the caller's. Thread: one.
 */
#pragma once

#include "base/buf.h"
#include "rendezvous/rendezvous.h"

#include <muster/err.h>

enum { LOSSES_KEPT = 64, ARBITER_NAME_BYTES = 64 };

struct loss {
    uint64_t incarnation;
    enum rendezvous_reason reason;
    char name[ARBITER_NAME_BYTES]; /* of its pod; "" if not known */
};

struct losses {
    uint64_t count; /* number of all losses */
    struct loss list[LOSSES_KEPT];
    size_t kept; /* number of the last losses, which are kept, the oldest first */
};

/* A worker that left by its own wish, or has ended well, is not lost. */
bool losses_counts(enum rendezvous_reason reason);

void losses_add(struct losses *losses, const struct loss *loss);

/* Whether the process is among the kept losses with another incarnation: it trained and also worked
 * by leases. */
bool losses_has_process(const struct losses *losses, uint64_t incarnation);

/* Returns "" if the process is not among the kept losses. */
const char *losses_name(const struct losses *losses, uint64_t incarnation);

/* Writes the i-th kept loss as a record of the journal. */
void losses_write(const struct losses *losses, size_t i, struct buf *ret);
/* Reads the next loss. MUSTER_EDATA: the bytes are not valid. */
int losses_read(struct losses *losses, const uint8_t *bytes, size_t count, struct muster_err *err);
