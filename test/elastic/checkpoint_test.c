/* Files of checkpoints: a state that was written is read again; a file is refused if it is cut at
 * any byte, has any bit flipped, has more bytes at its end, or is of another model; and which files
 * of a folder are kept.
 */
#include "base/testing/test_folder.h"
#include "client/checkpoint/file.h"
#include "client/checkpoint/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = CHECKPOINT_BLOCK_BYTES + 3, SMALL = 61, PIECES = 3 };

/* A state of three pieces, the second of which has no bytes. */
struct scene {
    char folder[TEST_FOLDER_BYTES];
    uint64_t sizes[PIECES];
    struct muster_elastic_piece pieces[PIECES];
    char *state;
    char *read;
    struct checkpoint_head head;
    struct checkpoint_place place;
    char name[CHECKPOINT_NAME_BYTES];
    char path[256];
    struct checkpoint_wanted wanted;
};

static bool never(void *context)
{
    (void)context;
    return false;
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static int save(struct scene *s, bool (*cancelled)(void *context), struct muster_err *err)
{
    return checkpoint_save(s->folder, 7, &s->head, s->sizes, s->state, cancelled, NULL, &s->place,
                           err);
}

/* From now on the test wants the checkpoint that was saved, under its name in the folder. */
static void want_saved(struct scene *s)
{
    checkpoint_name_write(&s->place.name, s->name);
    (void)snprintf(s->path, sizeof s->path, "%s/%s", s->folder, s->name);
    s->wanted = (struct checkpoint_wanted){.folder = s->folder,
                                           .name = s->name,
                                           .digest = s->place.digest,
                                           .version = s->head.version,
                                           .plan = s->head.plan,
                                           .pieces = s->pieces,
                                           .num_pieces = PIECES};
}

static struct scene *begin(size_t bytes)
{
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    test_folder_make(s->folder);
    s->state = malloc(bytes);
    s->read = calloc(1, bytes);
    assert_true(s->state && s->read);
    for (size_t i = 0; i < bytes; i++) {
        s->state[i] = (char)(i * 37 + i / 251);
    }
    s->sizes[0] = 5;
    s->sizes[2] = bytes - 5;
    for (size_t i = 0, at = 0; i < PIECES; at += s->sizes[i], i++) {
        s->pieces[i] = (struct muster_elastic_piece){s->read + at, s->sizes[i]};
    }
    s->head = (struct checkpoint_head){.lineage = UINT64_C(0xabc00000001),
                                       .version = 12,
                                       .epoch = 1,
                                       .position = 40,
                                       .plan = 99,
                                       .state_bytes = bytes,
                                       .num_pieces = PIECES};
    assert_int_equal(save(s, never, NULL), 0);
    want_saved(s);
    return s;
}

static void end(struct scene *s)
{
    test_folder_remove(s->folder);
    free(s->state);
    free(s->read);
    free(s);
}

static void expect(const struct scene *s, int code, const char *text)
{
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(checkpoint_load(&s->wanted, &err), code);
    if (text) {
        assert_non_null(strstr(err.text, text));
    }
}

static uint8_t *read_file(const struct scene *s, size_t *ret_count)
{
    struct stat status;
    int fd = open(s->path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &status) == 0);
    uint8_t *bytes = malloc((size_t)status.st_size + 1);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)status.st_size), status.st_size);
    close(fd);
    *ret_count = (size_t)status.st_size;
    return bytes;
}

static void write_file(const struct scene *s, const uint8_t *bytes, size_t count)
{
    int fd = open(s->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), (ssize_t)count);
    close(fd);
}

/* ---- One file ---- */

static void what_was_written_is_read(void **state)
{
    (void)state;
    struct scene *s = begin(LARGE);
    expect(s, 0, NULL);
    assert_memory_equal(s->read, s->state, LARGE);
    assert_int_equal(checkpoint_look(&s->wanted, NULL), 0);
    end(s);
}

