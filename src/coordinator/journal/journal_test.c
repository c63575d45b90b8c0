/* The journal: records that were appended are read again. The tests also cut the file at every
 * byte, flip every bit, put zeros at the end, let every call of the file system fail or be the last
 * one, and kill the writer with kill -9. */
#include "coordinator/journal/journal.h"

#include "base/cleanup.h"
#include "base/testing/test_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { NUMBER = 1, TEXT = 2, UP_TO = 3, RECORDS = 6, TAIL = 700, KILLS = 20 };

static const size_t sizes[RECORDS] = {0, 1, 4, 600, 33, 16};

static struct journal *open_in(const char *folder, const struct journal_files *files, bool sync)
{
    struct journal *journal = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    const struct journal_options options = {.folder = folder, .sync = sync, .files = files};
    if (journal_open(&options, &journal, &err) < 0) {
        print_error("%s\n", err.text);
        return NULL;
    }
    return journal;
}

static char *path_in(const char *folder)
{
    char *path = file_join(folder, "journal");
    assert_non_null(path);
    return path;
}

/* Writes in place, because a file system may flush at each rename. */
static void put_bytes(const char *path, const void *bytes, size_t count)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, count, 0), count);
    assert_int_equal(ftruncate(fd, (off_t)count), 0);
    close(fd);
}

static void fill(uint8_t *bytes, size_t count, size_t number)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(i * 7 + number * 31 + 1);
    }
}

static void append_sample(struct journal *journal)
{
    uint8_t bytes[TAIL];
    for (size_t i = 0; i < RECORDS; i++) {
        fill(bytes, sizes[i], i);
        assert_int_equal(journal_append(journal, (uint32_t)i, bytes, sizes[i], NULL), 0);
    }
}

/* Reads the records of the sample that the journal has, up to the first end. */
static size_t read_sample(struct journal *journal)
{
    struct journal_record record;
    uint8_t bytes[TAIL];
    size_t count = 0;
    for (; journal_read(journal, &record); count++) {
        assert_true(count < RECORDS);
        fill(bytes, sizes[count], count);
        assert_int_equal(record.kind, count);
        assert_int_equal(record.count, sizes[count]);
        assert_memory_equal(record.bytes, bytes, sizes[count]);
    }
    return count;
}

static void drain(struct journal *journal)
{
    struct journal_record record;
    while (journal_read(journal, &record)) {
    }
}

/* Returns the bytes of a journal with the sample, and the offset at which each record ends. */
static char *make_sample(const char *folder, size_t *ret_count, size_t ends[RECORDS])
{
    muster_auto(free) char *path = path_in(folder);
    char *bytes = NULL;
    struct journal *journal = open_in(folder, NULL, false);
    drain(journal);
    append_sample(journal);
    assert_int_equal(file_read(path, 1 << 20, &bytes, ret_count, NULL), 0);
    assert_int_equal(*ret_count, journal_bytes(journal));
    journal_close(journal);
    size_t end = JOURNAL_HEADER_BYTES;
    for (size_t i = 0; i < RECORDS; i++) {
        end += JOURNAL_AROUND_BYTES + sizes[i];
        ends[i] = end;
    }
    assert_int_equal(end, *ret_count);
    return bytes;
}

static size_t whole_at(const size_t ends[RECORDS], size_t cut)
{
    size_t count = 0;
    while (count < RECORDS && ends[count] <= cut) {
        count++;
    }
    return count;
}

static void what_was_appended_is_read_again(void **state)
{
    struct journal *journal = open_in(*state, NULL, false);
    assert_int_equal(read_sample(journal), 0);
    append_sample(journal);
    journal_close(journal);
    for (int i = 0; i < 2; i++) {
        journal = open_in(*state, NULL, false);
        assert_int_equal(read_sample(journal), RECORDS);
        journal_close(journal);
    }
}

/* Checks a journal that is cut at this place, or has zeros from there on: whole records are read,
 * and the next record follows them. */
static void check_torn(const char *folder, const char *bytes, size_t count, size_t whole)
{
    muster_auto(free) char *path = path_in(folder);
    put_bytes(path, bytes, count);
    struct journal *journal = open_in(folder, NULL, false);
    assert_non_null(journal);
    assert_int_equal(read_sample(journal), whole);
    assert_int_equal(journal_append(journal, TEXT, "next", 4, NULL), 0);
    journal_close(journal);
    journal = open_in(folder, NULL, false);
    struct journal_record record = {0};
    for (size_t i = 0; i <= whole; i++) {
        assert_true(journal_read(journal, &record));
    }
    assert_int_equal(record.count, 4);
    assert_memory_equal(record.bytes, "next", 4);
    assert_false(journal_read(journal, &record));
    journal_close(journal);
}

