/* Checks how archives are unpacked: those of tar(1) and of the pod's program, and hostile ones. */
#include "cli/copy/tar.h"

#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "cli/copy/unpack.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[TEST_FOLDER_BYTES];

static int make_folder(void **state)
{
    (void)state;
    test_folder_make(folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

/* ---- making archives ---- */

struct archive {
    char bytes[64 << 10];
    size_t used;
};

static void add_block(struct archive *a, char type, const char *name, const char *target,
                      const char *content, size_t count)
{
    unsigned char *block = (unsigned char *)a->bytes + a->used;
    unsigned sum = 0;
    memset(block, 0, TAR_BLOCK_BYTES);
    strncpy((char *)block, name, 100);
    snprintf((char *)block + 100, 8, "%07o", 0644);
    snprintf((char *)block + 124, 12, "%011o", (unsigned)count % (1u << 30));
    snprintf((char *)block + 136, 12, "%011o", 1000000000);
    memset(block + 148, ' ', 8);
    block[156] = (unsigned char)type;
    strncpy((char *)block + 157, target, 100);
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++) {
        sum += block[i];
    }
    snprintf((char *)block + 148, 7, "%06o", sum);
    a->used += TAR_BLOCK_BYTES;
    memcpy(a->bytes + a->used, content, count);
    a->used += (count + TAR_BLOCK_BYTES - 1) / TAR_BLOCK_BYTES * TAR_BLOCK_BYTES;
    assert_true(a->used < sizeof a->bytes - 4 * TAR_BLOCK_BYTES);
}

static void add_file(struct archive *a, const char *name, const char *text)
{
    add_block(a, '0', name, "", text, strlen(text));
}

static void add_pax(struct archive *a, const char *key, const char *value)
{
    char record[512];
    size_t length = strlen(key) + strlen(value) + 3;
    size_t digits = length + 2 > 99 ? 3 : 2;
    snprintf(record, sizeof record, "%zu %s=%s\n", length + digits, key, value);
    assert_int_equal(strlen(record), length + digits);
    add_block(a, 'x', "pax", "", record, strlen(record));
}

static void end(struct archive *a)
{
    memset(a->bytes + a->used, 0, 2 * TAR_BLOCK_BYTES);
    a->used += 2 * TAR_BLOCK_BYTES;
}

/* Unpacks the archive in pieces of `step` bytes. */
static int unpack(const struct archive *a, size_t step, bool *ret_over, struct muster_err *err)
{
    struct unpack u;
    struct tar_reader reader;
    char *to = file_join(folder, "to");
    int r = 0;
    unpack_init(&u, to);
    const struct tar_events events = unpack_events(&u);
    tar_init(&reader, &events);
    for (size_t at = 0; at < a->used && r == 0; at += step) {
        r = tar_feed(&reader, a->bytes + at, a->used - at < step ? a->used - at : step, err);
    }
    *ret_over = tar_is_over(&reader);
    tar_done(&reader);
    unpack_done(&u);
    free(to);
    return r;
}

static void expect_file(const char *name, const char *text)
{
    char *path = file_join(folder, name), *found = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(file_read(path, 1 << 20, &found, NULL, &err), 0);
    assert_string_equal(found, text);
    free(found);
    free(path);
}

static void expect_missing(const char *name)
{
    char *path = file_join(folder, name);
    assert_false(file_exists(path));
    free(path);
}

/* ---- tests ---- */

static void a_folder_comes_whole_in_pieces_of_any_size(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 7, 511, 512, 513, 1 << 16};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct archive a = {.used = 0};
        bool over = false;
        add_block(&a, '5', "x/", "", "", 0);
        add_block(&a, '5', "x/empty/", "", "", 0);
        add_file(&a, "x/empty/not", "inside");
        add_file(&a, "x/a", "hello");
        add_file(&a, "x/none", "");
        add_block(&a, '2', "x/link", "a", "", 0);
        add_block(&a, '6', "x/pipe", "", "", 0);
        add_pax(&a, "path", "x/a file of a long name, by a header of its own");
        add_file(&a, "x/short", "by pax");
        add_file(&a, "x/after", "its own name");
        end(&a);
        assert_int_equal(unpack(&a, steps[i], &over, NULL), 0);
        assert_true(over);
        expect_file("to/a", "hello");
        expect_file("to/none", "");
        expect_file("to/empty/not", "inside");
        expect_file("to/link", "hello");
        expect_file("to/a file of a long name, by a header of its own", "by pax");
        expect_file("to/after", "its own name");
        expect_missing("to/pipe");
        char *made = file_join(folder, "to/a");
        struct stat info;
        assert_int_equal(stat(made, &info), 0);
        assert_int_equal(info.st_mtime, 1000000000);
        free(made);
    }
}

static void a_single_file_becomes_the_destination(void **state)
{
    (void)state;
    struct archive a = {.used = 0};
    bool over;
    add_file(&a, "x", "model");
    end(&a);
    assert_int_equal(unpack(&a, 100, &over, NULL), 0);
    expect_file("to", "model");
}

