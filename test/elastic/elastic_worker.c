/* elastic_worker RECORDS EPOCHS BATCH MICRO_BATCHES SLEEP_MS: a worker as a process, for tests that
 * kill it. Its model is that of model.h.
 *
 * MUSTER_TEST_GO: a file; once it exists, SLEEP_MS is 0. MUSTER_TEST_HOST: the worker's address.
 *
 * MUSTER_TEST_GATE: a file; the worker computes no pass of a step whose number is greater than the
 * file's size in bytes, until MUSTER_TEST_GO exists.
 *
 * MUSTER_TEST_PER_WORKER: MICRO_BATCHES is the number for each worker.
 *
 * MUSTER_SET_ASIDE: a step may have fewer records than its plan.
 *
 * MUSTER_TEST_FLIP: a step in which a bit of its parameters changes by itself.
 *
 * The worker prints a line for each step that it has committed (version, workers, the time) and for
 * each checkpoint. On SIGTERM it leaves, and exits with 143. At its end it prints how it ended, the
 * version, the number of records whose weight is not EPOCHS, and a digest of the whole model.
 */
#include "base/testing/test_wait.h"
#include "model.h"

#include <muster/muster.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef MUSTER_PLANTED
uint64_t planted_version; /* of the step that is under way: planted_worker.c */
#endif

static struct muster_elastic *job;

static void on_term(int number)
{
    (void)number;
    muster_elastic_leave(job);
}

/* Returns how many records were trained, from the smallest mean of a trained record. */
static uint32_t count_trained(const float *mean)
{
    float least = 1;
    for (int i = 0; i < RECORDS_MAX; i++) {
        least = mean[i] > 0 && mean[i] < least ? mean[i] : least;
    }
    return (uint32_t)(1 / least + 0.5f);
}

static void update(struct model *m, const float *mean, uint32_t planned)
{
    model_update(m, mean, getenv("MUSTER_SET_ASIDE") ? count_trained(mean) : planned);
}

