/* See leasing.h. */
#include "coordinator/arbiter/leasing.h"

#include "base/err.h"
#include "coordinator/arbiter/internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- Enrolling ---- */

static void join(struct arbiter *a, uint64_t incarnation)
{
    (void)leases_tell(a, &(struct shard_event){.kind = SHARD_JOIN,
                                               .owner = incarnation,
                                               .expires_ms = a->now_ms + a->lease_ms});
}

static void renew(struct arbiter *a, uint64_t incarnation)
{
    (void)leases_tell(a, &(struct shard_event){.kind = SHARD_RENEW,
                                               .owner = incarnation,
                                               .expires_ms = a->now_ms + a->lease_ms});
}

/* Takes the records that a worker reports as held. Those that are done already are refused, because
 * no table has them; the worker gets the receipt for them. */
static void take_held(struct arbiter *a, uint64_t owner, const struct wire_ranges *held)
{
    for (uint32_t i = 0; i < held->count && !a->failed; i++) {
        struct shard_part part = {owner, held->list[i]};
        (void)leases_tell(
            a, &(struct shard_event){.kind = SHARD_HELD, .parts = &part, .part_count = 1});
    }
}

static struct lease_owner *add_owner(struct arbiter *a, uint64_t incarnation, uint32_t dataset)
{
    struct lease_owner *owner = leases_add_owner(&a->leases, incarnation);
    if (!owner) {
        arbiter_refuse(a, incarnation, "there are too many processes in this job");
        return NULL;
    }
    owner->dataset = dataset;
    leases_append_owner(a, owner, true);
    join(a, incarnation);
    return owner;
}

static void answer(struct arbiter *a, const struct lease_owner *owner)
{
    struct shard_progress data;
    (void)shard_progress(a->leases.shard, owner->dataset, &data);
    arbiter_datasets_answer(a, owner->incarnation, &data.dataset, owner->dataset);
}

/* Sends the last receipt again, because it may be lost. */
static void remind(struct arbiter *a, uint64_t incarnation)
{
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    a->leases.appended = a->leases.appended || owner->sequence > 0;
    owner->told = 0;
}

static void enroll(struct arbiter *a, const struct wire_enroll *told)
{
    uint64_t incarnation = a->event->incarnation;
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    uint32_t dataset;
    if (rendezvous_find(a->rendezvous, incarnation)) {
        arbiter_refuse(a, incarnation, "a member of a generation has no leases");
        return;
    }
    if (told->again && !owner) {
        leases_expel(a, incarnation, "its lease ran out, and its records went to others");
        return;
    }
    if (!leases_declare(a, told, &dataset)) {
        return;
    }
    owner = owner ? owner : add_owner(a, incarnation, dataset);
    if (!owner || a->failed || owner->dataset != dataset) {
        return;
    }
    arbiter_clean_name(&told->name, owner->name);
    if (!owner->here) {
        owner->here = true;
        a->leases.away--;
        take_held(a, incarnation, &told->held);
    }
    answer(a, leases_owner(&a->leases, incarnation));
    remind(a, incarnation);
    leases_send_held(a, incarnation);
}

/* ---- Working ---- */

static void want(struct arbiter *a, const struct lease_owner *owner)
{
    (void)leases_tell(a, &(struct shard_event){.kind = SHARD_WANT,
                                               .owner = owner->incarnation,
                                               .dataset = owner->dataset,
                                               .count = owner->wanted});
}

static void fetch(struct arbiter *a, struct lease_owner *owner, uint64_t records)
{
    struct shard_progress data;
    (void)shard_progress(a->leases.shard, owner->dataset, &data);
    uint64_t batch = data.dataset.batch;
    uint64_t most = records < SHARD_SIZE_MAX ? records : SHARD_SIZE_MAX;
    owner->wanted = (most + batch - 1) / batch * batch;
    want(a, owner);
}

/* Returns how often the range has failed, with this failure. */
static uint32_t count_failure(struct leases *leases, struct shard_range range)
{
    for (size_t i = 0; i < leases->failure_count; i++) {
        if (shard_range_compare(leases->failures[i].range, range) == 0) {
            return ++leases->failures[i].tries;
        }
    }
    size_t place = leases->failure_count < LEASES_FAILURES_MAX ? leases->failure_count++ : 0;
    leases->failures[place] = (struct lease_failure){range, 1};
    return 1;
}

/* Fails the data set. The workers end with this sentence, so that no worker believes that all is
 * done. */
static void fail_dataset(struct arbiter *a, uint32_t dataset, struct shard_range range)
{
    char why[ARBITER_WHY_BYTES];
    (void)snprintf(why, sizeof why,
                   "the records at %llu to %llu of epoch %u have failed %d times, lastly here",
                   (unsigned long long)range.first, (unsigned long long)shard_range_end(range) - 1,
                   range.epoch, LEASES_TRIES);
    for (size_t i = 0; i < a->leases.owner_count && !a->failed; i++) {
        if (a->leases.owners[i].dataset == dataset) {
            arbiter_refuse(a, a->leases.owners[i].incarnation, why);
        }
    }
}

static void give_back(struct arbiter *a, uint64_t owner, uint32_t dataset,
                      const struct wire_ranges *failed)
{
    if (!leases_tell_parts(a, SHARD_GIVE_BACK, owner, failed)) {
        return; /* it does not hold these records: none are to do again */
    }
    for (uint32_t i = 0; i < failed->count; i++) {
        if (count_failure(&a->leases, failed->list[i]) >= LEASES_TRIES) {
            fail_dataset(a, dataset, failed->list[i]);
            return;
        }
    }
}

