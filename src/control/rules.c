/* See rules.h. Reasons are upstream's (training-operator v1.9.4), as sentences.c's sentences are.
 */
#include "control/rules.h"

#include "base/doc.h"
#include "control/broken.h"
#include "control/effects.h"
#include "control/replica_status.h"
#include "control/restart.h"
#include "control/status/condition.h"

#include <assert.h>

enum { SENTENCE_BYTES_MAX = 3072 };

typedef bool when_fn(const struct control_step *s);
typedef void on_enter_fn(struct control_step *s);

static when_fn always, is_stopped, is_suspended, is_resumed, has_succeeded, is_past_backoff,
    is_past_deadline, has_failed_never, has_failed_permanently, is_restarting, is_running;
static when_fn has_restarted_enough, is_restarting_all, has_lost_workers, is_left_untrained;
static on_enter_fn pause_running;

#define FROM CONTROL_STATE_BIT
#define ACTIVE CONTROL_ACTIVE

enum event { NO_EVENT, NORMAL, WARNING };

/* The whole life of a job. The first rule that fits is applied, then the table is searched again
 * from the top; each rule leaves its own `from`, so this ends. Success is checked before all
 * failures: a job that has ended well cannot be late. */
static const struct rule {
    unsigned from;
    when_fn *when;
    enum control_state to;
    const char *type; /* the condition to set, to True unless `negate` */
    bool negate;
    const char *reason;
    control_say_fn *say;
    enum event event;      /* the event to record, with the same reason and sentence */
    on_enter_fn *on_enter; /* called before the condition is set */
} rules[] = {
    {FROM(NEW), always, CONTROL_STATE_CREATED, "Created", false, "PyTorchJobCreated",
     control_say_created, NO_EVENT, NULL},
    /* Ended from outside: its pods are deleted, whatever cleanPodPolicy says. */
    {ACTIVE | FROM(SUSPENDED), is_stopped, CONTROL_STATE_FAILED, "Failed", false,
     "PyTorchJobStopped", control_say_stopped, WARNING, control_stop_clock},
    {ACTIVE, is_suspended, CONTROL_STATE_SUSPENDED, "Suspended", false, "PyTorchJobSuspended",
     control_say_suspended, NORMAL, pause_running},
    /* The deadline counts from the resumption. */
    {FROM(SUSPENDED), is_resumed, CONTROL_STATE_CREATED, "Suspended", true, "PyTorchJobResumed",
     control_say_resumed, NORMAL, control_start_clock},
    {ACTIVE, has_succeeded, CONTROL_STATE_SUCCEEDED, "Succeeded", false, "PyTorchJobSucceeded",
     control_say_succeeded, NORMAL, control_stop_clock},
    {ACTIVE, is_past_backoff, CONTROL_STATE_FAILED, "Failed", false, "PyTorchJobFailed",
     control_say_backoff, NORMAL, control_stop_clock},
    {ACTIVE, is_past_deadline, CONTROL_STATE_FAILED, "Failed", false, "PyTorchJobFailed",
     control_say_deadline, NORMAL, control_stop_clock},
    {ACTIVE, control_coordinator_failed, CONTROL_STATE_FAILED, "Failed", false, "PyTorchJobFailed",
     control_say_coordinator_failed, WARNING, control_stop_clock},
    {ACTIVE, has_lost_workers, CONTROL_STATE_FAILED, "Failed", false, "PyTorchJobFailed",
     control_say_lost_workers, WARNING, control_stop_clock},
    {ACTIVE, is_left_untrained, CONTROL_STATE_FAILED, "Failed", false, "PyTorchJobFailed",
     control_say_left_untrained, WARNING, control_stop_clock},
    /* All ranks restart together (restart.h), which makes the event of each restart. */
    {ACTIVE, has_restarted_enough, CONTROL_STATE_FAILED, "Failed", false, "PyTorchJobFailed",
     control_say_restarted_enough, NORMAL, control_stop_clock},
    {FROM(CREATED) | FROM(RUNNING), is_restarting_all, CONTROL_STATE_RESTARTING, "Restarting",
     false, "PyTorchJobRestarting", control_say_restarting_all, NO_EVENT, NULL},
    {ACTIVE, has_failed_never, CONTROL_STATE_FAILED, "Failed", false, "PyTorchJobFailed",
     control_say_failed_never, NORMAL, control_stop_clock},
    {ACTIVE, has_failed_permanently, CONTROL_STATE_FAILED, "Failed", false, "PyTorchJobFailed",
     control_say_failed_permanently, WARNING, control_stop_clock},
    {FROM(CREATED) | FROM(RUNNING), is_restarting, CONTROL_STATE_RESTARTING, "Restarting", false,
     "PyTorchJobRestarting", control_say_restarting, WARNING, NULL},
    {FROM(CREATED) | FROM(RESTARTING), is_running, CONTROL_STATE_RUNNING, "Running", false,
     "PyTorchJobRunning", control_say_running, NO_EVENT, NULL},
};

static const struct rule *find_rule(const struct control_step *s, enum control_state from)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if ((rules[i].from & (1u << from)) && rules[i].when(s)) {
            return &rules[i];
        }
    }
    return NULL;
}

static void set_condition(struct control_step *s, const struct control_condition *condition)
{
    int r = control_set(s->status, condition, s->now_unix_ms);
    s->r = s->r == 0 && r < 0 ? r : s->r;
}