static void nothing_is_written_elsewhere(void **state)
{
    (void)state;
    static const char *const names[] = {"../out", "/out",       "x/../../out", "x/../out",
                                        "y",      "x/",         "x//out",      "x/./out",
                                        "xy/out", "x/a/../out", "x/.",         "x/link/out"};
    char *outside = file_join(folder, "outside"), *out = file_join(outside, "out");
    assert_int_equal(file_mkdir(outside, 0700, NULL), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct archive a = {.used = 0};
        struct muster_err err = MUSTER_ERR_INIT;
        bool over;
        add_block(&a, '5', "x", "", "", 0);
        add_block(&a, '5', "x/a", "", "", 0);
        add_block(&a, '2', "x/link", outside, "", 0);
        add_file(&a, names[i], "bad");
        end(&a);
        assert_true(unpack(&a, 1000, &over, &err) < 0);
        assert_false(over);
        assert_false(file_exists(out));
        expect_missing("out");
        expect_missing("to/out");
    }
    free(out);
    free(outside);
}

/* An earlier entry has made a link in place of the file itself. */
static void a_link_is_not_written_through(void **state)
{
    (void)state;
    struct archive a = {.used = 0};
    struct muster_err err = MUSTER_ERR_INIT;
    bool over;
    char *target = file_join(folder, "precious");
    assert_int_equal(file_write(target, "old", 3, 0600, NULL), 0);
    add_block(&a, '5', "x", "", "", 0);
    add_block(&a, '2', "x/f", target, "", 0);
    add_file(&a, "x/f", "new");
    end(&a);
    assert_int_equal(unpack(&a, 1000, &over, &err), MUSTER_ECREATE);
    expect_file("precious", "old");
    free(target);
}

static void a_torn_file_is_removed(void **state)
{
    (void)state;
    struct archive a = {.used = 0};
    bool over;
    add_block(&a, '5', "x", "", "", 0);
    add_file(&a, "x/whole", "w");
    add_file(&a, "x/torn", "most of it");
    a.used -= TAR_BLOCK_BYTES - 4;
    assert_int_equal(unpack(&a, 64, &over, NULL), 0);
    assert_false(over);
    expect_file("to/whole", "w");
    expect_missing("to/torn");
}

struct pipe_reader {
    int fd;
    size_t count;
};

static void *read_pipe(void *context)
{
    struct pipe_reader *reader = context;
    struct pollfd ready = {.fd = reader->fd, .events = POLLIN};
    char bytes[4096];
    while (poll(&ready, 1, -1) == 1) {
        ssize_t n = read(reader->fd, bytes, sizeof bytes);
        if (n <= 0) {
            break;
        }
        reader->count += (size_t)n;
    }
    return NULL;
}

static void a_full_pipe_is_waited_for(void **state)
{
    (void)state;
    static char content[40000];
    struct archive a = {.used = 0};
    pthread_t thread;
    bool over;
    char *path = file_join(folder, "to");
    assert_int_equal(mkfifo(path, 0600), 0);
    struct pipe_reader reader = {.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    assert_true(fcntl(reader.fd, F_SETPIPE_SZ, 4096) > 0);
    assert_int_equal(pthread_create(&thread, NULL, read_pipe, &reader), 0);
    add_block(&a, '0', "x", "", content, sizeof content);
    end(&a);
    assert_int_equal(unpack(&a, sizeof a.bytes, &over, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(reader.count, sizeof content);
    close(reader.fd);
    free(path);
}

static void an_error_is_told(void **state)
{
    (void)state;
    struct archive a = {.used = 0};
    struct muster_err err = MUSTER_ERR_INIT;
    bool over;
    add_block(&a, '5', "x", "", "", 0);
    add_pax(&a, "MUSTER.error", "the volumes have no model.pt");
    assert_int_equal(unpack(&a, 64, &over, &err), MUSTER_ENOENT);
    assert_string_equal(err.text, "the volumes have no model.pt");
}

static void expect_refused(struct archive *a)
{
    struct muster_err err = MUSTER_ERR_INIT;
    bool over;
    assert_int_equal(unpack(a, 512, &over, &err), MUSTER_EPROTO);
    assert_false(over);
}

static void what_is_no_archive_is_refused(void **state)
{
    (void)state;
    struct archive a = {.used = 0};
    memset(a.bytes, 'n', TAR_BLOCK_BYTES);
    a.used = TAR_BLOCK_BYTES;
    expect_refused(&a);

    a.used = 0;
    add_block(&a, '5', "x", "", "", 0);
    a.bytes[3] = 'y'; /* the checksum is that of another name */
    expect_refused(&a);

    static const char *const records[] = {"5 a\n",
                                          "99 path=a\n",
                                          "path=a\n",
                                          "0 a=b\n",
                                          "9 size=x\n",
                                          "9 path=a ",
                                          "30 size=9999999999999999999\n"};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        a.used = 0;
        add_block(&a, 'x', "pax", "", records[i], strlen(records[i]));
        add_file(&a, "x", "");
        expect_refused(&a);
    }
}

int main(void)
{
#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        ON_DISK(a_folder_comes_whole_in_pieces_of_any_size),
        ON_DISK(a_single_file_becomes_the_destination),
        ON_DISK(nothing_is_written_elsewhere),
        ON_DISK(a_link_is_not_written_through),
        ON_DISK(a_torn_file_is_removed),
        ON_DISK(a_full_pipe_is_waited_for),
        ON_DISK(an_error_is_told),
        ON_DISK(what_is_no_archive_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
