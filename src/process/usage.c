/* See usage.h. */
#include "process/usage.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "process/log/log.h"
#include "process/machine/cgroup.h"
#include "process/machine/container.h"
#include "process/wire/identity.h"
#include "process/wire/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 4096 };

void usage_table_init(struct usage_table *table)
{
    table->count = descendants_list(0, &table->list); /* 0 as root: all processes */
}

void usage_table_done(struct usage_table *table)
{
    free(table->list);
    *table = (struct usage_table){0};
}

/* Returns the main process of the newest attempt; 0 when it does not run. */
static pid_t main_process(const char *container_folder, bool *ret_contained)
{
    char now[IDENTITY_BYTES_MAX];
    int newest = 0;
    int pid = 0;
    muster_auto(free) char *folder = NULL;
    if (process_log_attempts(container_folder, &newest, 1) == 0 ||
        asprintf(&folder, "%s/%d", container_folder, newest) < 0) {
        folder = NULL;
        return 0;
    }
    muster_auto(doc) json_t *started = record_read(folder, "started.json");
    muster_auto(doc) json_t *spec = record_read(folder, "spec.json");
    *ret_contained = doc_bool(spec, "contained", false);
    const char *identity = doc_text(started, "process", "");
    bool lives = sscanf(identity, "%d-", &pid) == 1 && pid > 0 && identity_of(pid, now) &&
                 strcmp(now, identity) == 0;
    return lives ? pid : 0;
}

static const struct descendant *find(const struct usage_table *table, pid_t pid)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->list[i].pid == pid) {
            return &table->list[i];
        }
    }
    return NULL;
}

static size_t read_text(pid_t pid, const char *name, char into[TEXT_BYTES])
{
    size_t used = descendants_read(pid, name, into, TEXT_BYTES - 1);
    into[used] = '\0';
    return used;
}

/* Whether the process is a session of `muster exec`, or the relay of a standard input: these are
 * children of the monitor, too. */
static bool is_visitor(pid_t pid)
{
    char name[TEXT_BYTES];
    return read_text(pid, "comm", name) > 0 &&
           (strcmp(name, "muster-exec\n") == 0 || strcmp(name, "muster-stdin\n") == 0);
}

static bool is_counted(const struct usage *usage, pid_t pid)
{
    for (size_t i = usage->process_count; i-- > 0;) {
        if (usage->processes[i] == pid) {
            return true;
        }
    }
    return false;
}

/* Parents are before their children. first: the container's first process; 0: all below the monitor
 * count. */
static void count_processes(const struct usage_table *table, pid_t monitor, pid_t first,
                            struct usage *usage)
{
    uint64_t ticks = 0;
    for (size_t i = 0; i < table->count && usage->process_count < USAGE_PROCESSES_MAX; i++) {
        const struct descendant *d = &table->list[i];
        bool is_first = first ? d->pid == first : d->parent == monitor && !is_visitor(d->pid);
        bool own = is_first || is_counted(usage, d->parent);
        if (own) {
            usage->processes[usage->process_count++] = d->pid;
            ticks += d->cpu_ticks;
        }
    }
    usage->cpu_s = (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Returns the bytes of the line "NAME … kB"; -1 if there is none. */
static int64_t kilobytes(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    long long number = 0;
    return at && sscanf(at + strlen(name), " %lld kB", &number) == 1 ? number * 1024 : -1;
}

/* Shared pages are divided among the processes that share them; if the kernel does not report this,
 * they count in full. */
static void add_process(struct usage *usage, pid_t pid)
{
    char status[TEXT_BYTES];
    char rollup[TEXT_BYTES];
    (void)read_text(pid, "status", status);
    (void)read_text(pid, "smaps_rollup", rollup);
    int64_t shared_out = kilobytes(rollup, "\nPss:");
    int64_t resident = kilobytes(status, "\nVmRSS:");
    int64_t most = kilobytes(status, "\nVmHWM:");
    usage->memory_bytes += shared_out >= 0 ? shared_out : resident > 0 ? resident : 0;
    usage->peak_bytes = most > usage->peak_bytes ? most : usage->peak_bytes;
}

static void read_memory(struct usage *usage, pid_t main)
{
    char own[TEXT_BYTES];
    struct cgroup_memory group;
    if (read_text(main, "cgroup", own) > 0 && cgroup_read_memory(CGROUP_ROOT, own, &group)) {
        usage->memory_bytes = group.used_bytes;
        usage->peak_bytes = group.peak_bytes;
        usage->limit_bytes = group.limit_bytes;
    } else {
        for (size_t i = 0; i < usage->process_count; i++) {
            add_process(usage, usage->processes[i]);
        }
    }
    if (usage->peak_bytes < usage->memory_bytes) {
        usage->peak_bytes = usage->memory_bytes;
    }
}

int usage_read(const struct usage_table *table, const char *container_folder, struct usage *ret,
               struct muster_err *err)
{
    bool contained = false;
    pid_t main = main_process(container_folder, &contained);
    const struct descendant *process = main > 0 ? find(table, main) : NULL;
    if (!process) {
        return muster_fail(err, MUSTER_ENOENT, "%s: nothing runs there", container_folder);
    }
    ret->process_count = 0;
    ret->memory_bytes = ret->peak_bytes = ret->limit_bytes = 0;
    pid_t first = contained ? container_find(table->list, table->count, process->parent) : 0;
    count_processes(table, process->parent, first, ret);
    read_memory(ret, first ? first : main);
    return 0;
}
