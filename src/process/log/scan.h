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
    int log_fd; /* -1: no file is open */
    int index_fd;
    uint64_t next_mark; /* the number of marks that log_segment_time has passed */
    struct log_mark current;
};

/* A range of bytes of the stream: from `from` up to `to`, which is not included. */
struct log_range {
    uint64_t from;
    uint64_t to;
};

/* Finds the oldest and newest segment in the folder; returns false when there is none. */
bool log_segments(const char *folder, unsigned *ret_first, unsigned *ret_last);

/* Returns false if the segment does not exist (any more). */
bool log_segment_open(const char *folder, unsigned number, struct log_segment *ret);
void log_segment_close(struct log_segment *segment);

/* Returns when the byte at this offset of the stream came; offsets must not decrease between
 * calls. */
int64_t log_segment_time(struct log_segment *segment, uint64_t offset);

/* The same; *ret_end: the end of the bytes that came at that time, as far as is known now. */
int64_t log_segment_run(struct log_segment *segment, uint64_t offset, uint64_t *ret_end);

/* Returns the offset from which to read, so that only lines that began at `unix_ms` or later are
 * read. *ret_skip: begin after the next newline. */
uint64_t log_find_since(const char *folder, int64_t unix_ms, bool *ret_skip);

/* Returns the range that log_writer_add has added; empty if it has added nothing. */
struct log_range log_added(const char *folder);

/* Returns the offset of the last `lines` lines (0: the end), counted without the bytes of
 * `without`. */
uint64_t log_find_tail(const char *folder, int64_t lines, struct log_range without);