static void a_short_file_is_refused(void **state)
{
    (void)state;
    struct scene *s = begin(SMALL);
    size_t count;
    uint8_t *bytes = read_file(s, &count);
    for (size_t cut = 0; cut < count; cut++) {
        write_file(s, bytes, cut);
        expect(s, MUSTER_EDATA, NULL);
        assert_int_equal(checkpoint_look(&s->wanted, NULL), MUSTER_EDATA);
    }
    bytes[count] = 0;
    write_file(s, bytes, count + 1);
    expect(s, MUSTER_EDATA, "and should have");
    free(bytes);
    end(s);
}

static void each_flipped_bit_is_found(void **state)
{
    (void)state;
    struct scene *s = begin(SMALL);
    size_t count;
    uint8_t *bytes = read_file(s, &count);
    for (size_t bit = 0; bit < 8 * count; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        write_file(s, bytes, count);
        expect(s, MUSTER_EDATA, NULL);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    write_file(s, bytes, count);
    expect(s, 0, NULL);
    free(bytes);
    end(s);
}

static void damage_in_the_second_block_is_named(void **state)
{
    (void)state;
    struct scene *s = begin(LARGE);
    size_t count;
    uint8_t *bytes = read_file(s, &count);
    bytes[count - 1] ^= 1;
    write_file(s, bytes, count);
    expect(s, MUSTER_EDATA, "damaged in the 3 bytes from byte 1048");
    assert_int_equal(checkpoint_look(&s->wanted, NULL), 0); /* its head is intact */
    free(bytes);
    end(s);
}

static void one_of_another_kind_is_not_taken_for_damaged(void **state)
{
    (void)state;
    struct scene *s = begin(SMALL);
    s->wanted.plan++;
    expect(s, MUSTER_ECONFLICT, "another data set");
    s->wanted.plan--;
    s->wanted.num_pieces--;
    expect(s, MUSTER_ECONFLICT, "it has 3 pieces, this worker's has 2");
    s->wanted.num_pieces++;
    s->pieces[0].size_bytes++;
    expect(s, MUSTER_ECONFLICT, "piece 0 has 5 bytes, this worker's has 6");
    end(s);
}

static void what_is_not_there_is_told_from_what_is_nowhere(void **state)
{
    (void)state;
    struct scene *s = begin(SMALL);
    s->head.version++;
    assert_int_equal(save(s, never, NULL), 0);
    assert_int_equal(unlink(s->path), 0);
    expect(s, MUSTER_EDATA, NULL); /* another checkpoint of this job exists */
    want_saved(s);
    assert_int_equal(unlink(s->path), 0);
    expect(s, MUSTER_ENOENT, "has no checkpoint of this job");
    s->wanted.name = "../outside";
    expect(s, MUSTER_EDATA, "no checkpoint is called so");
    end(s);
}

static size_t count_files(const struct scene *s)
{
    size_t found = 0;
    DIR *folder = opendir(s->folder);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        found += entry->d_name[0] != '.';
    }
    closedir(folder);
    return found;
}

static void one_that_is_not_written_leaves_nothing(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct scene *s = begin(SMALL);
    s->head.version++;
    assert_int_equal(save(s, always, &err), MUSTER_EABORTED);
    assert_int_equal(count_files(s), 1);
    end(s);
}

/* ---- A folder ---- */

static void put(struct scene *s, uint64_t lineage, uint64_t version)
{
    s->head.lineage = lineage;
    s->head.version = version;
    assert_int_equal(save(s, never, NULL), 0);
}

/* expected: "LINEAGE:VERSION" of all files, in order. */
static void expect_files(const struct scene *s, const char *expected)
{
    char text[256] = "";
    struct dirent **list = NULL;
    int count = scandir(s->folder, &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        struct checkpoint_name name;
        bool part;
        if (checkpoint_name_read(list[i]->d_name, &name, &part)) {
            size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, "%s%llx:%llu%s", used ? " " : "",
                           (unsigned long long)name.lineage, (unsigned long long)name.version,
                           part ? "part" : "");
        }
        free(list[i]);
    }
    free(list);
    assert_string_equal(text, expected);
}

static void prune(const struct scene *s, const struct checkpoint_name *list, size_t count,
                  uint32_t keep)
{
    const struct folder_known known = {list, count, list[count - 1].lineage};
    folder_prune(s->folder, &known, keep);
}

