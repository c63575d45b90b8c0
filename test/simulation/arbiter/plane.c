/* The data plane: what a member shows reaches all that are in its generation. See job.h. */
#include "job.h"

#include <string.h>

bool plane_has(const struct trainer *t, uint64_t incarnation)
{
    for (uint32_t i = 0; i < t->member_count; i++) {
        if (t->members[i] == incarnation) {
            return true;
        }
    }
    return false;
}

bool plane_joins(const struct process *a, const struct process *b)
{
    return process_lives(a) && process_lives(b) && !a->leases && !b->leases &&
           a->trainer.core.generation == b->trainer.core.generation &&
           plane_has(&a->trainer, b->incarnation) && plane_has(&b->trainer, a->incarnation);
}

static void copy_shown(const struct process *from, struct process *to)
{
    size_t at = from->incarnation - 1;
    to->trainer.entered[at] = from->trainer.entered[at];
    to->trainer.barrier[at] = from->trainer.barrier[at];
}

void plane_show(struct job *job, const struct process *p)
{
    for (size_t i = 0; i < job->life_count; i++) {
        if (plane_joins(p, &job->lives[i])) {
            copy_shown(p, &job->lives[i]);
        }
    }
}

bool plane_all_have(const struct trainer *t, const uint64_t newest[LIVES_MAX])
{
    for (uint32_t i = 0; i < t->member_count; i++) {
        if (newest[t->members[i] - 1] <= t->core.version) {
            return false;
        }
    }
    return true;
}

bool plane_any_entered(const struct trainer *t)
{
    for (uint32_t i = 0; i < t->member_count; i++) {
        if (t->entered[t->members[i] - 1] > t->core.version) {
            return true;
        }
    }
    return false;
}

void plane_gather(struct job *job, struct process *p)
{
    memset(p->trainer.entered, 0, sizeof p->trainer.entered);
    memset(p->trainer.barrier, 0, sizeof p->trainer.barrier);
    for (size_t i = 0; i < job->life_count; i++) {
        if (&job->lives[i] != p && plane_joins(p, &job->lives[i])) {
            copy_shown(&job->lives[i], p);
            if (job->lives[i].trainer.aside_count != p->trainer.aside_count) {
                job_break(job, "members of a generation leave out the same records");
            }
        }
    }
}
