/* The names of checkpoints: "LINEAGE-VERSION-CHECKSUM.checkpoint", LINEAGE and CHECKSUM as 16
 * hexadecimal digits, VERSION as 12 digits or more. A file of another content has another name.
 * While it is written, the writer's incarnation and ".part" follow.
 *
 * Layer: worker (part of libmuster). Pure. Memory: the caller's. Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CHECKPOINT_NAME_BYTES = 96 };

struct checkpoint_name {
    uint64_t lineage;
    uint64_t version;
    uint64_t checksum; /* the first bytes of its digest */
};

void checkpoint_name_write(const struct checkpoint_name *name, char ret[CHECKPOINT_NAME_BYTES]);
void checkpoint_name_write_part(const struct checkpoint_name *name, uint64_t writer,
                                char ret[CHECKPOINT_NAME_BYTES]);
/* Returns false if the text is not the name of a checkpoint. */
bool checkpoint_name_read(const char *text, struct checkpoint_name *ret, bool *ret_part);

/* The lineages of a job have their upper half in common: rendezvous/rendezvous.h. */
static inline bool checkpoint_same_job(uint64_t a, uint64_t b)
{
    return a >> 32 == b >> 32;
}
