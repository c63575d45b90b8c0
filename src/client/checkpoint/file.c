/* See file.h. */
#include "client/checkpoint/file.h"

#include "client/checkpoint/folder.h"
#include "comm/region/region.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Writing ---- */

struct writing {
    int fd;
    bool (*cancelled)(void *context);
    void *context;
    const char *path;
};

static int write_failed(const struct writing *w, const char *what, struct muster_err *err)
{
    return muster_fail(err, MUSTER_ECREATE, "%s %s: %s", what, w->path, strerror(errno));
}

static int write_all(const struct writing *w, const void *bytes, uint64_t count,
                     struct muster_err *err)
{
    const char *at = bytes;
    while (count > 0) {
        if (w->cancelled(w->context)) {
            return muster_fail(err, MUSTER_EABORTED, "it is not wanted any more");
        }
        size_t most = count < CHECKPOINT_BLOCK_BYTES ? (size_t)count : CHECKPOINT_BLOCK_BYTES;
        ssize_t n = write(w->fd, at, most);
        if (n < 0 && errno != EINTR) {
            return write_failed(w, "cannot write", err);
        }
        at += n > 0 ? n : 0;
        count -= n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

static int sync_folder(const char *folder, struct muster_err *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) < 0 ? muster_fail(err, MUSTER_EIO, "cannot make %s durable: %s",
                                                  folder, strerror(errno))
                                    : 0;
    if (fd >= 0) {
        close(fd);
    }
    return r;
}

static int write_file(struct writing *w, const uint8_t *head, size_t head_bytes, const char *state,
                      uint64_t state_bytes, struct muster_err *err)
{
    w->fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (w->fd < 0) {
        return write_failed(w, "cannot create", err);
    }
    int r = write_all(w, head, head_bytes, err);
    r = r < 0 ? r : write_all(w, state, state_bytes, err);
    if (r == 0 && fsync(w->fd) < 0) {
        r = write_failed(w, "cannot make durable:", err);
    }
    if (close(w->fd) < 0 && r == 0) {
        r = write_failed(w, "cannot close", err);
    }
    return r;
}

/* Writes a temporary file, makes it durable, renames it, and makes the name durable. */
static int write_aside(struct writing *w, const char *folder, const char *path, const uint8_t *head,
                       size_t head_bytes, const char *state, uint64_t state_bytes,
                       struct muster_err *err)
{
    int r = write_file(w, head, head_bytes, state, state_bytes, err);
    if (r == 0 && rename(w->path, path) < 0) {
        r = write_failed(w, "cannot rename", err);
    }
    if (r < 0) {
        (void)unlink(w->path);
        return r;
    }
    return sync_folder(folder, err);
}

int checkpoint_save(const char *folder, uint64_t writer, const struct checkpoint_head *head,
                    const uint64_t *sizes, const char *state, bool (*cancelled)(void *context),
                    void *context, struct checkpoint_place *ret, struct muster_err *err)
{
    char name[CHECKPOINT_NAME_BYTES], aside[CHECKPOINT_NAME_BYTES], *path = NULL, *part = NULL;
    size_t head_bytes = checkpoint_head_bytes(head->num_pieces, head->state_bytes);
    uint8_t *bytes = malloc(head_bytes);
    int r = bytes ? 0 : muster_fail(err, MUSTER_ENOMEM, "no memory for the head of a checkpoint");
    if (r == 0) {
        checkpoint_write_head(head, sizes, state, bytes);
        checkpoint_digest(bytes, head_bytes, ret->digest);
        ret->name = (struct checkpoint_name){head->lineage, head->version, 0};
        memcpy(&ret->name.checksum, ret->digest, sizeof ret->name.checksum);
        checkpoint_name_write(&ret->name, name);
        checkpoint_name_write_part(&ret->name, writer, aside);
    }
    if (r == 0 && (asprintf(&path, "%s/%s", folder, name) < 0 ||
                   asprintf(&part, "%s/%s", folder, aside) < 0)) {
        r = muster_fail(err, MUSTER_ENOMEM, "no memory for a path");
    }
    if (r == 0) {
        struct writing w = {.cancelled = cancelled, .context = context, .path = part};
        r = write_aside(&w, folder, path, bytes, head_bytes, state, head->state_bytes, err);
    }
    free(bytes);
    free(path);
    free(part);
    return r;
}

/* ---- Reading ---- */

struct reading {
    int fd;
    uint64_t file_bytes;
    uint8_t *bytes; /* of the head */
    struct checkpoint_head head;
};

static int read_exactly(int fd, void *ret, size_t count, uint64_t offset, struct muster_err *err)
{
    char *at = ret;
    while (count > 0) {
        ssize_t n = pread(fd, at, count, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return muster_fail(err, MUSTER_EDATA, "%s",
                               n < 0 ? strerror(errno) : "it ends too early");
        }
        at += n;
        offset += (uint64_t)n;
        count -= (size_t)n;
    }
    return 0;
}

static int open_file(const struct checkpoint_wanted *wanted, struct reading *ret,
                     struct muster_err *err)
{
    struct checkpoint_name name;
    struct stat status;
    char *path = NULL;
    bool part, known = checkpoint_name_read(wanted->name, &name, &part) && !part;
    if (!known) {
        return muster_fail(err, MUSTER_EDATA, "no checkpoint is called so");
    }
    if (asprintf(&path, "%s/%s", wanted->folder, wanted->name) < 0) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a path");
    }
    ret->fd = open(path, O_RDONLY | O_CLOEXEC);
    int error = errno;
    free(path);
    if (ret->fd < 0 && error == ENOENT && !folder_has_job(wanted->folder, name.lineage)) {
        return muster_fail(err, MUSTER_ENOENT, "%s has no checkpoint of this job", wanted->folder);
    }
    if (ret->fd < 0) {
        return muster_fail(err, MUSTER_EDATA, "%s", strerror(error));
    }
    if (fstat(ret->fd, &status) < 0 || !S_ISREG(status.st_mode)) {
        return muster_fail(err, MUSTER_EDATA, "it is no file");
    }
    ret->file_bytes = (uint64_t)status.st_size;
    return 0;
}

