/* Collectives of several hosts with several ranks each: runs the stages of schedule/hierarchy.h.
 * While one chunk is exchanged with the ranks of this host, another is exchanged between the
 * hosts. A slot ends when both are complete.
 *
 * 16-bit floats use the flat exchange, because their sums must be rounded once, at the end, and
 * not once for each host.
 *
 * Layer: comm. Memory: the lane's struct hierarchy, made with the communicator, since a lane runs
 * one call at a time. Thread: the holder of the lane.
 */
#include "comm/algorithm/hierarchy.h"

#include "comm/algorithm/exchange.h"
#include "comm/algorithm/way.h"
#include "comm/state/call_log.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <stdlib.h>

enum { PART_BYTES = 1024 * 1024, LARGEST_UNIT = 8 };

/* Runs the stages of one slot within a kind of team. */
struct runner {
    const struct team *team;
    const enum schedule_phase *phases;
    int num_phases;
    size_t capacity;
    int phase; /* index of the current phase in phases */
    int k;     /* current stage of the phase */
    bool loaded;
    struct schedule_stage stage;
    struct exchange exchange;
};

struct hierarchy {
    struct schedule_hierarchy plan;
    size_t slot;
    struct runner here;
    struct runner across;
    char *work;
};

/* DOWN comes first, because its chunk has been under way for longer. */
static const enum schedule_phase phases_here[] = {SCHEDULE_DOWN, SCHEDULE_UP};
static const enum schedule_phase phases_across[] = {SCHEDULE_ACROSS};

int hierarchy_init(struct muster_comm *comm)
{
    for (int l = 0; l < BOARD_LANES && schedule_hosts_mixed(comm->hosts); l++) {
        struct hierarchy *h = calloc(1, sizeof *h);
        comm->lanes[l].hierarchy = h;
        if (!h) {
            return MUSTER_ENOMEM;
        }
        size_t here = l == LANE_SIDE ? SIDE_BYTES : comm->capacity;
        size_t wire = l == LANE_SIDE ? SIDE_BYTES : link_capacity(comm);
        h->here = (struct runner){
            .team = &comm->here, .phases = phases_here, .num_phases = 2, .capacity = here};
        h->across = (struct runner){
            .team = &comm->across, .phases = phases_across, .num_phases = 1, .capacity = wire};
        /* Only small all-gathers run beside the hierarchy; they need no memory to work in. */
        h->plan = (struct schedule_hierarchy){.part = PART_BYTES / LARGEST_UNIT};
        h->work = l == LANE_MAIN ? malloc(schedule_hierarchy_work(&h->plan) * LARGEST_UNIT) : NULL;
        if (l == LANE_MAIN && !h->work) {
            return MUSTER_ENOMEM;
        }
    }
    return 0;
}

void hierarchy_free(struct muster_comm *comm)
{
    for (int l = 0; l < BOARD_LANES; l++) {
        if (comm->lanes[l].hierarchy) {
            free(comm->lanes[l].hierarchy->work);
            free(comm->lanes[l].hierarchy);
        }
    }
}

bool hierarchy_fits(const struct muster_comm *comm, const struct task *task)
{
    const struct prepared *call = &task->call;
    if (task->lane == LANE_MESSAGES || !comm->lanes[task->lane].hierarchy) {
        return false;
    }
    bool halves = call->type == MUSTER_F16 || call->type == MUSTER_BF16;
    return call->kind == MUSTER_BARRIER || call->kind == MUSTER_BROADCAST ||
           call->kind == MUSTER_ALL_GATHER || (prepared_reduces(call) && !halves);
}

/* ---- a stage ---- */

static char *address_of(const struct hierarchy *h, const struct task *task,
                        struct schedule_place place)
{
    const struct prepared *call = &task->call;
    bool reads_out = call->kind == MUSTER_BROADCAST;
    const char *base = place.buffer == SCHEDULE_WORK               ? h->work
                       : place.buffer == SCHEDULE_IN && !reads_out ? call->in
                                                                   : call->out;
    return base ? (char *)(uintptr_t)base + place.start * task->call.unit : NULL;
}

