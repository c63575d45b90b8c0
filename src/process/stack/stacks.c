/* See stacks.h. */
#include "process/stack/stacks.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/text.h"
#include "base/time/clock.h"
#include "process/machine/container.h"
#include "process/stack/flights.h"
#include "process/stack/python.h"
#include "process/stack/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POLL_MS = 3,
    PROCESS_MS_MAX = 400, /* for one process to answer: the others of its rank wait for it */
    PROCESSES_MAX = 64,   /* of an attempt */
    COMMAND_BYTES = 256,
    WHERE_BYTES = 256,
};

struct member {
    struct descendant now;
    double cpu_percent; /* -1: not measured */
    json_t *calls;      /* its communicators of backend muster; NULL: none */
    char *text;
    struct muster_err why; /* why there is no text */
};

struct group {
    char *id;
    pid_t root;
    pid_t main_pid;
    long rank;
    bool quiet;
    bool contained;
    struct descendant *before; /* at the sample's beginning */
    size_t before_count;
    struct member *members;
    size_t count;
    size_t at; /* how many processes were asked */
    bool asked;
    struct python_stacks python;
    int64_t asked_ms;
};

struct stacks {
    struct stacks *next; /* the list of all requests under way */
    uv_timer_t timer;
    struct stacks_options options;
    stacks_done_fn done;
    void *data;
    struct group *groups;
    size_t count;
    int64_t sampled_ms;
    int64_t until_ms;
};

/* Each supervisor has one list, since its loop has one thread. */
static struct stacks *under_way;

/* ---- Processor time ---- */

static double cpu_percent(const struct group *group, const struct descendant *now,
                          int64_t elapsed_ms)
{
    for (size_t i = 0; i < group->before_count; i++) {
        const struct descendant *then = &group->before[i];
        if (then->pid == now->pid && then->start_ticks == now->start_ticks && elapsed_ms > 0) {
            double ticks = (double)(now->cpu_ticks - then->cpu_ticks);
            return ticks * 100 * 1000 / (double)sysconf(_SC_CLK_TCK) / (double)elapsed_ms;
        }
    }
    return -1;
}

/* Moves the main process to the front, before processes that `muster exec` has started. */
static void put_first(struct descendant *list, size_t count, pid_t pid)
{
    for (size_t i = 1; i < count; i++) {
        if (list[i].pid == pid) {
            struct descendant first = list[i];
            memmove(list + 1, list, i * sizeof *list);
            list[0] = first;
            return;
        }
    }
}

static void list_members(struct group *group, int64_t elapsed_ms)
{
    muster_auto(free) struct descendant *list = NULL;
    size_t count = descendants_list(group->root, &list);
    if (group->contained) {
        group->main_pid = container_find(list, count, group->root);
        count = container_keep(list, count, group->main_pid);
    }
    count = count < PROCESSES_MAX ? count : PROCESSES_MAX;
    put_first(list, count, group->main_pid);
    group->members = calloc(count + 1, sizeof *group->members);
    group->count = group->members ? count : 0;
    for (size_t i = 0; i < group->count; i++) {
        group->members[i].now = list[i];
        group->members[i].cpu_percent = cpu_percent(group, &list[i], elapsed_ms);
        group->members[i].calls = flights_read(list[i].pid);
    }
}

/* ---- Asking, one after the other ---- */

/* Two requests at the same time would overwrite each other's answers. */
static bool is_being_asked(pid_t root)
{
    for (const struct stacks *s = under_way; s; s = s->next) {
        for (size_t g = 0; g < s->count; g++) {
            if (s->groups[g].root == root && s->groups[g].asked) {
                return true;
            }
        }
    }
    return false;
}

/* A Python of the image has muster's handler only if the image includes it. */
static void explain_contained(const struct group *group, struct member *member)
{
    if (group->contained && member->why.code == MUSTER_EUNSUPPORTED) {
        muster_fail(&member->why, MUSTER_EUNSUPPORTED,
                    "it runs in a container, where no Python has muster's handler: no stacks");
    }
}

static void ask_next(struct group *group)
{
    if (is_being_asked(group->root)) {
        return;
    }
    while (group->at < group->count && !group->asked) {
        struct member *member = &group->members[group->at];
        if (python_stacks_ask(&member->now, &group->python, &member->why) == 0) {
            group->asked = true;
            group->asked_ms = clock_ms();
        } else {
            explain_contained(group, member);
            group->at++;
        }
    }
}

static void take_answer(struct group *group)
{
    struct member *member = &group->members[group->at++];
    member->text = python_stacks_text(&group->python);
    if (!member->text) {
        muster_fail(&member->why, MUSTER_ETIMEDOUT,
                    "it did not answer (its threads block the signal, or none of them runs)");
    }
    python_stacks_done(&group->python);
    group->asked = false;
}

/* Returns false when no process is left to ask or to wait for. */
static bool go_on(struct group *group, bool late)
{
    if (group->asked && (python_stacks_poll(&group->python) || late ||
                         clock_ms() - group->asked_ms > PROCESS_MS_MAX)) {
        take_answer(group);
    }
    if (!late && !group->quiet) {
        ask_next(group);
    }
    return !late && !group->quiet && (group->asked || group->at < group->count);
}

/* ---- The report ---- */

static const char *state_name(char state)
{
    switch (state) {
    case 'R': return "running";
    case 'D': return "uninterruptible";
    case 'T': return "stopped";
    case 't': return "traced";
    default: return "sleeping";
    }
}

