/* The arbiter as one record of the journal. It has the same content as the journal: no leases, no
 * connections. See arbiter.h. */
#include "coordinator/arbiter/arbiter.h"

#include "base/err.h"
#include "coordinator/arbiter/internal.h"

/* Whether a generation is closed, and the time for its members' reports is over: workers are waited
 * for, perhaps for long, while work by leases goes on. */
static bool is_waiting(const struct arbiter *a)
{
    const struct rendezvous *s = a->rendezvous;
    return s->phase == RENDEZVOUS_CLOSING && s->hard && a->deadline_ms == INT64_MAX;
}

bool arbiter_may_compact(const struct arbiter *a)
{
    const struct rendezvous *s = a->rendezvous;
    bool quiet =
        s->phase == RENDEZVOUS_RUNNING || s->generation == 0 || a->trained || is_waiting(a);
    return quiet && !a->leases.appended && !a->leases.syncing && !s->appended && !s->syncing &&
           s->logged == s->durable && !a->failed && !a->over;
}

static void add(enum entry_kind kind, struct buf *section, struct buf *ret)
{
    entry_write_section(kind, section->data, section->used, ret);
    if (buf_failed(section)) {
        ret->failed = true;
    }
    buf_clear(section);
}

static void add_datasets(const struct arbiter *a, struct buf *section, struct buf *ret)
{
    struct shard_progress progress;
    for (uint32_t i = 0; shard_progress(a->ledger.shard, i, &progress); i++) {
        entry_write_dataset(&progress.dataset, section);
        add(ENTRY_DATASET, section, ret);
    }
}

static void add_generation(struct arbiter *a, struct buf *section, struct buf *ret)
{
    const struct rendezvous *s = a->rendezvous;
    const struct rendezvous_effect open = {.kind = RENDEZVOUS_OPEN,
                                           .generation = s->generation,
                                           .version = s->base,
                                           .lineage = s->lineage,
                                           .restore = s->restored};
    arbiter_write_open(a, &open, false, section);
    for (uint32_t i = 0; i < s->room; i++) {
        if (s->peers[i].standing == RENDEZVOUS_MEMBER) {
            entry_write_age(s->peers[i].age, section);
        }
    }
    add(ENTRY_GENERATION, section, ret);
    arbiter_write_names(a, false, section);
    add(ENTRY_NAMES, section, ret);
}

static void add_losses(const struct arbiter *a, struct buf *section, struct buf *ret)
{
    for (size_t i = 0; i < a->losses.kept; i++) {
        losses_write(&a->losses, i, section);
        add(ENTRY_LOST, section, ret);
    }
}

static void add_asides(const struct arbiter *a, struct buf *section, struct buf *ret)
{
    for (uint32_t i = 0; i < a->asides.count; i++) {
        asides_write(&a->asides, i, section);
        add(ENTRY_ASIDE, section, ret);
    }
}

static void add_lease_asides(const struct arbiter *a, struct buf *section, struct buf *ret)
{
    for (uint32_t i = 0; i < a->leases.asides.count; i++) {
        asides_write(&a->leases.asides, i, section);
        add(ENTRY_LEASE_ASIDE, section, ret);
    }
}

static void add_older(const struct arbiter *a, struct buf *section, struct buf *ret)
{
    for (size_t i = 0; i < a->ledger.older.count; i++) {
        const struct older_state *older = &a->ledger.older.states[i];
        entry_write_number(older->version, section);
        buf_add(section, older->bytes, older->count);
        add(ENTRY_OLDER, section, ret);
    }
}

static int add_checkpoints(struct arbiter *a, struct buf *section, struct buf *ret,
                           struct muster_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < a->saved_count; i++) {
        const struct wire_message message = {
            .kind = WIRE_CHECKPOINT, .term = a->rendezvous->term, .checkpoint = a->saved[i].told};
        r = entry_write_message(&message, section, err);
        if (r == 0) {
            add(ENTRY_CHECKPOINT, section, ret);
        }
    }
    return r;
}

int arbiter_snapshot(struct arbiter *a, struct buf *ret, struct muster_err *err)
{
    const struct arbiter_event event = {.kind = ARBITER_TICK}; /* no message is being handled */
    struct buf section;
    buf_init(&section, ARBITER_BYTES_MAX);
    a->event = &event;
    a->err = err;
    if (a->ledger.max_steps > 0) {
        entry_write_number(a->ledger.max_steps, &section);
        add(ENTRY_MAX_STEPS, &section, ret);
    }
    add_datasets(a, &section, ret);
    ledger_write(&a->ledger, &section);
    add(ENTRY_LEDGER, &section, ret);
    add_older(a, &section, ret);
    entry_write_term(a->rendezvous->term, &section);
    add(ENTRY_TERM, &section, ret);
    if (a->rendezvous->generation > 0) {
        add_generation(a, &section, ret);
    }
    if (a->environment != 0) {
        entry_write_number(a->environment, &section);
        add(ENTRY_ENVIRONMENT, &section, ret);
    }
    entry_write_number(a->rendezvous->logged, &section);
    add(ENTRY_LOGGED, &section, ret);
    if (!leases_are_unused(&a->leases)) {
        leases_write(&a->leases, &section);
        add(ENTRY_LEASES, &section, ret);
    }
    add_losses(a, &section, ret);
    add_asides(a, &section, ret);
    add_lease_asides(a, &section, ret);
    int r = add_checkpoints(a, &section, ret, err);
    buf_done(&section);
    r = r < 0 ? r : a->failed;
    return r == 0 && buf_failed(ret) ? err_no_memory(err) : r;
}
