/* A growing run of bytes with a declared maximum; always NUL-terminated, so it also serves as text.
 *
 * Layer: base; libc only. Ownership: init/done, the caller's struct. Not thread-safe.
 * A failed append leaves the buffer as it was and sticks: buf_failed() stays true until
 * buf_clear(), so that a writer may append many times and look once.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t used;
    size_t room;
    size_t max; /* bytes, without the NUL */
    bool failed;
};

void buf_init(struct buf *b, size_t max_bytes);
void buf_done(struct buf *b);
void buf_clear(struct buf *b);

void buf_add(struct buf *b, const void *bytes, size_t count);
void buf_text(struct buf *b, const char *text);
void buf_format(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vformat(struct buf *b, const char *format, va_list args);

/* Returns room for `count` more bytes; call buf_grew() after they are written. NULL when over the
 * maximum. */
char *buf_reserve(struct buf *b, size_t count);
void buf_grew(struct buf *b, size_t count);

/* Drops the first `count` bytes. */
void buf_consume(struct buf *b, size_t count);

/* Shortens the buffer to its first `used` bytes; also clears a failed append that came after
 * them. */
void buf_truncate(struct buf *b, size_t used);

bool buf_failed(const struct buf *b);

/* Returns the text, which the caller frees, or NULL when an append failed. The buffer is empty
 * afterwards. */
char *buf_steal(struct buf *b);

/* Returns "" while nothing was added, never NULL. */
const char *buf_str(const struct buf *b);