static void apply(struct control_step *s, const struct rule *rule)
{
    struct buf sentence;
    buf_init(&sentence, SENTENCE_BYTES_MAX);
    rule->say(s, &sentence);
    if (rule->on_enter) {
        rule->on_enter(s);
    }
    set_condition(s, &(struct control_condition){rule->type, !rule->negate, rule->reason,
                                                 buf_str(&sentence)});
    if (rule->event != NO_EVENT) {
        control_add_event(&s->events, rule->event == WARNING, rule->reason, "%s",
                          buf_str(&sentence));
    }
    buf_done(&sentence);
}

enum control_state control_apply_rules(struct control_step *s)
{
    enum control_state before = control_state_of(s->status);
    enum control_state state = before;
    const struct rule *rule = find_rule(s, state);
    for (size_t taken = 0; rule && s->r == 0; taken++) {
        assert(taken < sizeof rules / sizeof rules[0]);
        assert((rule->from & (1u << rule->to)) == 0 && "a rule leaves its own state");
        apply(s, rule);
        state = rule->to;
        rule = find_rule(s, state);
    }
    control_refresh_status(s, before, state);
    return state;
}

static bool always(const struct control_step *s)
{
    (void)s;
    return true;
}

static bool is_stopped(const struct control_step *s)
{
    return control_stop_text(s) != NULL;
}

static bool is_suspended(const struct control_step *s)
{
    return s->o->job->suspend;
}

static bool is_resumed(const struct control_step *s)
{
    return !s->o->job->suspend;
}

static bool all_have_succeeded(const struct control_step *s)
{
    const struct control_count *count = s->o->count;
    int needed = job_total_replicas(s->o->job);
    return needed > 0 && count[JOB_MASTER].succeeded + count[JOB_WORKER].succeeded >= needed;
}

/* The Master's end decides (if it is a coordinator, its Workers must have ended, too). Without a
 * Master, all Workers decide, or any Worker of an elastic job. Under the success policy AllRanks
 * all ranks decide. */
static bool has_succeeded(const struct control_step *s)
{
    const struct job *job = s->o->job;
    if (job->all_ranks) {
        return all_have_succeeded(s);
    }
    if (job->coordinated) {
        return control_is_trained(s->o) && control_unfinished_workers(s->o) == 0 &&
               s->o->count[JOB_WORKER].succeeded > 0 && !control_any_broken(s);
    }
    enum job_role role = job->replica[JOB_MASTER].present ? JOB_MASTER : JOB_WORKER;
    int needed = job->replica[role].replicas;
    if (role == JOB_WORKER && job->elastic.present) {
        needed = 1;
    }
    return needed > 0 && s->o->count[role].succeeded >= needed;
}

/* Whether every Worker was killed after the training: none has evaluated. */
static bool has_lost_workers(const struct control_step *s)
{
    const struct control_count *workers = &s->o->count[JOB_WORKER];
    return control_is_trained(s->o) && control_unfinished_workers(s->o) == 0 &&
           workers->succeeded == 0 && workers->failed > 0;
}

/* Whether all Workers have left their loops, or never began one. */
static bool is_left_untrained(const struct control_step *s)
{
    return s->now_unix_ms >= control_untrained_at(s);
}

static bool is_past_backoff(const struct control_step *s)
{
    int64_t limit = s->o->job->backoff_limit;
    return limit != JOB_UNSET && s->counters->failures > limit;
}

static bool is_past_deadline(const struct control_step *s)
{
    return s->now_unix_ms >= control_deadline(s);
}

static bool has_restarted_enough(const struct control_step *s)
{
    return control_restarts_are_spent(s);
}

static bool is_restarting_all(const struct control_step *s)
{
    return control_restarts(s) || control_awaits_earlier(s->o);
}

static bool has_failed_never(const struct control_step *s)
{
    return !control_restarts(s) && control_find_broken(s, true, true) != NULL;
}

static bool has_failed_permanently(const struct control_step *s)
{
    return !control_restarts(s) && control_find_broken(s, true, false) != NULL;
}

static bool is_restarting(const struct control_step *s)
{
    return !control_restarts(s) && control_find_broken(s, false, false) != NULL;
}

static bool is_running(const struct control_step *s)
{
    const struct control_count *count = s->o->count;
    enum job_role role = s->o->job->replica[JOB_MASTER].present ? JOB_MASTER : JOB_WORKER;
    bool leads_no_more = s->o->job->all_ranks && count[role].succeeded > 0;
    leads_no_more = leads_no_more || control_is_trained(s->o);
    int active = count[role].active + (leads_no_more ? count[JOB_WORKER].active : 0);
    return active > 0 && !control_any_broken(s) && !control_awaits_earlier(s->o);
}

/* Only a job that runs can stop running: the conditions are changed, never added. */
static void pause_running(struct control_step *s)
{
    static const char *const types[] = {"Running", "Restarting"};
    for (size_t i = 0; i < 2; i++) {
        if (control_has(s->status, types[i])) {
            struct buf sentence;
            buf_init(&sentence, SENTENCE_BYTES_MAX);
            control_say_suspended(s, &sentence);
            set_condition(s, &(struct control_condition){types[i], false, "PyTorchJobSuspended",
                                                         buf_str(&sentence)});
            buf_done(&sentence);
        }
    }
}