static json_t *command_of(pid_t pid)
{
    char raw[COMMAND_BYTES + 8], text[COMMAND_BYTES]; /* text_copy cuts between characters */
    size_t used = descendants_read(pid, "cmdline", raw, sizeof raw - 1);
    while (used > 0 && raw[used - 1] == '\0') {
        used--;
    }
    for (size_t i = 0; i < used; i++) {
        raw[i] = (unsigned char)raw[i] < ' ' ? ' ' : raw[i];
    }
    raw[used] = '\0';
    text_copy(text, sizeof text, raw);
    json_t *command = json_string(text);
    return command ? command : json_string("?"); /* its command line is not UTF-8 */
}

static json_t *report_member(const struct group *group, const struct member *member)
{
    bool is_main = member->now.parent == group->root ||
                   (group->contained && member->now.pid == group->main_pid);
    json_t *doc = json_pack("{s:i, s:i, s:s, s:o}", "pid", (int)member->now.pid, "parent",
                            is_main ? 0 : (int)member->now.parent, "state",
                            state_name(member->now.state), "command", command_of(member->now.pid));
    if (member->cpu_percent >= 0) {
        json_object_set_new(doc, "cpuPercent", json_real((int)(member->cpu_percent + 0.5)));
    }
    if (member->text) {
        char where[WHERE_BYTES];
        bool found = stack_text_where(member->text, where, sizeof where);
        json_object_set_new(doc, "stacks", json_string(member->text));
        json_object_set_new(doc, "where", json_string(found ? where : ""));
    } else {
        json_object_set_new(
            doc, "why",
            json_string(member->why.text[0] ? member->why.text : "the time for it was over"));
    }
    if (member->calls) {
        json_object_set(doc, "calls", member->calls);
    }
    return doc;
}

static json_t *make_report(const struct stacks *stacks)
{
    json_t *report = json_array();
    for (size_t g = 0; g < stacks->count; g++) {
        const struct group *group = &stacks->groups[g];
        json_t *processes = json_array();
        for (size_t i = 0; i < group->count; i++) {
            json_array_append_new(processes, report_member(group, &group->members[i]));
        }
        json_t *attempt = json_pack("{s:s, s:o}", "id", group->id, "processes", processes);
        if (group->rank >= 0) {
            json_object_set_new(attempt, "rank", json_integer(group->rank));
        }
        json_array_append_new(report, attempt);
    }
    return report;
}

/* ---- Life ---- */

static void free_group(struct group *group)
{
    if (group->asked) {
        python_stacks_done(&group->python);
    }
    for (size_t i = 0; i < group->count; i++) {
        free(group->members[i].text);
        json_decref(group->members[i].calls);
    }
    free(group->members);
    free(group->before);
    free(group->id);
}

static void free_self(uv_handle_t *handle)
{
    struct stacks *stacks = handle->data;
    for (size_t g = 0; g < stacks->count; g++) {
        free_group(&stacks->groups[g]);
    }
    free(stacks->groups);
    free(stacks);
}

void stacks_cancel(struct stacks *stacks)
{
    if (stacks) {
        struct stacks **link = &under_way;
        while (*link != stacks) {
            link = &(*link)->next;
        }
        *link = stacks->next;
        uv_close((uv_handle_t *)&stacks->timer, free_self);
    }
}

static void on_poll(uv_timer_t *timer)
{
    struct stacks *stacks = timer->data;
    bool late = clock_ms() >= stacks->until_ms;
    bool busy = false;
    for (size_t g = 0; g < stacks->count; g++) {
        busy = go_on(&stacks->groups[g], late) || busy;
    }
    if (!busy) {
        muster_auto(doc) json_t *report = make_report(stacks);
        stacks_done_fn done = stacks->done;
        void *data = stacks->data;
        stacks_cancel(stacks);
        done(data, report);
    }
}

static void on_sampled(uv_timer_t *timer)
{
    struct stacks *stacks = timer->data;
    int64_t now_ms = clock_ms();
    for (size_t g = 0; g < stacks->count; g++) {
        list_members(&stacks->groups[g], now_ms - stacks->sampled_ms);
    }
    stacks->until_ms = now_ms + stacks->options.limit_ms;
    uv_timer_start(timer, on_poll, 0, POLL_MS);
}

static bool add_groups(struct stacks *stacks, const struct stacks_root *roots, size_t count)
{
    stacks->groups = calloc(count + 1, sizeof *stacks->groups);
    for (size_t i = 0; stacks->groups && i < count; i++) {
        struct group *group = &stacks->groups[stacks->count++];
        group->id = strdup(roots[i].id);
        group->root = roots[i].pid;
        group->main_pid = roots[i].main_pid;
        group->rank = roots[i].rank;
        group->quiet = roots[i].quiet;
        group->contained = roots[i].contained;
        if (stacks->options.sample_ms > 0) {
            group->before_count = descendants_list(group->root, &group->before);
        }
        if (!group->id) {
            return false;
        }
    }
    return stacks->groups;
}

int stacks_take(uv_loop_t *loop, const struct stacks_root *roots, size_t count,
                const struct stacks_options *options, stacks_done_fn done, void *data,
                struct stacks **ret, struct muster_err *err)
{
    struct stacks *stacks = calloc(1, sizeof *stacks);
    assert(options->limit_ms > 0 && done);
    if (!stacks) {
        return err_no_memory(err);
    }
    stacks->options = *options;
    stacks->done = done;
    stacks->data = data;
    stacks->timer.data = stacks;
    stacks->next = under_way;
    under_way = stacks;
    uv_timer_init(loop, &stacks->timer);
    if (!add_groups(stacks, roots, count)) {
        stacks_cancel(stacks);
        return err_no_memory(err);
    }
    stacks->sampled_ms = clock_ms();
    uv_timer_start(&stacks->timer, on_sampled, (uint64_t)options->sample_ms, 0);
    *ret = stacks;
    return 0;
}
