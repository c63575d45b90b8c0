/* The writer of a container's log: from its pipe to bounded files, without looking at the bytes.
 *
 * Layer: services. Thread: one. Ownership: init/done. Format: format.h.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_writer {
    int folder_fd;
    int log_fd;
    int index_fd;
    unsigned segment;
    uint64_t base;  /* stream offset of the segment's first byte */
    uint64_t used;  /* bytes in the segment */
    uint64_t marks; /* the number of marks in its index */
    int64_t last_mark_unix_ms;
    uint64_t segment_bytes_max;
    unsigned segments_max;
    bool no_splice;      /* the file system does not support splice: bytes are copied */
    uint64_t lost_bytes; /* dropped because they could not be written to the disk */
    uint64_t added_at;   /* where the newest text of log_writer_add begins in the stream … */
    uint64_t added_bytes;
};

enum log_pump { LOG_PUMP_MOVED, LOG_PUMP_EMPTY, LOG_PUMP_CLOSED };

/* The folder must exist; its log must not. */
int log_writer_init(struct log_writer *w, const char *folder, int64_t segment_bytes,
                    int64_t segments, int64_t now_unix_ms, struct muster_err *err);
void log_writer_done(struct log_writer *w);

/* Moves what the pipe (non-blocking) has, at most `budget` bytes. A full disk never stops the
 * container: its bytes are counted in lost_bytes. */
enum log_pump log_writer_pump(struct log_writer *w, int pipe_fd, size_t budget,
                              int64_t now_unix_ms);

/* Adds text that no container wrote, on lines of its own; text that does not fit is cut off.
 * added_at and added_bytes are set to the range of these bytes. */
void log_writer_add(struct log_writer *w, const char *text, size_t bytes, int64_t now_unix_ms);
