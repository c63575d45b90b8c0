/* Allocates the arbiter, and answers queries about it. See arbiter.h. */
#include "coordinator/arbiter/arbiter.h"

#include "base/err.h"
#include "coordinator/arbiter/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

static int allocate(struct arbiter *a, const struct arbiter_options *options,
                    struct muster_err *err)
{
    size_t effects = RENDEZVOUS_EFFECTS_MAX(options->peers);
    a->rendezvous = malloc(rendezvous_size_bytes(options->peers));
    a->asked = (struct rendezvous_effects){.room = effects,
                                           .list = calloc(effects, sizeof *a->asked.list)};
    a->cards = calloc(options->peers, sizeof *a->cards);
    buf_init(&a->prepared, WIRE_FRAME_MAX);
    buf_init(&a->failure, WIRE_TEXT_MAX + 1);
    arbiter_effects_init(&a->grants);
    if (!a->rendezvous || !a->asked.list || !a->cards) {
        return err_no_memory(err);
    }
    rendezvous_init(a->rendezvous, options->sizes, options->peers);
    int r = ledger_init(&a->ledger, err);
    return r < 0 ? r : leases_init(&a->leases, err);
}

int arbiter_new(const struct arbiter_options *options, struct arbiter **ret, struct muster_err *err)
{
    assert(options->peers <= ARBITER_PEERS_MAX && options->dataset_count <= SHARD_DATASETS_MAX);
    assert(options->lease_ms >= SHARD_LEASE_MS);
    struct arbiter *a = calloc(1, sizeof *a);
    if (!a) {
        return err_no_memory(err);
    }
    a->lease_ms = options->lease_ms;
    a->first_ms = options->first_ms;
    a->least_term = options->least_term;
    a->max_steps = options->max_steps;
    a->hangs = (struct hangs){
        .limit_ms = options->pass_ms, .max_ms = options->pass_max_ms, .look_ms = INT64_MAX};
    a->deadline_ms = INT64_MAX;
    a->micro_batches = options->micro_batches > 0 ? options->micro_batches : 1;
    a->dataset_count = options->dataset_count;
    for (size_t i = 0; i < options->dataset_count; i++) {
        a->datasets[i] = options->datasets[i];
    }
    int r = allocate(a, options, err);
    if (r < 0) {
        arbiter_free(a);
        return r;
    }
    *ret = a;
    return 0;
}

void arbiter_free(struct arbiter *a)
{
    if (!a) {
        return;
    }
    free(a->rendezvous);
    free(a->asked.list);
    free(a->cards);
    buf_done(&a->prepared);
    buf_done(&a->failure);
    arbiter_effects_done(&a->grants);
    ledger_done(&a->ledger);
    leases_done(&a->leases);
    free(a);
}

void arbiter_fail(struct arbiter *a, int code)
{
    if (code < 0 && a->failed == 0) {
        a->failed = code;
    }
}

struct card *arbiter_card(struct arbiter *a, uint64_t incarnation)
{
    const struct rendezvous_peer *peer = rendezvous_find(a->rendezvous, incarnation);
    struct card *card = peer ? &a->cards[peer - a->rendezvous->peers] : NULL;
    return card && card->incarnation == incarnation ? card : NULL;
}

/* ---- What is known ---- */

uint64_t arbiter_term(const struct arbiter *a)
{
    return a->rendezvous->term;
}

uint64_t arbiter_generation(const struct arbiter *a)
{
    return a->rendezvous->generation;
}

bool arbiter_is_open(const struct arbiter *a)
{
    return a->rendezvous->phase == RENDEZVOUS_RUNNING;
}

bool arbiter_is_restored(const struct arbiter *a)
{
    return a->rendezvous->restored;
}

uint64_t arbiter_version(const struct arbiter *a)
{
    return a->ledger.version;
}

bool arbiter_knows(const struct arbiter *a, uint64_t incarnation)
{
    return rendezvous_find(a->rendezvous, incarnation) || leases_owner(&a->leases, incarnation);
}

/* Finds also members that the current step has left out: they have no slot, or hold nothing, any
 * more. */
const char *arbiter_name(const struct arbiter *a, uint64_t incarnation)
{
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        if (a->cards[i].incarnation == incarnation) {
            return a->cards[i].name;
        }
    }
    const struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    return owner ? owner->name : losses_name(&a->losses, incarnation);
}

