/* See losses.h. */
#include "coordinator/arbiter/losses.h"

#include "coordinator/arbiter/entry.h"
#include "wire/incarnation.h"

#include <string.h>

/* A record has the loss's number among all, the incarnation, the reason, and the name, padded with
 * zeroes. */
enum { NUMBER_BYTES = 8, RECORD_BYTES = 3 * NUMBER_BYTES + ARBITER_NAME_BYTES };

bool losses_counts(enum rendezvous_reason reason)
{
    return reason != RENDEZVOUS_DONE && reason != RENDEZVOUS_LEFT;
}

void losses_add(struct losses *losses, const struct loss *loss)
{
    if (losses->kept == LOSSES_KEPT) {
        memmove(losses->list, losses->list + 1, (LOSSES_KEPT - 1) * sizeof *losses->list);
        losses->kept--;
    }
    losses->list[losses->kept++] = *loss;
    losses->count++;
}

bool losses_has_process(const struct losses *losses, uint64_t incarnation)
{
    size_t i = losses->kept;
    while (i > 0 && !incarnation_is_beside(losses->list[i - 1].incarnation, incarnation)) {
        i--;
    }
    return i > 0;
}

const char *losses_name(const struct losses *losses, uint64_t incarnation)
{
    for (size_t i = losses->kept; i > 0; i--) {
        if (losses->list[i - 1].incarnation == incarnation) {
            return losses->list[i - 1].name;
        }
    }
    return "";
}

void losses_write(const struct losses *losses, size_t i, struct buf *ret)
{
    const struct loss *loss = &losses->list[i];
    entry_write_number(losses->count - losses->kept + i + 1, ret);
    entry_write_number(loss->incarnation, ret);
    entry_write_number(loss->reason, ret);
    buf_add(ret, loss->name, sizeof loss->name);
}

/* The first loss of a snapshot says how many were before it. */
int losses_read(struct losses *losses, const uint8_t *bytes, size_t count, struct muster_err *err)
{
    uint64_t number = count == RECORD_BYTES ? entry_read_number(bytes) : 0;
    uint64_t reason = number > 0 ? entry_read_number(bytes + 2 * NUMBER_BYTES) : UINT64_MAX;
    const char *name = (const char *)bytes + 3 * NUMBER_BYTES;
    if (reason > RENDEZVOUS_DIED || number <= losses->count ||
        !memchr(name, 0, ARBITER_NAME_BYTES)) {
        return muster_fail(err, MUSTER_EDATA, "a record of the journal is no loss");
    }
    struct loss loss = {.incarnation = entry_read_number(bytes + NUMBER_BYTES),
                        .reason = (enum rendezvous_reason)reason};
    memcpy(loss.name, name, sizeof loss.name);
    losses->count = number - 1;
    losses_add(losses, &loss);
    return 0;
}
