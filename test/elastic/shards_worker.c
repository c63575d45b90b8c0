/* A worker by leases as a process, for test_shards.py.
 *
 *     shards_worker FILE RECORDS SHARD EPOCHS [DATASET [STOP_AT [HOLD]]]
 *
 * FILE gets a line "epoch record" for each record that the worker has done, once its shard is
 * reported and durable; the worker sums up "ones" and "numbers". Before it reports shard STOP_AT it
 * creates FILE.stopped and waits until somebody opens the FIFO HOLD for writing. It prints
 * "done ONES NUMBERS" at the end.
 *
 * MUSTER_TEST_POISON: a record at which the worker dies. MUSTER_TEST_POISON_HOW: "kill" (as if from
 * outside), "exit", or "eat" (it takes more memory than its limit); otherwise it crashes.
 */
#include <muster/shards.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int complain(const struct muster_err *err)
{
    fprintf(stderr, "shards_worker: %s\n", err->text);
    return muster_code_exit(err->code);
}

static void wait_at(const char *file, const char *hold)
{
    char stopped[4096];
    (void)snprintf(stopped, sizeof stopped, "%s.stopped", file);
    FILE *mark = fopen(stopped, "w");
    if (mark) {
        fclose(mark);
    }
    int fd = hold ? open(hold, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        close(fd);
    }
}

/* Takes memory, at most 1 GiB: without a limit the worker survives it. */
static void eat_memory(void)
{
    enum { MIB = 1 << 20, EATEN_MIB = 1024 };
    for (int i = 0; i < EATEN_MIB; i++) {
        volatile char *piece = malloc(MIB);
        for (int at = 0; piece && at < MIB; at += 4096) {
            piece[at] = 1;
        }
    }
}

static void die_at(uint64_t record)
{
    const char *poison = getenv("MUSTER_TEST_POISON"), *how = getenv("MUSTER_TEST_POISON_HOW");
    if (!poison || !*poison || strtoull(poison, NULL, 10) != record) {
        return;
    }
    if (how && strcmp(how, "kill") == 0) {
        raise(SIGKILL);
    }
    if (how && strcmp(how, "exit") == 0) {
        exit(3);
    }
    if (how && strcmp(how, "eat") == 0) {
        eat_memory();
        return;
    }
    abort();
}

static int work(struct muster_shards *shards, const char *file, uint64_t stop_at, const char *hold,
                struct muster_err *err)
{
    struct muster_shard shard = MUSTER_SHARD_INIT;
    FILE *out = fopen(file, "a");
    int r = out ? 0 : muster_fail(err, MUSTER_EIO, "%s cannot be written", file);
    while (r == 0 && (r = muster_shards_fetch(shards, &shard, err)) == 1) {
        double sums[2] = {0, 0};
        for (size_t i = 0; i < shard.record_count; i++) {
            die_at(shard.records[i]);
            sums[0] += 1;
            sums[1] += (double)shard.records[i];
        }
        if (shard.number == stop_at) {
            wait_at(file, hold);
        }
        r = muster_shards_report(shards, shard.number, sums, err);
        r = r < 0 ? r : muster_shards_wait(shards, err);
        for (size_t i = 0; r == 0 && i < shard.record_count; i++) {
            fprintf(out, "%" PRIu64 " %" PRIu64 "\n", shard.epoch, shard.records[i]);
        }
        fflush(out);
    }
    if (out) {
        fclose(out);
    }
    return r;
}

int main(int argc, char **argv)
{
    struct muster_shards_options options = MUSTER_SHARDS_OPTIONS_INIT;
    struct muster_shards_info info = MUSTER_SHARDS_INFO_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_shards *shards = NULL;
    if (argc < 5) {
        fprintf(stderr, "shards_worker FILE RECORDS SHARD EPOCHS [DATASET [STOP_AT [HOLD]]]\n");
        return 64;
    }
    options.records = strtoull(argv[2], NULL, 10);
    options.shard = (uint32_t)strtoul(argv[3], NULL, 10);
    options.epochs = (uint32_t)strtoul(argv[4], NULL, 10);
    options.dataset = argc > 5 ? argv[5] : "test";
    options.sums = "ones,numbers";
    options.shuffle = 1;
    options.seed = 3;
    options.task = MUSTER_SHARDS_EVALUATE;
    int r = muster_shards_open(&options, &shards, &err);
    r = r < 0 ? r
              : work(shards, argv[1], argc > 6 ? strtoull(argv[6], NULL, 10) : 0,
                     argc > 7 ? argv[7] : NULL, &err);
    r = r < 0 ? r : muster_shards_query(shards, &info, &err);
    if (r == 0) {
        printf("done %.0f %.0f\n", info.sums[0], info.sums[1]);
        if (info.left_out > 0) {
            printf("left out %" PRIu64 "\n", info.left_out);
        }
    }
    bool late = !shards && r == MUSTER_EGONE; /* the job is done: no failure */
    muster_shards_close(shards);
    int code = r < 0 ? complain(&err) : 0;
    return late ? 0 : code;
}
