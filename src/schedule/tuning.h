/* What differs by processor, as a table: a row for each class, chosen once when a communicator is
 * formed (comm/system/processor.h). All rows give the same bits; they differ in speed only.
 *
 * What passes between two cores is cache lines that one writes and the other reads. On AMD a core
 * that reads such a line leaves it shared, and its owner pays for taking it back: readers claim
 * what they have read, and short blocks keep all in the L2 cache. On Intel claiming costs more than
 * it saves, and a line that still lies in the other core's L1 cache takes twice as long as one in
 * its L2 cache: long blocks have left it when their turn comes.
 *
 * Layer: pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum schedule_processor {
    SCHEDULE_GENERIC, /* nobody has measured it, or the ranks of a host differ */
    SCHEDULE_AMD,
    SCHEDULE_INTEL,
    SCHEDULE_PROCESSORS,
};

/* Whose slots they are: of the root, for all or a part for each; or of each of the others. */
enum schedule_slot_kind {
    SCHEDULE_SLOT_BROADCAST,
    SCHEDULE_SLOT_SCATTER,
    SCHEDULE_SLOT_GATHER, /* and of a reduce */
    SCHEDULE_SLOT_KINDS,
};

enum { SCHEDULE_BLOCK_SIZES = 3, SCHEDULE_MAX_BLOCK_BYTES = 64 * 1024 };

struct schedule_tuning {
    const char *name;
    const char *measured; /* on which processor, and what the row is worth there */
    bool claims;          /* a reader writes a word of each line back: line_claim */
    bool demotes;         /* a rank that has published and can only wait moves its lines to the
                             cache that all cores share: line_demote */
    bool fetches;         /* a rank that sends or reads message after message takes their lines from
                             the other core ahead: line_fetch, line_ring_expect */
    bool puts_ahead;      /* the same within a message, while it is copied in (line_ring_put) */
    unsigned slots_ahead; /* a rank that publishes in a call with a root takes the lines of the slot
                             of so many calls later (comm/algorithm/rooted.c), unless ranks share
                             processors; 0: it does not … */
    struct {
        size_t above_bytes;
        size_t below_bytes;
    } slots_left[SCHEDULE_SLOT_KINDS]; /* … nor of slots between these limits, whose readers would
                                          wait longer */
    size_t ring_bytes; /* of the ring of messages between two ranks: comm/shm/line_ring.h … */
    size_t shared_ring_bytes;  /* … where ranks share processors */
    size_t twin_below_bytes;   /* zero-copy of two ranks writes both outputs in one pass */
    size_t reads_from_bytes;   /* from so many on a block may be read out of the other's memory:
                                  comm/algorithm/large_copy.c */
    unsigned retake_ns;        /* what it costs a rank to write a line again that another has read
                                  out of its memory … */
    size_t retakes_to_bytes;   /* … of so many bytes at most: more have left its cache */
    size_t offers_from_bytes;  /* messages from so many on are read out of the sender's memory:
                                  comm/messages/offer.c … */
    size_t offers_above_bytes; /* … where more than so many bytes wait for the same rank */
    struct {
        size_t below_bytes;
        size_t block_bytes;
    } blocks[SCHEDULE_BLOCK_SIZES]; /* of a vector below so many bytes; the last has no limit */
};

extern const struct schedule_tuning schedule_tunings[SCHEDULE_PROCESSORS];

/* Whether the slot of a later call like this one is worth taking ahead. Inline: it is asked in
 * calls of 75 ns. */
static inline bool schedule_takes_slot(const struct schedule_tuning *tuning,
                                       enum schedule_slot_kind kind, size_t bytes)
{
    bool left = bytes > tuning->slots_left[kind].above_bytes &&
                bytes < tuning->slots_left[kind].below_bytes;
    return tuning->slots_ahead > 0 && !left;
}

/* The class of that name; negative: there is none. */
int schedule_processor_find(const char *name);