static void set_reduce(const struct task *task, bool last, struct exchange *x)
{
    const struct prepared *call = &task->call;
    if (prepared_reduces(call)) {
        bool divides = last && call->op == MUSTER_AVG;
        enum muster_op op = call->op == MUSTER_AVG && !last ? MUSTER_SUM : call->op;
        x->reduce = reduce_find(call->type, op);
        x->divisor = divides ? call->divisor : 1;
    }
}

/* Loads the next stage of the phase. Returns false if there is none. */
static bool load(struct task *task, struct hierarchy *h, struct runner *runner)
{
    assert(!runner->loaded && runner->phase < runner->num_phases);
    enum schedule_phase phase = runner->phases[runner->phase];
    struct schedule_stage *stage = &runner->stage;
    struct exchange *x = &runner->exchange;
    if (h->slot < (size_t)phase || h->slot - (size_t)phase >= h->plan.chunks ||
        !schedule_hierarchy_stage(&h->plan, phase, h->slot - (size_t)phase, runner->k, stage)) {
        return false;
    }
    bool both = stage->pattern == SCHEDULE_ALL_TO_ALL;
    exchange_init(x, runner->team, stage->pattern, stage->count, task->call.unit, runner->capacity);
    x->plan.root = stage->root;
    if (stage->blocks) {
        x->plan.in_counts = stage->counts;
        x->plan.in_starts = stage->starts;
        x->plan.out_counts = both ? stage->out_counts : stage->counts;
        x->plan.out_starts = both ? stage->out_starts : stage->starts;
    }
    schedule_plan(&x->plan);
    x->in = address_of(h, task, stage->from);
    x->out = address_of(h, task, stage->to);
    set_reduce(task, stage->last_reduce, x);
    return true;
}

/* Returns 1 when all stages of this slot are done. */
static int run(struct muster_comm *comm, struct task *task, struct hierarchy *h,
               struct runner *runner, struct muster_err *err)
{
    while (runner->phase < runner->num_phases) {
        if (!runner->loaded && !load(task, h, runner)) {
            runner->phase++;
            runner->k = 0;
            continue;
        }
        runner->loaded = true;
        assert(h->slot >= (size_t)runner->phases[runner->phase]);
        int r = exchange_advance(comm, task, &runner->exchange, err);
        if (r <= 0) {
            return r;
        }
        runner->loaded = false;
        runner->k++;
    }
    return 1;
}

static void rewind_runner(struct runner *runner)
{
    runner->phase = runner->k = 0;
    runner->loaded = false;
}

static int hierarchy_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct hierarchy *h = comm->lanes[task->lane].hierarchy;
    if (!task->begun) {
        call_log_begin(comm, task);
        h->slot = 0;
        rewind_runner(&h->here);
        rewind_runner(&h->across);
        h->plan = way_of(task)->hierarchy;
    }
    while (h->slot < schedule_hierarchy_slots(&h->plan)) {
        int here = run(comm, task, h, &h->here, err);
        int across = here < 0 ? here : run(comm, task, h, &h->across, err);
        if (across < 0 || here == 0 || across == 0) {
            return across < 0 ? across : 0;
        }
        h->slot++;
        rewind_runner(&h->here);
        rewind_runner(&h->across);
    }
    return 1;
}

void hierarchy_start(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern)
{
    assert(comm->lanes[task->lane].hierarchy);
    struct schedule_hierarchy *plan = &way_of(task)->hierarchy;
    *plan = (struct schedule_hierarchy){.hosts = comm->hosts,
                                        .pattern = pattern,
                                        .rank = comm->rank,
                                        .root = task->call.peer,
                                        .unit = task->call.unit,
                                        .count = task->call.count,
                                        .counts = task->call.out_counts,
                                        .part = PART_BYTES / task->call.unit};
    schedule_hierarchy_plan(plan);
    task->linked = schedule_hierarchy_crosses(plan) ? &comm->across : NULL;
    task->step = hierarchy_step;
}