static struct checkpoint_name name_of(struct scene *s, uint64_t lineage, uint64_t version)
{
    put(s, lineage, version);
    return s->place.name;
}

static void what_the_job_may_go_back_to_is_kept(void **state)
{
    (void)state;
    const uint64_t job = UINT64_C(0xabc00000000);
    struct scene *s = begin(SMALL);
    assert_int_equal(unlink(s->path), 0);
    put(s, job + 1, 5);
    put(s, job + 1, 10);
    struct checkpoint_name known[] = {name_of(s, job + 1, 20), {0}, {0}};
    put(s, job + 1, 30); /* from a log that was cut at 20 */
    known[1] = name_of(s, job + 2, 40);
    put(s, job + 1, 50); /* from that log, too */
    put(s, job + 2, 60); /* not in the journal yet */
    put(s, UINT64_C(0xdef00000001), 1);
    prune(s, known, 2, 3);
    expect_files(s, "abc00000001:10 abc00000001:20 abc00000002:40 abc00000002:60 def00000001:1");
    prune(s, known, 2, 2);
    expect_files(s, "abc00000001:20 abc00000002:40 abc00000002:60 def00000001:1");
    prune(s, known, 2, 1);
    expect_files(s, "abc00000002:40 abc00000002:60 def00000001:1");
    end(s);
}

static void what_a_dead_writer_has_left_goes(void **state)
{
    (void)state;
    struct scene *s = begin(SMALL);
    char part[CHECKPOINT_NAME_BYTES], path[256];
    checkpoint_name_write_part(&s->place.name, 3, part);
    (void)snprintf(path, sizeof path, "%s/%s", s->folder, part);
    assert_int_equal(link(s->path, path), 0);
    expect_files(s, "abc00000001:12 abc00000001:12part");
    prune(s, &s->place.name, 1, 2);
    expect_files(s, "abc00000001:12");
    end(s);
}

static void names_are_read_as_they_are_written(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        "x",
        "0000000000000001-000000000012-0000000000000003.checkpoint ",
        "0000000000000001-12-0000000000000003.checkpoint",
        "0000000000000001-000000000012-0000000000000003.checkpoint.part",
        "0000000000000001-000000000012-0000000000000003.checkpoint.7.part",
        "0000000000000001-000000000012-0000000000000003",
        "+000000000000001-000000000012-0000000000000003.checkpoint",
    };
    struct checkpoint_name name = {1, 12, 3}, read;
    char text[CHECKPOINT_NAME_BYTES];
    bool part;
    checkpoint_name_write(&name, text);
    assert_string_equal(text, "0000000000000001-000000000012-0000000000000003.checkpoint");
    assert_true(checkpoint_name_read(text, &read, &part) && !part);
    assert_memory_equal(&name, &read, sizeof name);
    name = (struct checkpoint_name){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    checkpoint_name_write_part(&name, UINT64_MAX, text);
    assert_true(checkpoint_name_read(text, &read, &part) && part);
    assert_memory_equal(&name, &read, sizeof name);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(checkpoint_name_read(others[i], &read, &part));
    }
}

static void a_file_is_no_folder(void **state)
{
    (void)state;
    char folder[TEST_FOLDER_BYTES], path[256];
    char *ret = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    test_folder_make(folder);
    (void)snprintf(path, sizeof path, "%s/model.pt", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(folder_open(path, &ret, &err), MUSTER_ECREATE);
    assert_non_null(strstr(err.text, "model.pt: Not a directory"));
    free(ret);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_short_file_is_refused),
        cmocka_unit_test(each_flipped_bit_is_found),
        cmocka_unit_test(damage_in_the_second_block_is_named),
        cmocka_unit_test(one_of_another_kind_is_not_taken_for_damaged),
        cmocka_unit_test(what_is_not_there_is_told_from_what_is_nowhere),
        cmocka_unit_test(one_that_is_not_written_leaves_nothing),
        cmocka_unit_test(what_the_job_may_go_back_to_is_kept),
        cmocka_unit_test(what_a_dead_writer_has_left_goes),
        cmocka_unit_test(names_are_read_as_they_are_written),
        cmocka_unit_test(a_file_is_no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
