/* The shards that a worker by leases has: granted, fetched, or reported, until they are durable at
 * the coordinator.
 *
 *     granted   LEASED brought it           fetch          → fetched
 *     fetched   the user works on it        report, fail   → reported
 *     reported  part of the next DONE       holdings_next  → sent, if no DONE is under way
 *     sent      part of the DONE under way  RECEIPT        → forgotten
 *
 * Layer: worker (part of libmuster). Pure. Memory: holdings_init/done. Thread: one at a time.
 */
#pragma once

#include "wire/wire.h"

enum { HOLDINGS_FETCHED_MAX = 1 << 16 };

/* Ranges in the order in which they came; ranges that follow each other are joined. */
struct range_list {
    struct shard_range *list;
    size_t head;
    size_t count; /* ranges after the head */
    size_t room;
};

struct fetched {
    uint64_t number;
    struct shard_range range; /* count 0: the shard was reported */
};

struct report_batch {
    struct range_list done;
    struct range_list failed;
    uint64_t shards; /* number of done shards */
    double sums[WIRE_SUMS_MAX];
};

struct holdings {
    uint32_t shard; /* records of a shard */
    uint32_t sum_count;
    struct range_list granted;
    uint64_t granted_records;
    struct fetched *fetched; /* a ring, by number */
    size_t fetched_head;
    size_t fetched_count; /* includes reported ones that are between others */
    size_t fetched_room;  /* a power of two */
    size_t working;       /* fetched and not yet reported */
    uint64_t numbers;     /* the numbers given so far */
    struct report_batch reported;
    struct report_batch sent;
    uint64_t sequence; /* of `sent`, or of the last DONE */
    bool under_way;
    uint64_t durable_shards;
    uint64_t durable_records;
};

void holdings_init(struct holdings *h, uint32_t shard, uint32_t sum_count);
void holdings_done(struct holdings *h);

/* Adds ranges that were granted. MUSTER_ENOMEM. */
int holdings_grant(struct holdings *h, const struct wire_ranges *ranges, struct muster_err *err);
/* Takes the list of all ranges that this worker holds, by the coordinator's state after this DONE.
 * An unknown range was granted, but its message was lost: it is added. */
int holdings_grant_unknown(struct holdings *h, const struct wire_ranges *ranges, uint64_t sequence,
                           struct muster_err *err);
/* Returns 1 and the next shard, or 0 if none is granted. MUSTER_ETOOBIG: too many are fetched and
 * not reported. */
int holdings_fetch(struct holdings *h, uint64_t *ret_number, struct shard_range *ret,
                   struct muster_err *err);
/* Reports a shard. sums: NULL for zeros, and for a shard that has failed. MUSTER_ENOENT. */
int holdings_report(struct holdings *h, uint64_t number, bool done, const double *sums,
                    struct muster_err *err);
/* Begins the next DONE, if none is under way and there is something to report. */
bool holdings_next(struct holdings *h);
/* Returns the DONE that is under way; bits: room for its sums. */
struct wire_done holdings_message(const struct holdings *h, uint64_t bits[WIRE_SUMS_MAX]);
void holdings_receipt(struct holdings *h, uint64_t sequence);
/* Whether all reports are durable. */
bool holdings_all_durable(const struct holdings *h);
/* Lists all held ranges, for ENROLL, or without those of the DONE that is under way; the caller
 * frees *ret. */
int holdings_list(const struct holdings *h, bool with_sent, struct shard_range **ret,
                  uint32_t *ret_count, struct muster_err *err);
