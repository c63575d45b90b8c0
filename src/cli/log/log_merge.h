/* Lines of several logs in the order of their times: a k-way merge with bounded memory.
 *
 * A line's time is that of its first byte. Of several lines the one with the earliest time is given
 * out first; lines of one log keep their order. A log without a waiting line holds the others back
 * until it ends, reports that it has caught up (a watermark), or, when it is followed, `hold_ms`
 * have passed. Lines longer than LOG_MERGE_PIECE_BYTES come in pieces, which stay together.
 *
 * Layer: cli; pure: the time is an argument. Ownership: new/free; sources belong to the merge.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOG_MERGE_PIECE_BYTES = 64 << 10,
    LOG_MERGE_FULL_BYTES = 256 << 10, /* a source that holds more should be paused */
};

struct log_merge;
struct log_merge_source;

/* hold_ms: how long a line waits for others that may be earlier; negative: as long as it takes. */
struct log_merge *log_merge_new(int64_t hold_ms);
void log_merge_free(struct log_merge *merge);

/* Adds a source. Lines with the same time come in the order in which their sources were added. NULL
 * when out of memory. `owner` is the caller's. */
struct log_merge_source *log_merge_add(struct log_merge *merge, void *owner);

/* The other sources wait for this one from now until its end. */
void log_merge_begin(struct log_merge_source *source);

/* Adds bytes that arrived at `unix_ms` by the clock of the log; now_ms is our own clock. False: out
 * of memory. */
bool log_merge_feed(struct log_merge_source *source, int64_t unix_ms, const char *bytes,
                    size_t count, int64_t now_ms);
void log_merge_watermark(struct log_merge_source *source, int64_t unix_ms);
/* Ends the source: no more bytes come until it begins again (a container's next run). */
void log_merge_end(struct log_merge_source *source);

bool log_merge_is_full(const struct log_merge_source *source);

struct log_merge_piece {
    void *owner;
    int64_t unix_ms;
    bool begins; /* the piece begins a line */
    bool last;   /* the last piece of a source that has ended: bytes may be NULL */
    const char *bytes;
    size_t count;
};

/* Takes the next piece, which is valid until the next call of any function here. False: no piece
 * may be given out now. */
bool log_merge_take(struct log_merge *merge, int64_t now_ms, struct log_merge_piece *ret);
