/* A coordinator that is lost at a record of its journal (MUSTER_TEST_LOSE). "KIND N before": it is
 * lost with its host, whose disk does not have the N-th record of this kind (enum entry_kind) nor
 * any later record: they are not written, and the coordinator is killed when it asks for them to be
 * durable. "KIND N after": it is killed when they are durable and nothing is announced yet.
 *
 * EARLY_GRANTS is planted here for shards by leases: no worker asks for grants of another kind. */
#include "commit/planted.h"
#include "coordinator/arbiter/internal.h"
#include "coordinator/journal/journal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __real_journal_append(struct journal *journal, uint32_t kind, const void *bytes, size_t count,
                          struct muster_err *err);
int __wrap_journal_append(struct journal *journal, uint32_t kind, const void *bytes, size_t count,
                          struct muster_err *err);
int __real_journal_sync(struct journal *journal, struct muster_err *err);
int __wrap_journal_sync(struct journal *journal, struct muster_err *err);
void __real_leases_settle(struct arbiter *a);
void __wrap_leases_settle(struct arbiter *a);

static bool lost, found;

static void look_at(uint32_t kind)
{
    static unsigned seen;
    unsigned meant, number;
    char when[8];
    const char *lose = getenv("MUSTER_TEST_LOSE");
    if (lose && sscanf(lose, "%u %u %7s", &meant, &number, when) == 3 && kind == meant &&
        ++seen == number) {
        found = true;
        lost = strcmp(when, "before") == 0;
    }
}

void __wrap_leases_settle(struct arbiter *a)
{
    size_t away = a->leases.away;
    a->leases.away = PLANTED(EARLY_GRANTS) ? 0 : away;
    __real_leases_settle(a);
    a->leases.away = away;
}

int __wrap_journal_append(struct journal *journal, uint32_t kind, const void *bytes, size_t count,
                          struct muster_err *err)
{
    look_at(kind);
    return lost ? 0 : __real_journal_append(journal, kind, bytes, count, err);
}

int __wrap_journal_sync(struct journal *journal, struct muster_err *err)
{
    int r = lost ? 0 : __real_journal_sync(journal, err);
    if (found) {
        (void)kill(getpid(), SIGKILL);
    }
    return r;
}
