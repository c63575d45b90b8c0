/* Prints the measurements, for people and as JSON. Layer: program. */
#include "perf/perf.h"

#include "comm/state/types.h"
#include "comm/system/processor.h"
#include "schedule/choose.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the share of the data that must cross the bus, as nccl-tests define it. */
static double bus_factor(enum muster_collective kind, int ranks)
{
    double n = ranks;
    switch (kind) {
    case MUSTER_ALL_REDUCE: return 2 * (n - 1) / n;
    case MUSTER_ALL_GATHER:
    case MUSTER_REDUCE_SCATTER:
    case MUSTER_ALL_TO_ALL:
    case MUSTER_GATHER:
    case MUSTER_SCATTER: return (n - 1) / n;
    case MUSTER_REDUCE:
    case MUSTER_BROADCAST:
    case MUSTER_BARRIER:
    case MUSTER_SEND:
    case MUSTER_RECV: return 1;
    }
    return 1;
}

static double gigabytes_per_second(const struct perf_result *r)
{
    return r->p50_us > 0 ? (double)r->bytes / r->p50_us / 1e3 : 0;
}

static void print_json(const struct perf_options *o, const struct perf_result *results, int num,
                       const char *description)
{
    json_t *list = json_array();
    for (int i = 0; i < num; i++) {
        const struct perf_result *r = &results[i];
        double algorithm = gigabytes_per_second(r);
        json_array_append_new(list,
                              json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "bytes",
                                        (json_int_t)r->bytes, "calls", (json_int_t)r->calls,
                                        "p50_us", r->p50_us, "p99_us", r->p99_us, "min_us",
                                        r->least_us, "max_us", r->most_us, "algbw_gbps", algorithm,
                                        "busbw_gbps", algorithm * bus_factor(o->kind, o->ranks),
                                        "wrong", (json_int_t)r->wrong));
    }
    json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:i, s:b, s:b, s:o}", "collective",
                            types_kind_name(o->kind), "type", muster_type_name(o->type), "op",
                            muster_op_name(o->op), "world", description, "ranks", o->ranks,
                            "direct", o->direct, "touch", o->touch, "results", list);
    (void)json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    (void)printf("\n");
    json_decref(all);
}

void perf_print(const struct perf_options *o, const struct perf_result *results, int num,
                const char *description)
{
    if (o->json) {
        print_json(o, results, num, description);
        return;
    }
    (void)printf("# %s%s%s\n", description, o->direct ? ", memory of muster_comm_alloc" : "",
                 o->touch ? ", buffers rewritten before each call" : "");
    (void)printf("%12s %9s %12s %12s %12s %9s %9s %6s\n", "bytes", "calls", "p50 us", "p99 us",
                 "min us", "alg GB/s", "bus GB/s", "wrong");
    for (int i = 0; i < num; i++) {
        const struct perf_result *r = &results[i];
        double algorithm = gigabytes_per_second(r);
        (void)printf("%12zu %9zu %12.3f %12.3f %12.3f %9.3f %9.3f %6zu\n", r->bytes, r->calls,
                     r->p50_us, r->p99_us, r->least_us, algorithm,
                     algorithm * bus_factor(o->kind, o->ranks), r->wrong);
    }
}

/* Writes a size in the usual short form. */
static const char *short_size(size_t bytes, char ret[32])
{
    bool mib = bytes % (1 << 20) == 0;
    (void)snprintf(ret, 32, "%zu %s", bytes >> (mib ? 20 : 10), mib ? "MiB" : "KiB");
    return ret;
}

static void print_blocks(const struct schedule_tuning *row)
{
    char block[32], below[32];
    (void)printf("  blocks of");
    for (int i = 0; i < SCHEDULE_BLOCK_SIZES; i++) {
        (void)printf(" %s", short_size(row->blocks[i].block_bytes, block));
        if (row->blocks[i].below_bytes == SIZE_MAX) {
            break;
        }
        (void)printf(" below %s,", short_size(row->blocks[i].below_bytes, below));
    }
}

enum { READ_BYTES = 96 };

static const char *messages_read(const struct schedule_tuning *row, char ret[READ_BYTES])
{
    char from[32], above[32];
    if (row->offers_from_bytes == SIZE_MAX) {
        return "of no size";
    }
    (void)snprintf(ret, READ_BYTES, "from %s where more than %s wait",
                   short_size(row->offers_from_bytes, from),
                   short_size(row->offers_above_bytes, above));
    return ret;
}

static void print_tunings(enum schedule_processor here)
{
    (void)printf("\nprocessors (MUSTER_TUNING=NAME takes another row)\n");
    for (int p = 0; p < SCHEDULE_PROCESSORS; p++) {
        const struct schedule_tuning *row = &schedule_tunings[p];
        char below[32], blocks[32], messages[READ_BYTES], retakes[32], ring[32], shared[32];
        (void)printf("%c %-8s", p == (int)here ? '*' : ' ', row->name);
        print_blocks(row);
        (void)printf(
            "\n            readers claim lines: %s, writers demote lines: %s, fetch them "
            "ahead: %s, within a message: %s, for rooted calls: %u calls\n            zero-copy of 2 ranks writes both outputs at once: %s%s\n            "
            "rings of messages: %s, where ranks share processors %s\n            "
            "may be read out of the other's memory: blocks from %s, messages %s\n            "
            "a line that was read costs its next writer: %u ns, up to %s\n            measured: %s\n",
            row->claims ? "yes" : "no", row->demotes ? "yes" : "no", row->fetches ? "yes" : "no",
            row->puts_ahead ? "yes" : "no", row->slots_ahead,
            row->twin_below_bytes == SIZE_MAX ? "always" : "below ",
            row->twin_below_bytes == SIZE_MAX ? "" : short_size(row->twin_below_bytes, below),
            short_size(row->ring_bytes, ring), short_size(row->shared_ring_bytes, shared),
            short_size(row->reads_from_bytes, blocks), messages_read(row, messages), row->retake_ns,
            short_size(row->retakes_to_bytes, retakes), row->measured);
    }
}

static void print_choices(const struct schedule_world *world, const char *name)
{
    struct schedule_choice last = {0};
    for (size_t bytes = 1; bytes <= (size_t)1 << 30; bytes *= 2) {
        /* the limits lie at powers of two, or one above */
        for (size_t b = bytes; b <= bytes + 1; b++) {
            struct schedule_choice c = schedule_choose(world, b);
            if (b > 1 && c.algorithm == last.algorithm && c.block_bytes == last.block_bytes) {
                continue;
            }
            char block[48] = "";
            if (c.block_bytes) {
                (void)snprintf(block, sizeof block, ", blocks of %zu KiB", c.block_bytes / 1024);
            }
            (void)printf("%12zu  %-28s %s%s\n", b, name, schedule_algorithm_name(c.algorithm),
                         block);
            last = c;
        }
    }
}

int perf_print_tuning(int ranks, struct muster_err *err)
{
    static const char *const worlds[] = {"one host", "one host, oversubscribed",
                                         "one host, muster_comm_alloc", "several hosts"};
    enum schedule_processor here;
    int r = processor_find(&here, err);
    if (r < 0) {
        return r;
    }
    (void)printf("all-reduce of %d ranks\n%12s  %-28s %s\n", ranks, "from bytes", "world",
                 "algorithm");
    for (int w = 0; w < 4; w++) {
        struct schedule_world world = {ranks, w < 3, w == 2, w == 1, &schedule_tunings[here]};
        print_choices(&world, worlds[w]);
    }
    print_tunings(here);
    return 0;
}
