/* The format of a container's log on disk; the writer (write.h) and the reader (log.h) share it.
 *
 * The log is one stream of bytes, as the container wrote them: standard output and error are one
 * pipe, so their order is kept. The stream is cut into segments N.log (N counts from 0) of a
 * bounded size, of which the newest few are kept. N.idx says when bytes came: marks in order, the
 * first one at the segment's beginning. A byte's time is that of the last mark at or before it.
 * Plain bytes beside an index cost one splice(2) and no look at the data; a format with a time
 * before every line (CRI's) costs a scan and a copy, and people cannot use the files as they are.
 *
 * Text that muster itself has added (log_writer_add) is in the same stream. added.idx holds two
 * marks: the beginning and the end of this text. It is written before the text.
 *
 * Layer: services; pure.
 */
#pragma once

#include <stdint.h>

#define LOG_ADDED "added.idx"

struct log_mark {
    int64_t unix_ms;
    uint64_t offset; /* offset in the stream */
};
