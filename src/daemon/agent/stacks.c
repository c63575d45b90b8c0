/* Asks a job's supervisor for the stacks of its processes, for an HTTP request. See internal.h. */
#include "daemon/agent/internal.h"

#include "api/api.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_MS = 200, ANSWER_MS_MAX = 5000, QUESTIONS_MAX = 256 };

/* One request; it ends when it is answered, when its client leaves, or after ANSWER_MS_MAX. */
struct agent_question {
    struct agent *agent;
    const struct agent_job *job;
    int64_t ticket;
    struct http_reply *reply;
    uv_timer_t timer;
    UT_hash_handle hh;
};

static void free_self(uv_handle_t *handle)
{
    free(handle->data);
}

static void drop(struct agent_question *question)
{
    HASH_DEL(question->agent->questions, question);
    uv_close((uv_handle_t *)&question->timer, free_self);
}

static void on_gone(void *arg)
{
    drop(arg);
}

static void on_late(uv_timer_t *timer)
{
    struct agent_question *question = timer->data;
    struct http_reply *reply = question->reply;
    struct muster_err err = MUSTER_ERR_INIT;
    muster_fail(&err, MUSTER_ETIMEDOUT, "the job's supervisor did not answer within %d s",
                ANSWER_MS_MAX / 1000);
    drop(question);
    api_send_error(reply, &err);
}

void agent_stacks_answer(struct agent *agent, int64_t ticket, const json_t *attempts)
{
    struct agent_question *question = NULL;
    HASH_FIND(hh, agent->questions, &ticket, sizeof ticket, question);
    if (question) {
        struct http_reply *reply = question->reply;
        drop(question);
        api_send_json(reply, 200, json_pack("{s:O}", "attempts", attempts));
    }
}

static int ask(struct agent *agent, struct agent_job *job, struct http_reply *reply,
               struct muster_err *err)
{
    if (HASH_COUNT(agent->questions) >= QUESTIONS_MAX) {
        return muster_fail(err, MUSTER_EAGAIN, "too many requests for stacks at once");
    }
    struct agent_question *question = calloc(1, sizeof *question);
    if (!question) {
        return err_no_memory(err);
    }
    question->agent = agent;
    question->job = job;
    question->ticket = ++agent->last_ticket;
    question->reply = reply;
    int r = process_job_stacks(job->process, question->ticket, SAMPLE_MS, err);
    if (r < 0) {
        free(question);
        return r;
    }
    question->timer.data = question;
    uv_timer_init(agent->options.loop, &question->timer);
    uv_timer_start(&question->timer, on_late, ANSWER_MS_MAX, 0);
    reply->arg = question;
    reply->on_gone = on_gone;
    HASH_ADD(hh, agent->questions, ticket, sizeof question->ticket, question);
    return 0;
}

void agent_stacks(struct agent *agent, const char *job_uid, struct http_reply *reply)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct agent_job *job = agent->jobs;
    while (job && strcmp(job->uid, job_uid) != 0) {
        job = job->hh.next;
    }
    if (!job || job->over || !agent_state_job_runs(&agent->state, job->number)) {
        api_send_json(reply, 200, json_pack("{s:[]}", "attempts")); /* nothing of the job runs */
    } else if (ask(agent, job, reply, &err) < 0) {
        api_send_error(reply, &err);
    }
}

void agent_stacks_forget(const struct agent_job *job)
{
    struct agent *agent = job->agent;
    struct agent_question *question, *next;
    muster_auto(doc) json_t *nothing = json_array();
    HASH_ITER (hh, agent->questions, question, next) {
        if (question->job == job) {
            agent_stacks_answer(agent, question->ticket, nothing);
        }
    }
}

void agent_stacks_done(struct agent *agent)
{
    struct agent_question *question, *next;
    HASH_ITER (hh, agent->questions, question, next) {
        drop(question);
    }
}