static int read_head(struct reading *r, struct muster_err *err)
{
    uint8_t fixed[CHECKPOINT_FIXED_BYTES] = {0};
    size_t known = r->file_bytes < sizeof fixed ? (size_t)r->file_bytes : sizeof fixed;
    int rc = read_exactly(r->fd, fixed, known, 0, err);
    int64_t bytes = rc < 0 ? rc : checkpoint_measure(fixed, known, r->file_bytes, err);
    if (bytes < 0) {
        return (int)bytes;
    }
    r->bytes = malloc((size_t)bytes);
    if (!r->bytes) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for the head of a checkpoint");
    }
    rc = read_exactly(r->fd, r->bytes, (size_t)bytes, 0, err);
    return rc < 0 ? rc
                  : checkpoint_read_head(r->bytes, (size_t)bytes, r->file_bytes, &r->head, err);
}

static int check_pieces(const struct checkpoint_head *head, const struct checkpoint_wanted *wanted,
                        struct muster_err *err)
{
    if (head->num_pieces != wanted->num_pieces) {
        return muster_fail(err, MUSTER_ECONFLICT,
                           "it is of another model: it has %u pieces, this worker's has %zu",
                           head->num_pieces, wanted->num_pieces);
    }
    for (uint32_t i = 0; i < head->num_pieces; i++) {
        if (checkpoint_piece_bytes(head, i) != wanted->pieces[i].size_bytes) {
            return muster_fail(err, MUSTER_ECONFLICT,
                               "it is of another model: piece %u has %llu bytes, this worker's "
                               "has %zu",
                               i, (unsigned long long)checkpoint_piece_bytes(head, i),
                               wanted->pieces[i].size_bytes);
        }
    }
    return 0;
}

static int check_head(const struct reading *r, const struct checkpoint_wanted *wanted,
                      struct muster_err *err)
{
    uint8_t digest[CHECKPOINT_DIGEST_BYTES];
    checkpoint_digest(r->bytes, r->head.head_bytes, digest);
    if (memcmp(digest, wanted->digest, sizeof digest) != 0 || r->head.version != wanted->version) {
        return muster_fail(err, MUSTER_EDATA, "it is another one than was written");
    }
    if (r->head.plan != wanted->plan) {
        return muster_fail(err, MUSTER_ECONFLICT, "it is of another data set");
    }
    return check_pieces(&r->head, wanted, err);
}

static void close_file(struct reading *r)
{
    free(r->bytes);
    if (r->fd >= 0) {
        close(r->fd);
    }
}

static int open_checked(const struct checkpoint_wanted *wanted, struct reading *ret,
                        struct muster_err *err)
{
    *ret = (struct reading){.fd = -1};
    int r = open_file(wanted, ret, err);
    r = r < 0 ? r : read_head(ret, err);
    return r < 0 ? r : check_head(ret, wanted, err);
}

int checkpoint_look(const struct checkpoint_wanted *wanted, struct muster_err *err)
{
    struct reading reading;
    int r = open_checked(wanted, &reading, err);
    close_file(&reading);
    return r;
}

static int read_state(const struct reading *r, const struct region_layout *layout,
                      struct muster_err *err)
{
    char *block = malloc(CHECKPOINT_BLOCK_BYTES);
    int rc = block ? 0 : muster_fail(err, MUSTER_ENOMEM, "no memory to read a checkpoint");
    uint64_t blocks = checkpoint_blocks(&r->head);
    for (uint64_t i = 0; rc == 0 && i < blocks; i++) {
        uint64_t first = i * CHECKPOINT_BLOCK_BYTES, left = r->head.state_bytes - first;
        size_t count = left < CHECKPOINT_BLOCK_BYTES ? (size_t)left : CHECKPOINT_BLOCK_BYTES;
        rc = read_exactly(r->fd, block, count, r->head.head_bytes + first, err);
        if (rc == 0 && region_checksum(block, count) != checkpoint_block_sum(&r->head, i)) {
            rc = muster_fail(err, MUSTER_EDATA, "damaged in the %zu bytes from byte %llu", count,
                             (unsigned long long)(r->head.head_bytes + first));
        }
        if (rc == 0) {
            region_layout_scatter(layout, (size_t)first, count, block);
        }
    }
    free(block);
    return rc;
}

int checkpoint_load(const struct checkpoint_wanted *wanted, struct muster_err *err)
{
    struct region_layout layout = {0};
    struct reading reading;
    int r = open_checked(wanted, &reading, err);
    r = r < 0 ? r : region_layout_init(&layout, wanted->pieces, wanted->num_pieces, err);
    r = r < 0 ? r : read_state(&reading, &layout, err);
    region_layout_done(&layout);
    close_file(&reading);
    return r;
}