static void a_torn_end_is_cut_off_at_every_byte(void **state)
{
    size_t count, ends[RECORDS];
    muster_auto(free) char *bytes = make_sample(*state, &count, ends);
    char *longer = calloc(1, count + TAIL);
    assert_non_null(longer);
    for (size_t cut = 0; cut <= count; cut++) {
        memset(longer, 0, count + TAIL);
        memcpy(longer, bytes, cut);
        check_torn(*state, longer, cut, whole_at(ends, cut));
        if (cut >= JOURNAL_HEADER_BYTES) { /* the file gets its name after the header */
            check_torn(*state, longer, cut + TAIL, whole_at(ends, cut));
        }
    }
    free(longer);
}

/* Checks that the journal is refused, with the offset of the record, and that the file is left as
 * it is. */
static void check_damaged(const char *folder, const char *bytes, size_t count, size_t offset)
{
    muster_auto(free) char *path = path_in(folder);
    muster_auto(free) char *after = NULL;
    size_t after_count = 0;
    char expected[64];
    struct journal *journal = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    const struct journal_options options = {.folder = folder};
    put_bytes(path, bytes, count);
    assert_int_equal(journal_open(&options, &journal, &err), MUSTER_EDATA);
    (void)snprintf(expected, sizeof expected, "damaged at byte %zu:", offset);
    assert_non_null(strstr(err.text, expected));
    assert_non_null(strstr(err.text, path));
    assert_int_equal(file_read(path, 1 << 20, &after, &after_count, NULL), 0);
    assert_int_equal(after_count, count);
    assert_memory_equal(after, bytes, count);
}

static size_t start_of_record_with(const size_t ends[RECORDS], size_t byte)
{
    size_t whole = whole_at(ends, byte);
    return byte < JOURNAL_HEADER_BYTES ? 0 : whole > 0 ? ends[whole - 1] : JOURNAL_HEADER_BYTES;
}

static void every_flipped_bit_is_found_and_named(void **state)
{
    size_t count, ends[RECORDS];
    muster_auto(free) char *bytes = make_sample(*state, &count, ends);
    for (size_t bit = 0; bit < count * 8; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        check_damaged(*state, bytes, count, start_of_record_with(ends, bit / 8));
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
}

/* Damage is not taken for a torn end if a torn end follows it, too. */
static void damage_before_a_torn_end(void **state)
{
    size_t count, ends[RECORDS];
    muster_auto(free) char *bytes = make_sample(*state, &count, ends);
    for (size_t byte = JOURNAL_HEADER_BYTES; byte < ends[2]; byte++) {
        bytes[byte] ^= 0x10;
        check_damaged(*state, bytes, count - 5, start_of_record_with(ends, byte));
        bytes[byte] ^= 0x10;
    }
}

/* A journal is refused if its records are whole, but not at the places where they were written. */
static void records_that_changed_places(void **state)
{
    enum { EACH = JOURNAL_AROUND_BYTES + 1 };
    muster_auto(free) char *path = path_in(*state);
    muster_auto(free) char *bytes = NULL;
    char moved[EACH];
    size_t count = 0;
    struct journal *journal = open_in(*state, NULL, false);
    drain(journal);
    assert_int_equal(journal_append(journal, TEXT, "a", 1, NULL), 0);
    assert_int_equal(journal_append(journal, TEXT, "b", 1, NULL), 0);
    journal_close(journal);
    assert_int_equal(file_read(path, 1 << 20, &bytes, &count, NULL), 0);
    assert_int_equal(count, JOURNAL_HEADER_BYTES + 2 * EACH);
    memcpy(moved, bytes + JOURNAL_HEADER_BYTES, EACH);
    memmove(bytes + JOURNAL_HEADER_BYTES, bytes + JOURNAL_HEADER_BYTES + EACH, EACH);
    memcpy(bytes + JOURNAL_HEADER_BYTES + EACH, moved, EACH);
    check_damaged(*state, bytes, count, JOURNAL_HEADER_BYTES);
}

static void a_newer_version_is_not_touched(void **state)
{
    muster_auto(free) char *path = path_in(*state);
    uint8_t header[JOURNAL_HEADER_BYTES];
    struct journal *journal = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    const struct journal_options options = {.folder = *state};
    journal_write_header(header);
    header[8]++;
    uint32_t crc = journal_crc(0, header, 12);
    for (int i = 0; i < 4; i++) {
        header[12 + i] = (uint8_t)(crc >> (8 * i));
    }
    put_bytes(path, header, sizeof header);
    assert_int_equal(journal_open(&options, &journal, &err), MUSTER_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "version 2"));
}

