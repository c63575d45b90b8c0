/* Tar archives as a stream: pieces of any size go in, entries and their bytes come out.
 *
 * The format is POSIX 1003.1-2001 (ustar with pax headers). Files, folders and symbolic links are
 * reported; other entries are skipped. Names are as in the archive: a caller that makes files of
 * them must check them (unpack.h).
 *
 * Layer: cli; pure. Ownership: tar_init/tar_done. Errors: MUSTER_EPROTO if the input is not an
 * archive, MUSTER_ENOENT with the sentence of a header `MUSTER.error`, or the result of a callback;
 * after an error the reader is not fed again.
 */
#pragma once

#include "base/buf.h"

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TAR_BLOCK_BYTES = 512, TAR_NAME_BYTES = 4096 };

enum tar_kind { TAR_FILE, TAR_FOLDER, TAR_LINK };

struct tar_entry {
    enum tar_kind kind;
    const char *name;
    const char *target; /* of a link */
    uint64_t bytes;     /* of a file */
    unsigned mode;      /* permissions */
    int64_t changed_unix_s;
};

/* The functions that the reader calls; each returns 0, or a code that ends the reading. `data` gets
 * a file's content in pieces, `bytes` bytes in all; `end` is called once after them, also for an
 * empty file. Strings are borrowed for the call. */
struct tar_events {
    int (*entry)(void *context, const struct tar_entry *entry, struct muster_err *err);
    int (*data)(void *context, const char *bytes, size_t count, struct muster_err *err);
    int (*end)(void *context, struct muster_err *err);
    void *context;
};

/* What the reader expects next. */
enum tar_state { TAR_HEADER, TAR_EXTENSION, TAR_CONTENT, TAR_SKIPPED, TAR_PADDING, TAR_OVER };

/* What a pax header says about the entry after it. */
struct tar_extension {
    char name[TAR_NAME_BYTES];
    char target[TAR_NAME_BYTES];
    uint64_t bytes;
    bool has_bytes;
};

struct tar_reader {
    struct tar_events events;
    enum tar_state state;
    unsigned char block[TAR_BLOCK_BYTES];
    size_t block_used;
    uint64_t left;       /* bytes left of the extension, the content or the skipped part */
    size_t padding_left; /* bytes after that part, to the end of its block */
    bool saw_zero;       /* one block of zeros; the second is the end */
    struct buf records;  /* of a pax header */
    struct tar_extension next;
};

void tar_init(struct tar_reader *reader, const struct tar_events *events);
void tar_done(struct tar_reader *reader);

int tar_feed(struct tar_reader *reader, const char *bytes, size_t count, struct muster_err *err);

/* Whether the archive's end mark was read: nothing is missing. */
bool tar_is_over(const struct tar_reader *reader);
