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
    SCHEDULE_GENERIC, /* a processor that nobody has measured, or the ranks of a host differ */
    SCHEDULE_AMD,
    SCHEDULE_INTEL,
    SCHEDULE_PROCESSORS,
};

/* Which rank's slots a call uses: those of the root, with data for all or a part for each; or those
 * of each other rank. */
enum schedule_slot_kind {
    SCHEDULE_SLOT_BROADCAST,
    SCHEDULE_SLOT_SCATTER,
    SCHEDULE_SLOT_GATHER, /* also the slots of a reduce */
    SCHEDULE_SLOT_KINDS,
};

enum { SCHEDULE_BLOCK_SIZES = 3, SCHEDULE_MAX_BLOCK_BYTES = 64 * 1024 };

struct schedule_tuning {
    const char *name;
    const char *measured; /* on which processor this was measured, and what the row gains there */
    bool claims;          /* a reader writes a word of each line back: line_claim */
    bool demotes;         /* a rank that has published and can only wait moves its lines to the
                             cache that all cores share: line_demote */
    bool fetches;         /* a rank that sends or reads many messages in a row takes their lines
                             from the other core ahead of time: line_fetch, line_ring_expect */
    bool puts_ahead;      /* the same within a message, while it is copied in (line_ring_put) */
    unsigned slots_ahead; /* a rank that publishes in a call with a root takes the lines of the
                             slot that is used this many calls later (comm/algorithm/rooted.c),
                             unless ranks share processors; 0: it takes none */
    struct {
        size_t above_bytes;
        size_t below_bytes;
    } slots_left[SCHEDULE_SLOT_KINDS]; /* slots between these limits are not taken, because their
                                          readers would wait longer */
    size_t ring_bytes; /* bytes of a ring of messages between two ranks (comm/shm/line_ring.h), … */
    size_t shared_ring_bytes;  /* … and its bytes if ranks share processors */
    size_t twin_below_bytes;   /* zero-copy of two ranks writes both outputs in one pass */
    size_t reads_from_bytes;   /* blocks of at least this size may be read out of the other
                                  rank's memory: comm/algorithm/large_copy.c */
    unsigned retake_ns;        /* time that a rank needs to write a line again after another has
                                  read it out of its memory, … */
    size_t retakes_to_bytes;   /* … for at most this many bytes: the lines of more bytes have
                                  left its cache */
    size_t offers_from_bytes;  /* messages of at least this size are read out of the sender's
                                  memory (comm/messages/offer.c), … */
    size_t offers_above_bytes; /* … if more than this many bytes wait for the same rank */
    struct {
        size_t below_bytes;
        size_t block_bytes;
    } blocks[SCHEDULE_BLOCK_SIZES]; /* for a vector smaller than below_bytes; the last row has no
                                       limit */
};

extern const struct schedule_tuning schedule_tunings[SCHEDULE_PROCESSORS];

/* Whether it pays to take the slot of a later call like this one ahead of time. Inline, because it
 * is called in calls of 75 ns. */
static inline bool schedule_takes_slot(const struct schedule_tuning *tuning,
                                       enum schedule_slot_kind kind, size_t bytes)
{
    bool left = bytes > tuning->slots_left[kind].above_bytes &&
                bytes < tuning->slots_left[kind].below_bytes;
    return tuning->slots_ahead > 0 && !left;
}

/* Returns the class with this name, or a negative number if there is none. */
int schedule_processor_find(const char *name);