static bool are_of(const struct wire_ranges *ranges, uint32_t dataset)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        if (ranges->list[i].dataset != dataset) {
            return false;
        }
    }
    return true;
}

static bool is_good(const struct arbiter *a, const struct lease_owner *owner,
                    const struct wire_done *told)
{
    return told->sequence == owner->sequence + 1 && are_of(&told->done, owner->dataset) &&
           are_of(&told->failed, owner->dataset) &&
           told->sums.count == a->leases.sums[owner->dataset].count;
}

static void done(struct arbiter *a, const struct lease_owner *owner, const struct wire_done *told)
{
    uint64_t incarnation = owner->incarnation;
    uint32_t dataset = owner->dataset;
    if (told->sequence <= owner->sequence) { /* this message is in the journal already */
        remind(a, incarnation);
        return;
    }
    const struct lease_sums before = a->leases.sums[dataset];
    bool good = is_good(a, owner, told);
    if (good) { /* before the commit, because the last records are answered with the sums of all */
        leases_add_sums(&a->leases.sums[dataset], &told->sums);
        good = leases_commit(a, incarnation, &told->done);
    }
    struct lease_owner *still = leases_owner(&a->leases, incarnation);
    assert(!good || still); /* this message has renewed its lease */
    if (!good) {
        a->leases.sums[dataset] = before;
        leases_expel(a, incarnation,
                     "it says of records that they are done which it does not hold");
        leases_put_out(a, incarnation);
        return;
    }
    still->sequence = told->sequence;
    a->leases.appended = true;
    leases_append_done(a, incarnation, told);
    give_back(a, incarnation, dataset, &told->failed);
}

bool leases_bury(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause)
{
    bool known = leases_owner(&a->leases, incarnation) != NULL;
    leases_die(a, incarnation, cause, RENDEZVOUS_DIED);
    return known;
}

/* If the member was connected in this term, it died with the records that it held. */
bool leases_bury_gone(struct arbiter *a, uint64_t incarnation)
{
    const struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    bool died = owner && owner->disconnected;
    return leases_bury(a, incarnation, died ? ARBITER_CAUSE_UNKNOWN : ARBITER_CAUSE_OUTSIDE);
}

void leases_note_connection(struct arbiter *a, uint64_t incarnation, bool is_new)
{
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    if (owner) {
        owner->disconnected = !is_new && a->event->cause != ARBITER_CAUSE_PENDING;
    }
}

static void hear(struct arbiter *a, struct lease_owner *owner, const struct wire_message *m)
{
    switch ((int)m->kind) {
    case WIRE_ENROLL: enroll(a, &m->enroll); break;
    case WIRE_FETCH: fetch(a, owner, m->fetch.records); break;
    case WIRE_DONE: done(a, owner, &m->done); break;
    case WIRE_TO_DO: leases_hear_to_do(a, owner, &m->to_do); break;
    case WIRE_LEAVE: leases_put_out(a, owner->incarnation); break;
    case WIRE_PROGRESS: break;
    default: arbiter_refuse(a, owner->incarnation, "who has leases is no member of a generation");
    }
}

bool leases_hear(struct arbiter *a)
{
    const struct wire_message *m = a->event->message;
    uint64_t incarnation = a->event->incarnation;
    bool known = leases_owner(&a->leases, incarnation) != NULL;
    if (known) {
        renew(a, incarnation);
    }
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    if (owner && (owner->here || m->kind == WIRE_ENROLL)) {
        hear(a, owner, m);
    } else if (m->kind == WIRE_ENROLL) {
        enroll(a, &m->enroll);
    } else if (m->kind >= WIRE_FETCH && m->kind <= WIRE_TO_DO) {
        leases_expel(a, incarnation, "it has not enrolled");
    } else {
        return known;
    }
    return true;
}

/* ---- Time ---- */

void leases_start(struct arbiter *a)
{
    leases_tick(a);
    for (size_t i = 0; i < a->leases.owner_count; i++) {
        join(a, a->leases.owners[i].incarnation);
        if (a->leases.owners[i].wanted > 0) {
            want(a, &a->leases.owners[i]);
        }
    }
}

void leases_tick(struct arbiter *a)
{
    (void)leases_tell(a, &(struct shard_event){.kind = SHARD_TICK, .now_ms = a->now_ms});
}

static void send_receipt(struct arbiter *a, struct lease_owner *owner)
{
    struct wire_message message = {.kind = WIRE_RECEIPT, .receipt.sequence = owner->sequence};
    owner->told = owner->sequence;
    arbiter_send(a, owner->incarnation, &message);
}

void leases_durable(struct arbiter *a)
{
    struct leases *leases = &a->leases;
    for (size_t i = 0; leases->syncing && i < leases->owner_count && !a->failed; i++) {
        struct lease_owner *owner = &leases->owners[i];
        if (owner->told != owner->sequence) {
            send_receipt(a, owner);
        }
        if (owner->ends) {
            owner->ends = false;
            leases_send_ended(a, owner);
        }
    }
    leases->syncing = false;
}

void leases_settle(struct arbiter *a)
{
    struct leases *leases = &a->leases;
    if (!leases->serving && leases->away == 0) {
        leases->serving = true;
        (void)leases_tell(a, &(struct shard_event){.kind = SHARD_SERVE});
    }
    if (leases->appended) {
        leases->appended = false;
        leases->syncing = true;
        arbiter_add(a, ARBITER_SYNC);
    }
}