bool arbiter_aside(const struct arbiter *a, uint32_t number, struct arbiter_aside *ret)
{
    bool leased = number >= a->asides.count;
    const struct asides *asides = leased ? &a->leases.asides : &a->asides;
    uint32_t place = leased ? number - a->asides.count : number;
    struct shard_progress data = {0};
    if (place >= asides->count) {
        return false;
    }
    *ret = (struct arbiter_aside){.aside = asides->list[place], .leased = leased};
    (void)shard_progress(leased ? a->leases.shard : a->ledger.shard, ret->aside.dataset, &data);
    memcpy(ret->dataset, data.dataset.name, sizeof ret->dataset);
    return true;
}

const struct losses *arbiter_losses(const struct arbiter *a)
{
    return &a->losses;
}

const char *arbiter_failure(const struct arbiter *a)
{
    return a->failure.used > 0 ? buf_str((struct buf *)&a->failure) : NULL;
}

bool arbiter_dataset(const struct arbiter *a, uint32_t number, struct shard_progress *ret)
{
    return shard_progress(a->ledger.shard, number, ret);
}

bool arbiter_leased(const struct arbiter *a, uint32_t number, struct shard_progress *ret,
                    const char **ret_names, const double **ret_sums)
{
    if (!shard_progress(a->leases.shard, number, ret)) {
        return false;
    }
    *ret_names = a->leases.sums[number].names;
    *ret_sums = a->leases.sums[number].list;
    return true;
}

uint64_t arbiter_left_out(const struct arbiter *a, uint32_t number)
{
    return leases_left_out(&a->leases, number);
}

static uint64_t add_up(uint64_t sum, uint64_t records)
{
    return sum == UINT64_MAX || records == UINT64_MAX ? UINT64_MAX : sum + records;
}

/* Counts the records of the log. A log has the steps of one planned data set, and so the limit
 * refers to its steps. */
static void count_records(const struct arbiter *a, const struct shard_progress *data,
                          struct arbiter_figures *ret)
{
    const struct shard_dataset *spec = &data->dataset;
    bool is_done = data->epoch == spec->epochs;
    if (ret->epoch == ret->epochs && (!is_done || ret->epochs == 0)) {
        ret->epoch = data->epoch;
        ret->epochs = spec->epochs;
    }
    ret->records_done += data->epoch * spec->size + data->epoch_done;
    uint64_t all = spec->epochs == SHARD_ENDLESS ? UINT64_MAX : spec->epochs * spec->size;
    ret->records = add_up(ret->records, arbiter_positions_until(a, spec, ret->max_steps, all));
    ret->records_asked = add_up(ret->records_asked, all);
}

void arbiter_figures(const struct arbiter *a, struct arbiter_figures *ret)
{
    struct shard_progress data;
    *ret = (struct arbiter_figures){.term = a->rendezvous->term,
                                    .generation = a->rendezvous->generation,
                                    .version = a->ledger.version,
                                    .max_steps = a->ledger.max_steps};
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
        ret->members += peer->standing == RENDEZVOUS_MEMBER && !peer->gone;
        ret->joiners += peer->standing == RENDEZVOUS_JOINING;
    }
    for (uint32_t i = 0; arbiter_dataset(a, i, &data); i++) {
        if (data.dataset.task == SHARD_TRAIN || data.dataset.micro_batches > 0) {
            count_records(a, &data, ret);
        }
    }
}

int64_t arbiter_next_ms(const struct arbiter *a)
{
    int64_t ledger_ms = shard_next_ms(a->ledger.shard), leases_ms = shard_next_ms(a->leases.shard);
    int64_t lease_ms = ledger_ms < leases_ms ? ledger_ms : leases_ms;
    int64_t look_ms = a->hangs.look_ms < lease_ms ? a->hangs.look_ms : lease_ms;
    return a->deadline_ms < look_ms ? a->deadline_ms : look_ms;
}

const char *arbiter_check(const struct arbiter *a)
{
    const char *broken = rendezvous_check(a->rendezvous);
    broken = broken ? broken : shard_check(a->ledger.shard);
    broken = broken ? broken : shard_check(a->leases.shard);
    if (!broken && a->rendezvous->logged != a->ledger.version &&
        !(a->rendezvous->phase == RENDEZVOUS_RECORDING && a->rendezvous->next_restore)) {
        broken = "the records are those of the log";
    }
    if (!broken && a->ledger.max_steps > 0 && a->ledger.version > a->ledger.max_steps) {
        broken = "no step is beyond the limit";
    }
    return broken;
}
