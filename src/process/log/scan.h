/* Finds a place in a log: its segments, and where `since` and `tail` begin.
 *
 * Layer: services. Ownership: log_segment_close. Thread: any. Format: format.h.
 */
#pragma once

#include "process/log/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_segment {
    unsigned number;
    uint64_t base;
    int log_fd; /* -1: none is open */
    int index_fd;
    uint64_t next_mark; /* how many marks log_segment_time has passed */
    struct log_mark current;
};

/* Bytes of the stream: from the first up to, not including, the other. */
struct log_range {
    uint64_t from;
    uint64_t to;
};

/* The oldest and newest segment in the folder; false when there is none. */
bool log_segments(const char *folder, unsigned *ret_first, unsigned *ret_last);

/* False when it is not there (any more). */
bool log_segment_open(const char *folder, unsigned number, struct log_segment *ret);
void log_segment_close(struct log_segment *segment);

/* When the byte at this offset of the stream came; offsets must not go down between calls. */
int64_t log_segment_time(struct log_segment *segment, uint64_t offset);

/* The same; *ret_end: up to where the bytes came at that time, as far as is known now. */
int64_t log_segment_run(struct log_segment *segment, uint64_t offset, uint64_t *ret_end);

/* The offset to begin at so that only lines that began at `unix_ms` or later are read. *ret_skip:
 * begin after the next newline. */
uint64_t log_find_since(const char *folder, int64_t unix_ms, bool *ret_skip);

/* What log_writer_add has added; empty when that is nothing. */
struct log_range log_added(const char *folder);

/* The offset of the last `lines` lines (0: the end), as they are without the bytes of `without`. */
uint64_t log_find_tail(const char *folder, int64_t lines, struct log_range without);
