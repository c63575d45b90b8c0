/* See journal.h. */
#include "coordinator/journal/journal.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "coordinator/journal/lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct journal {
    const struct journal_files *files;
    bool sync;
    bool takes_over;
    bool broken; /* the content of the file is not known */
    char *folder;
    char *path;
    char *new_path;
    struct journal_lock lock;
    int fd;
    uint8_t *bytes; /* the content at opening; NULL: all of it was read */
    size_t next;    /* the offset of the next record in these bytes */
    size_t end;     /* the end of the file */
};

/* ---- Writing ---- */

static int fail(struct journal *journal, struct muster_err *err, const char *what)
{
    return file_fail(err, MUSTER_EIO, what, journal->path);
}

static int write_at(const struct journal_files *files, int fd, const void *bytes, size_t count,
                    size_t offset)
{
    const uint8_t *at = bytes;
    while (count > 0) {
        ssize_t written = files->write(files->data, fd, at, count, (off_t)offset);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written == 0 ? ENOSPC : errno;
            return -1;
        }
        at += written;
        offset += (size_t)written;
        count -= (size_t)written;
    }
    return 0;
}

static int write_record(const struct journal_files *files, int fd,
                        const struct journal_record *record, size_t offset)
{
    size_t count = JOURNAL_AROUND_BYTES + (size_t)record->count;
    uint8_t small[512];
    muster_auto(free) uint8_t *large = count > sizeof small ? malloc(count) : NULL;
    uint8_t *bytes = large ? large : small;
    if (count > sizeof small && !large) {
        errno = ENOMEM;
        return -1;
    }
    journal_write_head(record, offset, bytes);
    if (record->count > 0) {
        memcpy(bytes + JOURNAL_HEAD_BYTES, record->bytes, record->count);
    }
    bytes[count - 1] = journal_end_mark;
    return write_at(files, fd, bytes, count, offset);
}

static int refuse(struct journal *journal, size_t count, struct muster_err *err)
{
    assert(!journal->bytes);
    if (journal->broken) {
        return muster_fail(err, MUSTER_EIO,
                           "%s could not be written before, and its end is not known: start the "
                           "coordinator again",
                           journal->path);
    }
    if (count > JOURNAL_RECORD_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "a record of the journal has %zu bytes of %d",
                           count, JOURNAL_RECORD_MAX);
    }
    return 0;
}

int journal_append(struct journal *journal, uint32_t kind, const void *bytes, size_t count,
                   struct muster_err *err)
{
    const struct journal_record record = {kind, bytes, (uint32_t)count};
    int r = refuse(journal, count, err);
    if (r < 0) {
        return r;
    }
    if (write_record(journal->files, journal->fd, &record, journal->end) < 0) {
        r = fail(journal, err, "write");
        const struct journal_files *files = journal->files;
        journal->broken = files->truncate(files->data, journal->fd, (off_t)journal->end) < 0;
        return r;
    }
    journal->end += JOURNAL_AROUND_BYTES + count;
    return 0;
}

/* A failed sync may have dropped written data, and yet the next sync would succeed. */
int journal_sync(struct journal *journal, struct muster_err *err)
{
    int r = refuse(journal, 0, err);
    if (r == 0 && journal->sync && journal->files->sync(journal->files->data, journal->fd) < 0) {
        journal->broken = true;
        return fail(journal, err, "sync");
    }
    return r;
}

/* ---- A new file in the place of the old one ---- */

static int sync_folder(struct journal *journal)
{
    const struct journal_files *files = journal->files;
    int fd = files->open(files->data, journal->folder, O_RDONLY | O_DIRECTORY);
    int r = fd < 0 ? -1 : files->sync(files->data, fd);
    if (fd >= 0) {
        int reason = errno;
        close(fd);
        errno = reason;
    }
    return r;
}

/* The content of a new file: a header, perhaps with records after it, and perhaps one more
 * record. */
struct content {
    const uint8_t *bytes;
    size_t count;
    const struct journal_record *record;
};

static int write_new(struct journal *journal, const struct content *content)
{
    const struct journal_files *files = journal->files;
    const struct journal_record *record = content->record;
    int fd = files->open(files->data, journal->new_path, O_RDWR | O_CREAT | O_TRUNC);
    bool written = fd >= 0 && write_at(files, fd, content->bytes, content->count, 0) == 0 &&
                   (!record || write_record(files, fd, record, content->count) == 0) &&
                   files->sync(files->data, fd) == 0;
    if (!written && fd >= 0) {
        int reason = errno;
        close(fd);
        errno = reason;
    }
    return written ? fd : -1;
}

/* Whether another process has replaced the journal. It may write, too: the files of both names are
 * compared with ours before they are exchanged. */
static bool is_taken(const struct journal *journal, int new_fd)
{
    bool ours = journal_file_is_at(journal->new_path, new_fd) &&
                (journal->fd < 0 || journal_file_is_at(journal->path, journal->fd));
    return journal->takes_over && !ours;
}

static int give_way(struct journal *journal, int new_fd, struct muster_err *err)
{
    close(new_fd);
    journal->broken = true;
    return muster_fail(err, MUSTER_EIO, "another coordinator has taken the journal in %s over",
                       journal->folder);
}

/* Replaces the file. It is always synced: an old name of a new file must not turn out to be
 * empty. */