static void crc_is_crc32c(void **state)
{
    (void)state;
    assert_int_equal(journal_crc(0, "123456789", 9), 0xe3069283);
    assert_int_equal(journal_crc(journal_crc(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void there_is_one_writer(void **state)
{
    struct journal *second = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    char holder[64];
    const struct journal_options options = {.folder = *state};
    struct journal *first = open_in(*state, NULL, false);
    journal_note_term(first, 7);
    assert_int_equal(journal_open(&options, &second, &err), MUSTER_ECONFLICT);
    (void)snprintf(holder, sizeof holder, "(process %d, term 7)", (int)getpid());
    assert_non_null(strstr(err.text, holder));
    journal_close(first);
    assert_int_equal(journal_open(&options, &second, &err), 0);
    journal_close(second);
}

static void assert_kinds(struct journal *journal, const uint32_t *kinds, size_t count)
{
    struct journal_record record;
    for (size_t i = 0; i < count; i++) {
        assert_true(journal_read(journal, &record));
        assert_int_equal(record.kind, kinds[i]);
    }
    assert_false(journal_read(journal, &record));
}

static void delete_in(const char *folder, const char *name)
{
    muster_auto(free) char *path = file_join(folder, name);
    assert_int_equal(unlink(path), 0);
}

/* The journal, the lock, or both: in the first case this process has the lock still. */
static void a_deleted_journal_is_written_again(void **state)
{
    const struct journal_options options = {.folder = *state};
    struct journal *second = NULL;
    enum { THE_JOURNAL = 1, THE_LOCK = 2, BOTH = 3 };
    for (int what = THE_JOURNAL; what <= BOTH; what++) {
        struct journal *journal = open_in(*state, NULL, false);
        drain(journal);
        append_sample(journal);
        assert_false(journal_is_lost(journal));
        if (what & THE_JOURNAL) {
            delete_in(*state, "journal");
        }
        if (what & THE_LOCK) {
            delete_in(*state, "lock");
        }
        assert_int_equal(journal_append(journal, NUMBER, "1", 1, NULL), 0);
        assert_true(journal_is_lost(journal));
        assert_int_equal(journal_compact(journal, UP_TO, "all", 3, NULL), 0);
        assert_false(journal_is_lost(journal));
        assert_int_equal(journal_append(journal, TEXT, "2", 1, NULL), 0);
        assert_int_equal(journal_open(&options, &second, NULL), MUSTER_ECONFLICT);
        journal_close(journal);
        journal = open_in(*state, NULL, false);
        assert_kinds(journal, (const uint32_t[]){UP_TO, TEXT}, 2);
        journal_close(journal);
        delete_in(*state, "journal");
    }
}

/* Another writer that has come meanwhile keeps what it writes. */
static void a_deleted_journal_may_be_anothers_meanwhile(void **state)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct journal *journal = open_in(*state, NULL, false);
    delete_in(*state, "journal");
    delete_in(*state, "lock");
    struct journal *second = open_in(*state, NULL, false);
    assert_int_equal(journal_append(second, TEXT, "mine", 4, NULL), 0);
    assert_int_equal(journal_compact(journal, UP_TO, "all", 3, &err), MUSTER_ECONFLICT);
    assert_true(journal_is_lost(journal));
    assert_int_equal(journal_append(journal, NUMBER, "1", 1, NULL), 0);
    journal_close(journal);
    journal_close(second);
    second = open_in(*state, NULL, false);
    assert_kinds(second, (const uint32_t[]){TEXT}, 1);
    journal_close(second);
}

static struct journal *take_over(const char *folder)
{
    struct journal *journal = NULL;
    const struct journal_options options = {.folder = folder, .sync = true, .takes_over = true};
    assert_int_equal(journal_open(&options, &journal, NULL), 0);
    return journal;
}

static int lock_errno;

static int lock_nothing(void *data, int fd)
{
    (void)data, (void)fd;
    errno = lock_errno;
    return -1;
}

/* These are the errors of NFS without its lock service, FUSE and 9p: a coordinator with a lease may
 * write all the same. Any other error is a failure. */
static void a_file_system_without_locks_is_for_who_has_a_lease(void **state)
{
    static const struct {
        int reason, alone, with_others;
    } rows[] = {{ENOLCK, 0, MUSTER_EIO},
                {ENOSYS, 0, MUSTER_EIO},
                {EOPNOTSUPP, 0, MUSTER_EIO},
                {EWOULDBLOCK, MUSTER_ECONFLICT, MUSTER_ECONFLICT},
                {EBADF, MUSTER_EOS, MUSTER_EOS}};
    struct journal_files files = journal_files_system;
    files.lock = lock_nothing;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct journal *journal = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        bool alone = i % 2 == 1;
        const struct journal_options options = {
            .folder = *state, .takes_over = alone, .files = &files};
        int wanted = alone ? rows[i / 2].alone : rows[i / 2].with_others;
        lock_errno = rows[i / 2].reason;
        assert_int_equal(journal_open(&options, &journal, &err), wanted);
        assert_true((wanted == MUSTER_EIO) == (strstr(err.text, "--lease") != NULL));
        assert_true(!journal || !journal_is_locked(journal));
        journal_close(journal);
    }
    struct journal *journal = take_over(*state);
    assert_true(journal_is_locked(journal));
    journal_close(journal);
}

/* The two coordinators do not see each other's lock, as on two hosts: here they have locked
 * different files. */
static void what_the_one_before_writes_is_not_read(void **state)
{
    struct muster_err err = MUSTER_ERR_INIT;
    char *lock = file_join(*state, "lock");
    struct journal *first = take_over(*state);
    assert_kinds(first, NULL, 0);
    assert_int_equal(journal_append(first, NUMBER, "1", 1, NULL), 0);
    assert_int_equal(unlink(lock), 0);
    struct journal *second = take_over(*state);
    assert_kinds(second, (uint32_t[]){NUMBER}, 1);
    assert_int_equal(journal_append(first, TEXT, "2", 1, NULL), 0);
    assert_int_equal(journal_append(second, UP_TO, "3", 1, NULL), 0);
    assert_int_equal(journal_compact(first, TEXT, "4", 1, &err), MUSTER_EIO);
    assert_non_null(strstr(err.text, "has taken the journal"));
    assert_int_equal(journal_append(first, TEXT, "5", 1, NULL), MUSTER_EIO);
    assert_int_equal(journal_compact(second, UP_TO, "6", 1, &err), 0);
    journal_close(first);
    journal_close(second);
    struct journal *third = take_over(*state);
    assert_kinds(third, (uint32_t[]){UP_TO}, 1);
    journal_close(third);
    free(lock);
}

/* It also keeps the records before a torn end. */
static void who_takes_over_keeps_what_is_whole(void **state)
{
    char *path = path_in(*state);
    char *text;
    size_t bytes;
    struct journal *first = take_over(*state);
    assert_kinds(first, NULL, 0);
    assert_int_equal(journal_append(first, NUMBER, "1", 1, NULL), 0);
    assert_int_equal(journal_append(first, TEXT, "2", 1, NULL), 0);
    journal_close(first);
    assert_int_equal(file_read(path, TAIL, &text, &bytes, NULL), 0);
    put_bytes(path, text, bytes - 1);
    struct journal *second = take_over(*state);
    assert_kinds(second, (uint32_t[]){NUMBER}, 1);
    assert_int_equal(journal_append(second, UP_TO, "3", 1, NULL), 0);
    journal_close(second);
    struct journal *third = take_over(*state);
    assert_kinds(third, (uint32_t[]){NUMBER, UP_TO}, 2);
    journal_close(third);
    free(text);
    free(path);
}

/* ---- Calls that fail, or are the last ---- */

enum fault { FAILS, FAILS_AFTER, DIES, DIES_AFTER, FAULTS };

struct disk {
    struct journal_files files;
    enum fault fault;
    long calls_left; /* the number of calls until the faulty one */
    bool dead;
};

/* Whether this call is carried out; *ret_fails: whether it reports a failure. */
static bool is_done(struct disk *disk, bool *ret_fails)
{
    bool now = --disk->calls_left == 0;
    bool was_dead = disk->dead;
    bool after = disk->fault == FAILS_AFTER || disk->fault == DIES_AFTER;
    disk->dead = was_dead || (now && (disk->fault == DIES || disk->fault == DIES_AFTER));
    *ret_fails = was_dead || now;
    errno = ENOSPC;
    return !was_dead && (!now || after);
}

static int disk_open(void *data, const char *path, int flags)
{
    bool fails, done = is_done(data, &fails);
    int fd = done ? journal_files_system.open(NULL, path, flags) : -1;
    if (fails && fd >= 0) {
        close(fd);
    }
    errno = fails ? ENOSPC : errno;
    return fails ? -1 : fd;
}

/* A write that fails has written half of the bytes. */
static ssize_t disk_write(void *data, int fd, const void *bytes, size_t count, off_t offset)
{
    struct disk *disk = data;
    bool was_dead = disk->dead, fails, done = is_done(disk, &fails);
    ssize_t written =
        was_dead ? -1
                 : journal_files_system.write(NULL, fd, bytes, done ? count : count / 2, offset);
    errno = fails ? ENOSPC : errno;
    return fails ? -1 : written;
}

static int disk_truncate(void *data, int fd, off_t size)
{
    bool fails, done = is_done(data, &fails);
    int r = done ? journal_files_system.truncate(NULL, fd, size) : -1;
    return fails ? -1 : r;
}

static int disk_sync(void *data, int fd)
{
    bool fails, done = is_done(data, &fails);
    (void)fd;
    return fails || !done ? -1 : 0;
}

static int disk_rename(void *data, const char *from, const char *to)
{
    bool fails, done = is_done(data, &fails);
    int r = done ? journal_files_system.rename(NULL, from, to) : -1;
    errno = fails ? ENOSPC : errno;
    return fails ? -1 : r;
}

static int disk_remove(void *data, const char *path)
{
    bool fails, done = is_done(data, &fails);
    int r = done ? journal_files_system.remove(NULL, path) : -1;
    return fails ? -1 : r;
}

static int disk_lock(void *data, int fd)
{
    (void)data;
    return journal_files_system.lock(NULL, fd);
}

static void disk_init(struct disk *disk, enum fault fault, long at)
{
    *disk = (struct disk){.fault = fault,
                          .calls_left = at,
                          .files = {disk, disk_open, disk_write, disk_truncate, disk_sync,
                                    disk_rename, disk_remove, disk_lock}};
}

/* Appends numbers from 0 on; every seventh time all of them become one record. Returns how many
 * were appended. */
static uint32_t write_numbers(struct journal *journal, uint32_t numbers)
{
    uint32_t acknowledged = 0;
    for (uint32_t i = 0; i < 2 * numbers; i++) {
        if (i % 7 == 6) {
            (void)journal_compact(journal, UP_TO, &acknowledged, sizeof acknowledged, NULL);
        }
        if (acknowledged < numbers &&
            journal_append(journal, NUMBER, &acknowledged, sizeof acknowledged, NULL) == 0) {
            acknowledged++;
            (void)journal_sync(journal, NULL);
        }
    }
    return acknowledged;
}

static uint32_t read_numbers(struct journal *journal)
{
    struct journal_record record;
    uint32_t next = 0, number;
    while (journal_read(journal, &record)) {
        assert_int_equal(record.count, sizeof number);
        memcpy(&number, record.bytes, sizeof number);
        if (record.kind == UP_TO) {
            assert_int_equal(next, 0);
            next = number;
        } else {
            assert_int_equal(record.kind, NUMBER);
            assert_int_equal(number, next);
            next++;
        }
    }
    return next;
}

/* Returns false if the fault was not reached. */
static bool check_fault(enum fault fault, long at)
{
    enum { NUMBERS = 20 };
    char folder[TEST_FOLDER_BYTES];
    struct journal *journal = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct disk disk;
    uint32_t acknowledged = 0;
    test_folder_make(folder);
    disk_init(&disk, fault, at);
    const struct journal_options options = {.folder = folder, .sync = true, .files = &disk.files};
    if (journal_open(&options, &journal, &err) == 0) {
        drain(journal);
        acknowledged = write_numbers(journal, NUMBERS);
        journal_close(journal);
    } else {
        assert_non_null(strstr(err.text, "the disk is full"));
    }
    journal = open_in(folder, NULL, false);
    assert_non_null(journal);
    uint32_t there = read_numbers(journal);
    bool unannounced = fault == DIES_AFTER && there == acknowledged + 1;
    assert_true(there == acknowledged || unannounced);
    journal_close(journal);
    test_folder_remove(folder);
    return disk.calls_left <= 0;
}

static void any_call_may_fail_or_be_the_last(void **state)
{
    (void)state;
    for (enum fault fault = 0; fault < FAULTS; fault++) {
        long at = 1;
        while (check_fault(fault, at)) {
            at++;
        }
        assert_true(at > 60);
    }
}

static void a_full_disk_is_said_and_then_it_goes_on(void **state)
{
    struct disk disk;
    struct muster_err err = MUSTER_ERR_INIT;
    uint8_t first[TAIL];
    disk_init(&disk, FAILS, 0);
    struct journal *journal = open_in(*state, &disk.files, false);
    drain(journal);
    disk.calls_left = 1;
    fill(first, sizeof first, 1);
    assert_int_equal(journal_append(journal, TEXT, first, sizeof first, &err), MUSTER_EIO);
    assert_non_null(strstr(err.text, "the disk is full"));
    assert_non_null(strstr(err.text, *state));
    assert_int_equal(journal_append(journal, TEXT, "second", 6, &err), 0);
    journal_close(journal);
    journal = open_in(*state, NULL, false);
    struct journal_record record;
    assert_true(journal_read(journal, &record));
    assert_int_equal(record.count, 6);
    assert_false(journal_read(journal, &record));
    journal_close(journal);
}

static void after_a_failed_sync_nothing_is_appended(void **state)
{
    struct disk disk;
    struct muster_err err = MUSTER_ERR_INIT;
    disk_init(&disk, FAILS, 0);
    struct journal *journal = open_in(*state, &disk.files, true);
    drain(journal);
    assert_int_equal(journal_append(journal, TEXT, "a", 1, &err), 0);
    disk.calls_left = 1;
    assert_int_equal(journal_sync(journal, &err), MUSTER_EIO);
    assert_int_equal(journal_append(journal, TEXT, "b", 1, &err), MUSTER_EIO);
    assert_int_equal(journal_sync(journal, &err), MUSTER_EIO);
    journal_close(journal);
}

/* ---- kill -9 ---- */

static void append_and_tell(const char *folder, int to)
{
    struct journal *journal = open_in(folder, NULL, false);
    uint32_t next = read_numbers(journal);
    for (;; next++) {
        if (next % 500 == 499) {
            (void)journal_compact(journal, UP_TO, &next, sizeof next, NULL);
        }
        if (journal_append(journal, NUMBER, &next, sizeof next, NULL) < 0 ||
            write(to, &next, sizeof next) != sizeof next) {
            _exit(1);
        }
    }
}

/* All records that the writer reported exist, and at most one more. */
static void a_writer_that_is_killed_loses_nothing(void **state)
{
    uint32_t told = 0, number = 0;
    for (int kill_number = 0; kill_number < KILLS; kill_number++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            append_and_tell(*state, ends[1]);
        }
        close(ends[1]);
        for (int i = 0; i < 1 + kill_number * 17; i++) {
            assert_int_equal(read(ends[0], &number, sizeof number), sizeof number);
            told = number + 1;
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        while (read(ends[0], &number, sizeof number) == sizeof number) {
            told = number + 1;
        }
        close(ends[0]);
        struct journal *journal = open_in(*state, NULL, false);
        assert_non_null(journal);
        uint32_t there = read_numbers(journal);
        assert_in_range(there, told, told + 1);
        journal_close(journal);
    }
}

#define in_a_folder(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, test_folder_set_up, test_folder_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_a_folder(what_was_appended_is_read_again),
        in_a_folder(a_torn_end_is_cut_off_at_every_byte),
        in_a_folder(every_flipped_bit_is_found_and_named),
        in_a_folder(damage_before_a_torn_end),
        in_a_folder(records_that_changed_places),
        in_a_folder(a_newer_version_is_not_touched),
        in_a_folder(there_is_one_writer),
        in_a_folder(a_deleted_journal_is_written_again),
        in_a_folder(a_deleted_journal_may_be_anothers_meanwhile),
        in_a_folder(a_file_system_without_locks_is_for_who_has_a_lease),
        in_a_folder(what_the_one_before_writes_is_not_read),
        in_a_folder(who_takes_over_keeps_what_is_whole),
        in_a_folder(a_full_disk_is_said_and_then_it_goes_on),
        in_a_folder(after_a_failed_sync_nothing_is_appended),
        in_a_folder(a_writer_that_is_killed_loses_nothing),
        cmocka_unit_test(crc_is_crc32c),
        cmocka_unit_test(any_call_may_fail_or_be_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
