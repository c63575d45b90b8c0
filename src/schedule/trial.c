/* See trial.h. */
#include "schedule/trial.h"

#include <assert.h>
#include <stdbool.h>

enum { RISE = 32 };

static int faster(const struct schedule_trial *trial)
{
    return trial->ns[1] < trial->ns[0];
}

int schedule_trial_choose(const struct schedule_trial *trial)
{
    for (int way = 0; way < 2; way++) {
        if (trial->counts[way] < SCHEDULE_TRIAL_EACH) {
            return way;
        }
    }
    return trial->left > 0 ? trial->tried : faster(trial);
}

/* A rank that comes late makes a call long in either way. So the shortest time counts, and it is
 * forgotten slowly. */
static void take(struct schedule_trial *trial, int way, uint64_t ns)
{
    uint64_t most = trial->ns[way] + trial->ns[way] / RISE;
    bool taken = trial->counts[way] == 0 || ns < most || ns == SCHEDULE_TRIAL_FOR_EVER;
    trial->ns[way] = taken ? ns : most;
    trial->counts[way]++;
}

void schedule_trial_note(struct schedule_trial *trial, int way, uint64_t ns)
{
    assert(way == 0 || way == 1);
    take(trial, way, ns);
    if (ns == SCHEDULE_TRIAL_FOR_EVER || trial->left > 0) {
        trial->left = ns == SCHEDULE_TRIAL_FOR_EVER ? 0 : trial->left - 1;
        trial->calls = 0;
    } else if (++trial->calls >= SCHEDULE_TRIAL_AGAIN) {
        trial->left = SCHEDULE_TRIAL_EACH;
        trial->tried = !faster(trial);
    }
}
