/* What a worker has of a data set by leases: shards that were granted, fetched, and reported, until
 * the coordinator has them durable.
 *
 *     granted   LEASED brought it           fetch          → fetched
 *     fetched   the user works on it        report, fail   → reported
 *     reported  of the next DONE            holdings_next  → sent, where none is under way
 *     sent      of the DONE under way       RECEIPT        → forgotten
 *
 * Layer: worker (part of libmuster). Pure. Memory: holdings_init/done. Thread: one at a time.
 */
#pragma once

#include "wire/wire.h"

enum { HOLDINGS_FETCHED_MAX = 1 << 16 };

/* Ranges in the order in which they came; those that follow each other are one. */
struct range_list {
    struct shard_range *list;
    size_t head;
    size_t count; /* behind the head */
    size_t room;
};

struct fetched {
    uint64_t number;
    struct shard_range range; /* count 0: it was reported */
};

struct report_batch {
    struct range_list done;
    struct range_list failed;
    uint64_t shards; /* that are done */
    double sums[WIRE_SUMS_MAX];
};

struct holdings {
    uint32_t shard; /* records of one */
    uint32_t sum_count;
    struct range_list granted;
    uint64_t granted_records;
    struct fetched *fetched; /* a ring, by number */
    size_t fetched_head;
    size_t fetched_count; /* with those reported within */
    size_t fetched_room;  /* a power of two */
    size_t working;       /* fetched, and not reported */
    uint64_t numbers;     /* that were given out */
    struct report_batch reported;
    struct report_batch sent;
    uint64_t sequence; /* of `sent`, or of the last DONE */
    bool under_way;
    uint64_t durable_shards;
    uint64_t durable_records;
};

void holdings_init(struct holdings *h, uint32_t shard, uint32_t sum_count);
void holdings_done(struct holdings *h);

/* MUSTER_ENOMEM. */
int holdings_grant(struct holdings *h, const struct wire_ranges *ranges, struct muster_err *err);
/* The coordinator says that these are all since this DONE: what is not known was granted and lost
 * on its way. */
int holdings_grant_unknown(struct holdings *h, const struct wire_ranges *ranges, uint64_t sequence,
                           struct muster_err *err);
/* 1: the next shard; 0: none is granted. MUSTER_ETOOBIG: too many are fetched and not reported. */
int holdings_fetch(struct holdings *h, uint64_t *ret_number, struct shard_range *ret,
                   struct muster_err *err);
/* sums: NULL for zeros, or where it has failed. MUSTER_ENOENT. */
int holdings_report(struct holdings *h, uint64_t number, bool done, const double *sums,
                    struct muster_err *err);
/* The next DONE, where none is under way and there is something to say. */
bool holdings_next(struct holdings *h);
/* The DONE that is under way; bits: room for its sums. */
struct wire_done holdings_message(const struct holdings *h, uint64_t bits[WIRE_SUMS_MAX]);
void holdings_receipt(struct holdings *h, uint64_t sequence);
/* Whether all that was reported is durable. */
bool holdings_all_durable(const struct holdings *h);
/* All that it has, for ENROLL, or without the DONE that is under way; the caller frees *ret. */
int holdings_list(const struct holdings *h, bool with_sent, struct shard_range **ret,
                  uint32_t *ret_count, struct muster_err *err);
