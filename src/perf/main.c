/* The command line of `muster perf`; its help is in src/cli/command/commands.def. Layer: program.
 */
#include "perf/perf.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum muster_collective kind;
} kinds[] = {
    {"allreduce", MUSTER_ALL_REDUCE}, {"reduce", MUSTER_REDUCE},
    {"broadcast", MUSTER_BROADCAST},  {"reducescatter", MUSTER_REDUCE_SCATTER},
    {"allgather", MUSTER_ALL_GATHER}, {"gather", MUSTER_GATHER},
    {"scatter", MUSTER_SCATTER},      {"alltoall", MUSTER_ALL_TO_ALL},
    {"barrier", MUSTER_BARRIER},
};

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, 'n'},  {"from", required_argument, NULL, 'b'},
    {"to", required_argument, NULL, 'e'},     {"type", required_argument, NULL, 't'},
    {"op", required_argument, NULL, 'r'},     {"seconds", required_argument, NULL, 's'},
    {"direct", no_argument, NULL, 'd'},       {"touch", no_argument, NULL, 'T'},
    {"pin", no_argument, NULL, 'p'},          {"transport", required_argument, NULL, 'x'},
    {"output", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0},
};

static int complain(const char *what, const char *value)
{
    (void)fprintf(stderr, "muster perf: %s: %s (muster perf --help)\n", what, value);
    return muster_code_exit(MUSTER_EINVAL);
}

static bool read_kind(const char *text, enum muster_collective *ret)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(text, kinds[i].name) == 0) {
            *ret = kinds[i].kind;
            return true;
        }
    }
    return false;
}

static bool read_bytes(const char *text, size_t *ret)
{
    static const char suffixes[] = "KMG";
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    if (end == text || (*end && !suffix) || (suffix && end[1]) || value > (1ull << 33)) {
        return false;
    }
    *ret = (size_t)value << (suffix ? 10 * (suffix - suffixes + 1) : 0);
    return *ret <= (size_t)1 << 34;
}

static bool read_type(const char *text, enum muster_type *ret)
{
    for (int t = MUSTER_BOOL; muster_type_bytes((enum muster_type)t) > 0; t++) {
        if (strcmp(text, muster_type_name((enum muster_type)t)) == 0) {
            *ret = (enum muster_type)t;
            return t != MUSTER_BOOL;
        }
    }
    return false;
}

static bool read_op(const char *text, enum muster_op *ret)
{
    for (int o = MUSTER_SUM; o < MUSTER_NUM_OPS; o++) {
        if (strcmp(text, muster_op_name((enum muster_op)o)) == 0) {
            *ret = (enum muster_op)o;
            return true;
        }
    }
    return false;
}

static bool take(struct perf_options *o, int option, const char *value)
{
    switch (option) {
    case 'n':
        o->ranks = (int)strtol(value, NULL, 10);
        return o->ranks >= 1 && o->ranks <= PERF_MAX_RANKS;
    case 'b': return read_bytes(value, &o->least_bytes);
    case 'e': return read_bytes(value, &o->most_bytes);
    case 't': return read_type(value, &o->type);
    case 'r': return read_op(value, &o->op);
    case 's': o->seconds = strtod(value, NULL); return o->seconds > 0 && o->seconds <= 60;
    case 'd': o->direct = true; return true;
    case 'T': o->touch = true; return true;
    case 'p': o->pin = true; return true;
    case 'x': o->transport = value; return true;
    case 'o': o->json = strcmp(value, "json") == 0; return o->json;
    default: return false;
    }
}

/* Runs one rank of a world that other programs started. */
static int run_as_rank(struct perf_options *o, struct perf_result *ret, char *description,
                       size_t bytes, bool *ret_prints, struct muster_err *err)
{
    struct muster_comm *comm;
    int r = muster_comm_from_env(&comm, err);
    if (r < 0) {
        return r;
    }
    o->ranks = muster_comm_size(comm);
    *ret_prints = muster_comm_rank(comm) == 0;
    (void)snprintf(description, bytes, "%s", muster_comm_describe(comm));
    r = perf_measure(comm, o, ret, err);
    muster_comm_free(comm);
    return r;
}

static int measure(struct perf_options *o)
{
    static struct perf_result results[PERF_MAX_SIZES];
    struct muster_err err = MUSTER_ERR_INIT;
    char description[160] = "";
    bool prints = true;
    int num = getenv("WORLD_SIZE")
                  ? run_as_rank(o, results, description, sizeof description, &prints, &err)
                  : perf_run_ranks(o, results, description, sizeof description, &err);
    if (num < 0) {
        (void)fprintf(stderr, "muster perf: %s\n", err.text);
        return muster_code_exit(num);
    }
    size_t wrong = 0;
    for (int i = 0; i < num; i++) {
        wrong += results[i].wrong;
    }
    if (prints) {
        perf_print(o, results, num, description);
    }
    return wrong ? muster_code_exit(MUSTER_EINTERNAL) : 0;
}

static int tune(const struct perf_options *o)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int r = perf_print_tuning(o->ranks, &err);
    if (r < 0) {
        (void)fprintf(stderr, "muster perf: %s\n", err.text);
    }
    return r < 0 ? muster_code_exit(r) : 0;
}

int perf_main(int argc, char **argv)
{
    struct perf_options o = {.type = MUSTER_F32,
                             .op = MUSTER_SUM,
                             .ranks = 2,
                             .least_bytes = 8,
                             .most_bytes = 64 << 20,
                             .seconds = 0.2};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "n:b:e:t:r:s:dTpo:", long_options, NULL)) != -1) {
        if (!take(&o, option, optarg)) {
            return complain(option == 'n' ? "-n is the number of ranks, from 1; invalid"
                                          : "invalid option",
                            argv[optind - 1]);
        }
    }
    const char *what = optind < argc ? argv[optind] : "nothing given";
    if (strcmp(what, "tune") == 0) {
        return tune(&o);
    }
    return read_kind(what, &o.kind) ? measure(&o) : complain("unknown collective", what);
}
