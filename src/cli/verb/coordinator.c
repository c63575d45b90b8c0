/* muster coordinator: checks the options, and runs src/coordinator/server. The defaults are in
 * commands.def.
 */
#include "cli/command/verbs.h"

#include "base/file.h"
#include "cli/verb/coordinator_lease.h"
#include "coordinator/server/server.h"
#include "coordinator/server/token.h"
#include "job/text.h"

#include <stdlib.h>

enum {
    TOKEN_FILE_BYTES_MAX = 4096,
    JOURNAL_KIB_MAX = 512 << 10, /* a larger journal could not be read again */
};

static int read_token(struct cli *cli, struct server_options *ret)
{
    const char *path = args_value(&cli->args, "token-file");
    const char *token = path ? NULL : getenv("MUSTER_COORDINATOR_TOKEN");
    muster_auto(free) char *text = NULL;
    size_t count;
    if (path) {
        int r = file_read(path, TOKEN_FILE_BYTES_MAX, &text, &count, &cli->err);
        r = r < 0 ? r : server_token_read(text, ret->token, &cli->err);
        return r < 0 ? muster_wrap(&cli->err, "--token-file %s", path) : 0;
    }
    if (!token || !*token) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "workers need a token: set MUSTER_COORDINATOR_TOKEN, for them too, or "
                           "name --token-file (make one with `openssl rand -hex 32`)");
    }
    int r = server_token_read(token, ret->token, &cli->err);
    return r < 0 ? muster_wrap(&cli->err, "MUSTER_COORDINATOR_TOKEN") : 0;
}

/* Reads the limits of a pass. 0 means no limit; without the option, the time that passes take
 * decides. */
static int read_pass_limit(struct cli *cli, struct server_options *ret)
{
    int r = args_duration(&cli->args, "pass-timeout", &ret->pass_ms, &cli->err);
    if (r == 0 && args_value(&cli->args, "pass-timeout") && ret->pass_ms == 0) {
        ret->pass_ms = -1;
    }
    return r < 0 ? r : args_duration(&cli->args, "pass-timeout-max", &ret->pass_max_ms, &cli->err);
}

static int check_sizes(int64_t least, int64_t first, int64_t most, struct muster_err *err)
{
    if (first < least) {
        return muster_fail(err, MUSTER_EINVAL, "--first-size %lld is less than --min-size %lld",
                           (long long)first, (long long)least);
    }
    return first <= most ? 0
                         : muster_fail(err, MUSTER_EINVAL, "%s %lld is more than --max-size %lld",
                                       first > least ? "--first-size" : "--min-size",
                                       (long long)first, (long long)most);
}

static int read_sizes(struct cli *cli, struct server_options *ret)
{
    int64_t least = 0, most = 0, first = 0, micro_batches = 0, max_steps = 0;
    int r = args_number(&cli->args, "min-size", 1, SERVER_SIZE_MAX, &least, &cli->err);
    r = r < 0 ? r : args_number(&cli->args, "max-size", 1, SERVER_SIZE_MAX, &most, &cli->err);
    r = r < 0 ? r : args_number(&cli->args, "first-size", 1, SERVER_SIZE_MAX, &first, &cli->err);
    r = r < 0 ? r
              : args_number(&cli->args, "micro-batches", 1, UINT32_MAX, &micro_batches, &cli->err);
    r = r < 0 ? r : args_number(&cli->args, "max-steps", 0, INT64_MAX, &max_steps, &cli->err);
    r = r < 0 ? r : args_duration(&cli->args, "first-wait", &ret->first_ms, &cli->err);
    r = r < 0 ? r : read_pass_limit(cli, ret);
    first = first > 0 ? first : least;
    r = r < 0 ? r : check_sizes(least, first, most, &cli->err);
    ret->sizes = (struct rendezvous_config){
        .min_size = (uint32_t)least, .max_size = (uint32_t)most, .first_size = (uint32_t)first};
    ret->micro_batches = (uint32_t)micro_batches;
    ret->max_steps = (uint64_t)max_steps;
    return r;
}

static int read_journal_size(struct cli *cli, struct server_options *ret)
{
    int64_t kib = 0;
    int r = args_number(&cli->args, "journal-kib", 1, JOURNAL_KIB_MAX, &kib, &cli->err);
    ret->compact_bytes = (size_t)kib << 10;
    return r;
}

static int read_addresses(struct cli *cli, struct server_options *ret)
{
    const char *address;
    size_t at = 0;
    while ((address = args_each(&cli->args, "listen", &at))) {
        if (ret->listen_count == SERVER_LISTENERS_MAX) {
            return muster_fail(&cli->err, MUSTER_EINVAL, "--listen: at most %d addresses",
                               SERVER_LISTENERS_MAX);
        }
        ret->listen[ret->listen_count++] = address;
    }
    ret->journal = args_value(&cli->args, "journal");
    if (ret->listen_count == 0 || !ret->journal) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "coordinator: --listen says where workers connect (unix:PATH or "
                           "tcp:HOST:PORT), --journal in which folder the job's journal is");
    }
    return 0;
}

/* Makes the lease, if the option is given. */
static int make_lease(struct cli *cli, struct server_options *ret)
{
    const char *name = args_value(&cli->args, "lease");
    const char *fault = name ? job_text_fault(SCHEMA_SUBDOMAIN, name) : NULL;
    if (fault) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "--lease '%.80s' %s", name, fault);
    }
    return name ? coordinator_lease_new(name, &ret->lease, &cli->err) : 0;
}

int cli_coordinator(struct cli *cli)
{
    struct server_options options = {.durable = args_flag(&cli->args, "durable"),
                                     .ready_file = args_value(&cli->args, "ready-file"),
                                     .status_file = args_value(&cli->args, "status-file"),
                                     .marks_done = args_flag(&cli->args, "mark-done"),
                                     .progress = args_flag(&cli->args, "progress") ||
                                                 isatty(STDERR_FILENO) == 1};
    int r = cli_expect_operands(cli, 0, 0);
    r = r < 0 ? r : read_addresses(cli, &options);
    r = r < 0 ? r : read_sizes(cli, &options);
    r = r < 0 ? r : read_journal_size(cli, &options);
    r = r < 0 ? r : read_token(cli, &options);
    r = r < 0 ? r : make_lease(cli, &options);
    r = r < 0 ? r : server_run(&cli->loop, &options, &cli->err);
    coordinator_lease_free(options.lease);
    return r;
}
