/* See recover.h. */
#include "process/supervisor/recover.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "process/machine/descendants.h"
#include "process/supervisor/attempt.h"
#include "process/wire/identity.h"
#include "process/wire/record.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { KILLED = 128 + SIGKILL };

struct recovery {
    char boot[IDENTITY_BYTES_MAX];
    char *why;
    struct muster_err *err;
};

/* Whether the identity is of another boot: it ends with the boot's id. */
static bool other_boot(const struct recovery *recovery, const char *identity)
{
    size_t length = strlen(identity);
    size_t tail = strlen(recovery->boot);
    bool ends_so = length > tail && strcmp(identity + length - tail, recovery->boot) == 0;
    return length > 0 && tail > 0 && !ends_so;
}

/* No attempt may be reported as ended while a process of it runs. */
static void kill_the_rest(const char *folder)
{
    muster_auto(free) char *mark = attempt_mark(folder);
    if (mark) {
        descendants_sweep(mark);
    }
}

static int record_loss(const char *id, const char *folder, const json_t *started, const char *why,
                       struct muster_err *err)
{
    muster_auto(doc) json_t *end =
        json_pack("{s:s, s:b, s:i, s:i, s:b, s:I, s:i, s:s, s:s}", "id", id, "ran", 1, "code",
                  KILLED, "signal", SIGKILL, "oom", 0, "startedAt",
                  (json_int_t)doc_int(started, "at", 0), "at", 0, "reason", "Lost", "message", why);
    return end ? record_exit(folder, end, err) : err_no_memory(err);
}

static int look_at(void *data, const char *id, const char *folder)
{
    struct recovery *recovery = data;
    muster_auto(free) char *end = file_join(folder, "exit.json");
    if (end && file_exists(end)) {
        return 0;
    }
    muster_auto(doc) json_t *started = record_read(folder, "started.json");
    bool rebooted = other_boot(recovery, doc_text(started, "supervisor", ""));
    const char *why = rebooted ? "the machine was restarted while it ran"
                               : "its supervisor was killed, and it with it";
    if (!rebooted) {
        kill_the_rest(folder);
    }
    (void)snprintf(recovery->why, RECOVER_WHY_BYTES, "%s",
                   rebooted ? "the machine was restarted while the job ran"
                            : "the job's supervisor was killed, and its processes with it");
    return record_loss(id, folder, started, why, recovery->err);
}

int recover(const char *job_folder, char ret_why[RECOVER_WHY_BYTES], struct muster_err *err)
{
    struct muster_err own = MUSTER_ERR_INIT;
    struct recovery recovery = {.why = ret_why, .err = err ? err : &own};
    identity_boot(recovery.boot);
    ret_why[0] = '\0';
    return record_each(job_folder, look_at, &recovery, err);
}
