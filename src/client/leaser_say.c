/* Sends the messages of a worker by leases to the coordinator. See leaser.h. */
#include "client/identity.h"
#include "client/leaser.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(struct muster_shards *s, enum leaser_phase least, struct wire_message *message)
{
    struct muster_err err = MUSTER_ERR_INIT;
    uint64_t one = 1;
    if (s->phase < least) {
        return; /* it is sent when the connection is up */
    }
    message->term = s->term;
    if (connection_send(&s->connection, message, &err) < 0) {
        connection_close(&s->connection); /* the next connection begins with all of it */
    }
    if (s->connection.sent < s->connection.out.used || s->connection.fd < 0) {
        (void)!write(s->wake_fd, &one, sizeof one);
    }
}

static struct wire_text text_of(const char *text)
{
    return (struct wire_text){text, (uint32_t)strlen(text)};
}

void leaser_say_hello(struct muster_shards *s)
{
    struct wire_message m = identity_hello(s->incarnation, s->token);
    say(s, LEASER_GREETING, &m);
}

void leaser_say_enroll(struct muster_shards *s)
{
    const struct muster_shards_options *o = &s->options;
    struct shard_range *list = NULL;
    uint32_t count = 0;
    if (holdings_list(&s->holdings, true, &list, &count, NULL) < 0) {
        connection_close(&s->connection); /* it is sent when there is memory */
        return;
    }
    struct wire_message m = {.kind = WIRE_ENROLL,
                             .enroll = {.dataset = {.name = text_of(s->dataset),
                                                    .task = o->task,
                                                    .records = o->records,
                                                    .epochs = o->epochs,
                                                    .batch = o->shard,
                                                    .block = o->shuffle,
                                                    .seed = o->seed,
                                                    .set_aside = s->set_aside},
                                        .sums = text_of(s->sum_names),
                                        .name = text_of(s->name),
                                        .again = s->enrolled,
                                        .held = {list, count}}};
    leaser_listener_address(s, m.enroll.address);
    say(s, LEASER_ENROLLING, &m);
    free(list);
}

void leaser_say_fetch(struct muster_shards *s)
{
    struct wire_message m = {.kind = WIRE_FETCH, .fetch.records = s->ask * s->options.shard};
    s->asked = true;
    s->none_now = false;
    say(s, LEASER_UP, &m);
}

static void say_sent(struct muster_shards *s)
{
    uint64_t bits[WIRE_SUMS_MAX];
    struct wire_message m = {.kind = WIRE_DONE, .done = holdings_message(&s->holdings, bits)};
    say(s, LEASER_UP, &m);
}

void leaser_say_done(struct muster_shards *s)
{
    if (s->phase == LEASER_UP && holdings_next(&s->holdings)) {
        say_sent(s);
    }
}

static void add_ranges(struct shard_range *list, uint32_t *count, uint32_t dataset,
                       const struct muster_shards_range *ranges, size_t range_count, uint64_t epoch)
{
    for (size_t i = 0; i < range_count; i++) {
        for (uint64_t at = 0; at < ranges[i].count; at += list[*count - 1].count) {
            uint64_t left = ranges[i].count - at;
            list[(*count)++] =
                (struct shard_range){dataset, (uint32_t)epoch, ranges[i].first + at,
                                     left < UINT32_MAX ? (uint32_t)left : UINT32_MAX};
        }
    }
}

static size_t pieces(const struct muster_shards_range *ranges, size_t range_count)
{
    size_t count = 0;
    for (size_t i = 0; i < range_count; i++) {
        count += (size_t)(ranges[i].count / UINT32_MAX) + 1;
    }
    return count;
}

static int by_position(const void *a, const void *b)
{
    return shard_range_compare(*(const struct shard_range *)a, *(const struct shard_range *)b);
}

int leaser_say_to_do(struct muster_shards *s, struct muster_err *err)
{
    const struct muster_shards_position *begins = s->begins;
    struct wire_message m = {.kind = WIRE_TO_DO, .to_do.begin = begins != NULL};
    struct shard_range *list = NULL;
    uint32_t count = 0;
    if (begins) {
        list = calloc(pieces(begins->to_do, begins->to_do_count) +
                          pieces(begins->held, begins->held_count) + 1,
                      sizeof *list);
        if (!list) {
            return muster_fail(err, MUSTER_ENOMEM, "no memory for the ranges of a position");
        }
        add_ranges(list, &count, s->number, begins->to_do, begins->to_do_count, begins->epoch);
        add_ranges(list, &count, s->number, begins->held, begins->held_count, begins->epoch);
        qsort(list, count, sizeof *list, by_position);
        m.to_do.epoch = (uint32_t)begins->epoch;
        m.to_do.ranges = (struct wire_ranges){list, count};
    }
    int64_t bytes = wire_write(&m, NULL, 0, err);
    if (bytes >= 0) {
        say(s, LEASER_UP, &m);
    }
    free(list);
    return bytes < 0 ? (int)bytes : 0;
}

void leaser_say_progress(struct muster_shards *s)
{
    struct wire_message m = {.kind = WIRE_PROGRESS,
                             .progress.records = s->holdings.durable_records};
    say(s, LEASER_UP, &m);
}

void leaser_say_leave(struct muster_shards *s)
{
    struct wire_message m = {.kind = WIRE_LEAVE, .leave.finished = s->ended};
    say(s, LEASER_UP, &m);
}

void leaser_say_again(struct muster_shards *s)
{
    if (s->holdings.under_way) {
        say_sent(s);
    }
    leaser_say_done(s);
    if (s->asked || s->none_now) {
        leaser_say_fetch(s);
    }
    if (s->wants_position && leaser_say_to_do(s, NULL) < 0) {
        connection_close(&s->connection); /* it is sent when there is memory */
    }
}
