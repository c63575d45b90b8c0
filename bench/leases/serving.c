/* Workers of one data set, each a thread: every shard is fetched and reported by itself, and is in
 * the coordinator's journal at the end.
 *
 *     leases_serving DATASET WORKERS SHARD SHARDS
 *
 * prints {"leases_per_s": …, "records_per_s": …}. */
#include <muster/shards.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORKERS_MAX = 64 };

struct worker {
    struct muster_shards *shards;
    uint64_t sum;
    pthread_t thread;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check(int code, const struct muster_err *err)
{
    if (code < 0) {
        fprintf(stderr, "leases_serving: %s\n", err->text);
        exit(1);
    }
}

static void *work(void *context)
{
    struct worker *w = context;
    struct muster_shard shard = MUSTER_SHARD_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    while ((r = muster_shards_fetch(w->shards, &shard, &err)) == 1) {
        for (size_t i = 0; i < shard.record_count; i++) {
            w->sum += shard.records[i];
        }
        check(muster_shards_report(w->shards, shard.number, NULL, &err), &err);
    }
    check(r, &err);
    check(muster_shards_wait(w->shards, &err), &err);
    return NULL;
}

/* Returns how long it took, in seconds; ret_sum gets the sum of the numbers of all records that
 * came. */
static double run_all(struct worker *workers, size_t count, uint64_t *ret_sum)
{
    double began_s = now_s();
    *ret_sum = 0;
    for (size_t i = 0; i < count; i++) {
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        *ret_sum += workers[i].sum;
    }
    return now_s() - began_s;
}

int main(int argc, char **argv)
{
    struct muster_shards_options options = MUSTER_SHARDS_OPTIONS_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    struct worker workers[WORKERS_MAX] = {0};
    size_t count = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
    if (count == 0 || count > WORKERS_MAX) {
        fprintf(stderr, "leases_serving DATASET WORKERS SHARD SHARDS\n");
        return 64;
    }
    options.dataset = argv[1];
    options.shard = (uint32_t)strtoul(argv[3], NULL, 10);
    options.records = options.shard * strtoull(argv[4], NULL, 10);
    options.epochs = 1;
    options.shuffle = 1;
    options.task = MUSTER_SHARDS_EVALUATE;
    for (size_t i = 0; i < count; i++) {
        check(muster_shards_open(&options, &workers[i].shards, &err), &err);
    }
    uint64_t sum;
    double spent_s = run_all(workers, count, &sum);
    if (sum != options.records / 2 * (options.records - 1) +
                   options.records % 2 * ((options.records - 1) / 2)) {
        fprintf(stderr, "leases_serving: records were lost, or came twice\n");
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        muster_shards_close(workers[i].shards);
    }
    printf("{\"leases_per_s\": %.0f, \"records_per_s\": %.0f}\n", strtod(argv[4], NULL) / spent_s,
           (double)options.records / spent_s);
    return 0;
}