static void print_step(const struct muster_elastic_pass *pass)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)printf("step %" PRIu64 " %d %lld\n", pass->version, pass->size,
                 (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    (void)fflush(stdout);
}

/* Prints a line for each checkpoint that the coordinator's journal has, and for the one from which
 * this worker began. */
static void print_checkpoint(void)
{
    static uint64_t checkpoint, restored;
    struct muster_elastic_info info = MUSTER_ELASTIC_INFO_INIT;
    (void)muster_elastic_query(job, &info, NULL);
    if (info.restored != restored) {
        (void)printf("restored %" PRIu64 "\n", info.restored);
    }
    if (info.checkpoint != checkpoint) {
        (void)printf("checkpoint %" PRIu64 "\n", info.checkpoint);
    }
    restored = info.restored;
    checkpoint = info.checkpoint;
    (void)fflush(stdout);
}

/* Takes more memory than the control group's limit allows; without a limit, 1 GiB. */
static void eat_memory(void)
{
    enum { MIB = 1 << 20, EATEN_MIB = 1024, PAGE = 4096 };
    for (int i = 0; i < EATEN_MIB; i++) {
        volatile char *piece = malloc(MIB);
        for (int at = 0; piece && at < MIB; at += PAGE) {
            piece[at] = 1;
        }
    }
}

/* MUSTER_TEST_POISON: "RECORD HOW" says what the worker does at this record: it crashes, kills
 * itself as if from outside, exits, takes all memory, hangs, or reports an error. "RECORD HOW
 * PATH": only while the file PATH exists. */
static int meet_poison(const struct muster_elastic_pass *pass, struct muster_err *err)
{
    const char *poison = getenv("MUSTER_TEST_POISON");
    unsigned long long record;
    char how[16], path[256] = "/";
    bool meant = poison && sscanf(poison, "%llu %15s %255s", &record, how, path) >= 2;
    for (size_t i = 0; meant && i < pass->record_count; i++) {
        if (pass->records[i] != record || access(path, F_OK) != 0) {
            continue;
        }
        if (strcmp(how, "crash") == 0) {
            abort();
        }
        if (strcmp(how, "kill") == 0) {
            (void)kill(getpid(), SIGKILL);
        }
        if (strcmp(how, "exit") == 0) {
            _exit(3);
        }
        if (strcmp(how, "eat") == 0) {
            eat_memory();
        }
        while (strcmp(how, "hang") == 0) {
            (void)pause();
        }
        return muster_elastic_fail(job, "a record that is none", err);
    }
    return 0;
}

static void flip_a_bit(struct model *m, uint64_t version)
{
    static bool flipped;
    const char *flip = getenv("MUSTER_TEST_FLIP");
    uint32_t bits;
    if (flip && !flipped && strtoull(flip, NULL, 10) == version) {
        memcpy(&bits, &m->parameters[3], sizeof bits);
        bits ^= UINT32_C(1) << 22;
        memcpy(&m->parameters[3], &bits, sizeof bits);
        flipped = true;
    }
}

static bool may_go(void)
{
    const char *go = getenv("MUSTER_TEST_GO");
    return go && access(go, F_OK) == 0;
}

/* Whether the step must wait, so that a job lasts until all faults have come, however fast its
 * workers are. */
static bool gate_is_shut(uint64_t version)
{
    const char *gate = getenv("MUSTER_TEST_GATE");
    struct stat file;
    return gate && !may_go() && (stat(gate, &file) != 0 || (uint64_t)file.st_size < version);
}

/* Gives faults time to hit the worker within a pass. */
static void wait_in_pass(uint64_t version, int64_t sleep_ms)
{
    if (!may_go()) {
        test_let_pass(sleep_ms);
    }
    while (gate_is_shut(version)) {
        test_let_pass(1);
    }
}

static int train(struct model *m, int64_t sleep_ms, struct muster_err *err)
{
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    const struct muster_elastic_piece pieces[] = {
        {m->ledger, sizeof m->ledger}, {m->parameters, sizeof m->parameters + sizeof m->momentum}};
    static float gradient[ALL], mean[ALL];
    int r = muster_elastic_state(job, pieces, 2, err);
    while (r >= 0 && (r = muster_elastic_next(job, &pass, err)) == 1) {
        print_checkpoint();
        flip_a_bit(m, pass.version);
#ifdef MUSTER_PLANTED
        planted_version = pass.version;
#endif
        model_gradient(m, pass.records, pass.record_count, gradient);
        if (pass.record_count > 0) {
            wait_in_pass(pass.version, sleep_ms);
        }
        r = meet_poison(&pass, err);
        r = r < 0 ? r : muster_elastic_step(job, gradient, ALL, MUSTER_F32, NULL, mean, err);
        if (r == 1) {
            update(m, mean, pass.step_records);
            print_step(&pass);
        }
    }
    return r;
}

static bool print_end(const struct muster_elastic_options *o, const struct model *m, int code,
                      const char *why)
{
    struct muster_elastic_info info = MUSTER_ELASTIC_INFO_INIT;
    (void)muster_elastic_query(job, &info, NULL);
    (void)printf("%s version=%" PRIu64 " wrong=%d model=%016" PRIx64 " recoveries=%" PRIu64
                 " recovery_ms=%.2f %s\n",
                 info.finished ? "finished"
                 : info.left   ? "left"
                 : code < 0    ? muster_code_name(code)
                               : "ended",
                 info.version, model_count_wrong(m, o->records, o->epochs), model_digest(m),
                 info.recoveries, (double)info.recovery_ns / 1e6, why);
    return info.left;
}

int main(int count, char **words)
{
    static struct model model;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic_options options = MUSTER_ELASTIC_OPTIONS_INIT;
    if (count != 6) {
        return 64;
    }
    options.records = strtoull(words[1], NULL, 10);
    options.epochs = (uint32_t)strtoul(words[2], NULL, 10);
    options.batch = (uint32_t)strtoul(words[3], NULL, 10);
    uint32_t micro_batches = (uint32_t)strtoul(words[4], NULL, 10);
    bool per_worker = getenv("MUSTER_TEST_PER_WORKER") != NULL;
    options.micro_batches = per_worker ? 0 : micro_batches;
    options.micro_batches_per_worker = per_worker ? micro_batches : 0;
    options.shuffle = 1;
    const char *host = getenv("MUSTER_TEST_HOST");
    options.host = host ? host : "127.0.0.1";
    int r =
        options.records > RECORDS_MAX ? MUSTER_EINVAL : muster_elastic_open(&options, &job, &err);
    if (r < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return muster_code_exit(r);
    }
    const struct sigaction leave = {.sa_handler = on_term};
    (void)sigaction(SIGTERM, &leave, NULL);
    r = train(&model, strtol(words[5], NULL, 10), &err);
    bool left = print_end(&options, &model, r, err.text);
    (void)signal(SIGTERM, SIG_IGN);
    muster_elastic_close(job);
    return r < 0 ? muster_code_exit(r) : left ? 128 + SIGTERM : 0;
}
