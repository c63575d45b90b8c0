/* A worker of the data set by leases: shards are fetched, and reported, as src/client does. See
 * job.h. What it sums up over its records is their number, and their positions: whoever is told
 * that all is done finds each record in it once. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

void leaser_begin(const struct job *job, struct process *p)
{
    holdings_init(&p->leaser.holdings, job->config.shard, 2);
}

static struct wire_text text_of(const char *text)
{
    return (struct wire_text){text, (uint32_t)strlen(text)};
}

/* ---- Messages that it sends ---- */

void leaser_enroll(struct job *job, struct process *p)
{
    struct shard_range *list = NULL;
    uint32_t count = 0;
    if (holdings_list(&p->leaser.holdings, true, &list, &count, NULL) < 0) {
        job_break(job, "there is memory");
        return;
    }
    process_say(job, p,
                &(struct wire_message){.kind = WIRE_ENROLL,
                                       .enroll = {.dataset = {.name = text_of(LEASED_NAME),
                                                              .task = SHARD_EVALUATE,
                                                              .records = job->config.leased_records,
                                                              .epochs = job->config.leased_epochs,
                                                              .batch = job->config.shard,
                                                              .set_aside = job->config.set_aside},
                                                  .sums = text_of("records,positions"),
                                                  .again = p->leaser.enrolled,
                                                  .held = {list, count}}});
    free(list);
}

static void say_fetch(struct job *job, struct process *p)
{
    p->leaser.asked = true;
    p->leaser.none_now = false;
    process_say(
        job, p,
        &(struct wire_message){.kind = WIRE_FETCH,
                               .fetch.records = job->config.shard * (1u + job_draw(job, 3))});
}

static void say_sent(struct job *job, struct process *p)
{
    uint64_t bits[WIRE_SUMS_MAX];
    process_say(job, p,
                &(struct wire_message){.kind = WIRE_DONE,
                                       .done = holdings_message(&p->leaser.holdings, bits)});
}

static void say_done(struct job *job, struct process *p)
{
    if (p->link.declared && holdings_next(&p->leaser.holdings)) {
        say_sent(job, p);
    }
}

void leaser_beat(struct job *job, struct process *p)
{
    struct wire_message m = {.kind = WIRE_PROGRESS};
    process_say(job, p, &m);
}

void leaser_leave(struct job *job, struct process *p)
{
    process_say(job, p,
                &(struct wire_message){.kind = WIRE_LEAVE, .leave.finished = p->leaser.ended});
    p->finished = p->leaser.ended;
    process_die(job, p, ARBITER_CAUSE_OUTSIDE);
    p->life = LIFE_ENDED;
}

/* ---- Messages that it receives ---- */

static void enrolled(struct job *job, struct process *p)
{
    struct leaser *l = &p->leaser;
    p->link.declared = l->enrolled = true;
    if (l->holdings.under_way) {
        say_sent(job, p);
    }
    say_done(job, p);
    if (l->asked || l->none_now) {
        say_fetch(job, p);
    }
}

static double sum_of_positions(const struct job *job)
{
    double records = job->config.leased_records;
    double without = job->config.leased_poison == POISON_NONE ? 0 : job->config.leased_poison;
    return job->config.leased_epochs * (records * (records - 1) / 2 - without);
}

static void check_sums(struct job *job, const struct wire_leased *told)
{
    double sums[2] = {0};
    int records = job->config.leased_records - (job->config.leased_poison != POISON_NONE);
    if (told->sums.count == 2) {
        memcpy(sums, told->sums.list, sizeof sums);
    }
    if (sums[0] != (double)records * job->config.leased_epochs ||
        sums[1] != sum_of_positions(job)) {
        job_break(job, "each record by lease is in the sums once");
    }
}

static void leased(struct job *job, struct process *p, const struct wire_leased *told)
{
    struct leaser *l = &p->leaser;
    if (told->all) {
        (void)holdings_grant_unknown(&l->holdings, &told->ranges, told->sequence, NULL);
        return;
    }
    l->asked = false;
    l->none_now = told->ranges.count == 0 && !told->ended;
    if (told->ended) {
        l->ended = true;
        check_sums(job, told);
    }
    (void)holdings_grant(&l->holdings, &told->ranges, NULL);
}

void leaser_hear(struct job *job, struct process *p, const struct wire_message *m)
{
    switch ((int)m->kind) {
    case WIRE_DATASET: enrolled(job, p); break;
    case WIRE_LEASED: leased(job, p, &m->leased); break;
    case WIRE_RECEIPT:
        holdings_receipt(&p->leaser.holdings, m->receipt.sequence);
        say_done(job, p);
        break;
    case WIRE_REFUSED:
    case WIRE_EXPELLED: /* its lease ran out: it ends with an error, and may be started again */
        process_die(job, p, ARBITER_CAUSE_OUTSIDE);
        break;
    default: job_break(job, "a worker by leases hears what is meant for it"); break;
    }
}

/* ---- Which actions are possible ---- */

bool leaser_may(const struct process *p, enum action_kind kind)
{
    const struct leaser *l = &p->leaser;
    bool idle = l->holdings.granted_records == 0 && l->holdings.working == 0;
    switch ((int)kind) {
    case ACT_WORK: return !idle;
    case ACT_ASK:
        return p->link.declared && !l->asked && !l->none_now && !l->ended &&
               l->holdings.granted_records == 0;
    case ACT_GO: return l->ended && holdings_all_durable(&l->holdings);
    default: return false;
    }
}

static void report(struct job *job, struct process *p, uint64_t number, struct shard_range range)
{
    double sums[] = {range.count, 0};
    bool fails = !p->leaser.has_failed_one && job_draw(job, 16) == 0;
    for (uint32_t i = 0; i < range.count; i++) {
        sums[1] += (double)(range.first + i);
    }
    p->leaser.has_failed_one = p->leaser.has_failed_one || fails;
    if (holdings_report(&p->leaser.holdings, number, !fails, fails ? NULL : sums, NULL) < 0) {
        job_break(job, "what was fetched can be reported");
    }
    say_done(job, p);
}

/* Returns the oldest of the shards that it works on. */
static const struct fetched *oldest(const struct holdings *h)
{
    for (size_t i = 0; i < h->fetched_count; i++) {
        const struct fetched *one = &h->fetched[(h->fetched_head + i) & (h->fetched_room - 1)];
        if (one->range.count > 0) {
            return one;
        }
    }
    return NULL;
}

static bool is_poisonous(const struct job *job, struct shard_range range)
{
    int64_t poison = job->config.leased_poison;
    return poison >= (int64_t)range.first && poison < (int64_t)shard_range_end(range);
}

static void work(struct job *job, struct process *p)
{
    struct holdings *h = &p->leaser.holdings;
    const struct fetched *one = oldest(h);
    if (one && is_poisonous(job, one->range)) {
        process_die(job, p, ARBITER_CAUSE_OWN);
    } else if (one && (h->granted_records == 0 || job_draw(job, 2) == 0)) {
        report(job, p, one->number, one->range);
    } else {
        uint64_t number;
        struct shard_range range;
        (void)holdings_fetch(h, &number, &range, NULL);
    }
}

void leaser_act(struct job *job, struct process *p, enum action_kind kind)
{
    if (kind == ACT_WORK) {
        work(job, p);
    } else if (kind == ACT_ASK) {
        say_fetch(job, p);
    } else if (kind == ACT_GO) {
        leaser_leave(job, p);
    }
}