static int replace(struct journal *journal, const struct content *content, struct muster_err *err)
{
    const struct journal_files *files = journal->files;
    const struct journal_record *record = content->record;
    int fd = write_new(journal, content);
    if (fd >= 0 && is_taken(journal, fd)) {
        return give_way(journal, fd, err);
    }
    if (fd < 0 || files->rename(files->data, journal->new_path, journal->path) < 0) {
        int r = file_fail(err, MUSTER_EIO, "write", journal->new_path);
        (void)files->remove(files->data, journal->new_path);
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    if (journal->fd >= 0) {
        close(journal->fd);
    }
    journal->fd = fd;
    journal->end = content->count + (record ? JOURNAL_AROUND_BYTES + record->count : 0);
    if (sync_folder(journal) < 0) { /* it is not known which file would be found later */
        journal->broken = journal->sync;
        return journal->broken ? fail(journal, err, "sync the folder of") : 0;
    }
    return 0;
}

/* Replaces all records by this one; NULL: by none. */
static int replace_by_record(struct journal *journal, const struct journal_record *record,
                             struct muster_err *err)
{
    uint8_t header[JOURNAL_HEADER_BYTES];
    journal_write_header(header);
    return replace(journal, &(struct content){header, sizeof header, record}, err);
}

int journal_compact(struct journal *journal, uint32_t kind, const void *bytes, size_t count,
                    struct muster_err *err)
{
    const struct journal_record record = {kind, bytes, (uint32_t)count};
    int r = refuse(journal, count, err);
    if (r == 0 && !journal->takes_over) {
        r = journal_lock_keep(&journal->lock, journal->files, journal->folder, err);
    }
    return r < 0 ? r : replace_by_record(journal, &record, err);
}

/* ---- Opening ---- */

/* Checks every record before the first one is used. */
static int check_records(struct journal *journal, size_t count, struct muster_err *err)
{
    struct journal_record record;
    journal->end = JOURNAL_HEADER_BYTES;
    int r;
    do {
        r = journal_read_record(journal->bytes, count, &journal->end, &record, err);
    } while (r > 0);
    return r < 0 ? muster_wrap(err, "%s", journal->path) : 0;
}

static int read_whole(struct journal *journal, size_t *ret_count, struct muster_err *err)
{
    char *text = NULL;
    int r = file_read(journal->path, JOURNAL_READ_MAX, &text, ret_count, err);
    journal->bytes = (uint8_t *)text;
    return r;
}

static int open_old(struct journal *journal, size_t count, struct muster_err *err)
{
    const struct journal_files *files = journal->files;
    int r = check_records(journal, count, err);
    if (r < 0) {
        return r;
    }
    journal->next = JOURNAL_HEADER_BYTES;
    journal->fd = files->open(files->data, journal->path, O_RDWR);
    if (journal->fd < 0) {
        return fail(journal, err, "open");
    }
    if (journal->takes_over) {
        return replace(journal, &(struct content){journal->bytes, journal->end, NULL}, err);
    }
    if (journal->end < count &&
        files->truncate(files->data, journal->fd, (off_t)journal->end) < 0) {
        return fail(journal, err, "cut the torn end off");
    }
    return 0;
}

static void forget_bytes(struct journal *journal)
{
    free(journal->bytes);
    journal->bytes = NULL;
}

static int open_file(struct journal *journal, struct muster_err *err)
{
    size_t count = 0;
    int whole = 0;
    (void)journal->files->remove(journal->files->data, journal->new_path);
    if (access(journal->path, F_OK) == 0 || errno != ENOENT) {
        int r = read_whole(journal, &count, err);
        if (r < 0) {
            return r;
        }
        whole = journal_read_header(journal->bytes, count, err);
        if (whole < 0) {
            return muster_wrap(err, "%s", journal->path);
        }
    }
    if (whole) {
        return open_old(journal, count, err);
    }
    forget_bytes(journal);
    return replace_by_record(journal, NULL, err);
}

int journal_open(const struct journal_options *options, struct journal **ret,
                 struct muster_err *err)
{
    struct journal *journal = calloc(1, sizeof *journal);
    if (!journal) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a journal");
    }
    journal->lock.fd = journal->fd = -1;
    journal->sync = options->sync;
    journal->takes_over = options->takes_over;
    journal->files = options->files ? options->files : &journal_files_system;
    journal->folder = strdup(options->folder);
    journal->path = file_join(options->folder, "journal");
    journal->new_path = file_join(options->folder, "journal.new");
    int r = journal->folder && journal->path && journal->new_path
                ? journal_lock_take(&journal->lock, journal->files, journal->folder,
                                    journal->takes_over, err)
                : muster_fail(err, MUSTER_ENOMEM, "no memory for a journal");
    r = r < 0 ? r : open_file(journal, err);
    if (r < 0) {
        journal_close(journal);
        return r;
    }
    journal_note_term(journal, 0);
    *ret = journal;
    return 0;
}

void journal_close(struct journal *journal)
{
    if (!journal) {
        return;
    }
    if (journal->fd >= 0) {
        close(journal->fd);
    }
    journal_lock_leave(&journal->lock);
    free(journal->bytes);
    free(journal->folder);
    free(journal->path);
    free(journal->new_path);
    free(journal);
}

bool journal_read(struct journal *journal, struct journal_record *ret)
{
    bool more = journal->bytes &&
                journal_read_record(journal->bytes, journal->end, &journal->next, ret, NULL) > 0;
    if (!more) {
        forget_bytes(journal);
    }
    return more;
}

bool journal_is_lost(const struct journal *journal)
{
    return !journal->takes_over && (!journal_file_is_at(journal->path, journal->fd) ||
                                    !journal_lock_is_in(&journal->lock, journal->folder));
}

size_t journal_bytes(const struct journal *journal)
{
    return journal->end;
}

bool journal_is_locked(const struct journal *journal)
{
    return journal->lock.is_held;
}

void journal_note_term(struct journal *journal, uint64_t term)
{
    journal_lock_note_term(&journal->lock, term);
}
