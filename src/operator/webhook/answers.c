/* See answers.h. */
#include "operator/webhook/answers.h"

#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/memory_text.h"
#include "webhook/admission.h"
#include "webhook/conversion.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNDER_WAY_BYTES_MAX = 2 * ANSWERS_BODY_BYTES_MAX, UNDER_WAY_MAX = 256 };

/* A list of images, which stays while reviews still use it. */
struct list {
    struct images images;
    int users; /* one for the answers, and one for each review */
};

struct answers {
    uv_loop_t *loop;
    struct list *list;
    size_t bytes; /* of reviews in progress */
    int count;
    bool leaving; /* each answer is the last of its connection */
    bool freed;   /* by its owner, while reviews are in progress */
};

/* A review in progress. */
struct review {
    uv_work_t work; /* must be the first member; used by the thread */
    struct answers *answers;
    struct list *list;
    struct http_reply *reply; /* NULL: the client has closed the connection */
    bool conversion;
    size_t bytes;
    char *body;
    int status;
    char *text; /* the answer, or the reason why there is none */
};

/* ---- lists of images ---- */

static struct list *list_use(struct list *list)
{
    list->users++;
    return list;
}

static void list_leave(struct list *list)
{
    if (list && --list->users == 0) {
        images_done(&list->images);
        free(list);
    }
}

int answers_set_images(struct answers *answers, struct images *images, struct muster_err *err)
{
    struct list *list = calloc(1, sizeof *list);
    if (!list) {
        return err_no_memory(err);
    }
    *list = (struct list){.images = *images, .users = 1};
    *images = (struct images){0};
    list_leave(answers->list);
    answers->list = list;
    return 0;
}

/* ---- a review, in a thread ---- */

static void say(struct review *review, int status, const char *sentence)
{
    review->status = status;
    review->text = strdup(sentence);
}

static void answer(uv_work_t *work)
{
    struct review *review = (struct review *)work;
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *asked = NULL;
    if (doc_parse_last(review->body, review->bytes, &asked, &err) < 0) {
        say(review, 400, err.text);
        return;
    }
    json_t *answered = review->conversion ? webhook_answer_conversion(asked)
                                          : webhook_answer_admission(asked, &review->list->images);
    review->text = answered ? doc_print(answered) : NULL;
    review->status = 200;
    json_decref(answered);
    json_decref(asked);
}

/* ---- how a review comes in and goes out ---- */

static void send_text(struct http_reply *reply, int status, const char *text)
{
    http_reply_send(reply, status, "text/plain; charset=utf-8", text, strlen(text));
}

static void release(struct answers *answers)
{
    if (answers->freed && answers->count == 0) {
        list_leave(answers->list);
        free(answers);
    }
}

static void on_answered(uv_work_t *work, int status)
{
    struct review *review = (struct review *)work;
    struct answers *answers = review->answers;
    struct http_reply *reply = review->reply;
    assert(answers->count > 0 && answers->bytes >= review->bytes);
    answers->count--;
    answers->bytes -= review->bytes;
    if (reply && (status < 0 || !review->text)) {
        send_text(reply, 500, "no memory\n");
    } else if (reply && review->status != 200) {
        send_text(reply, review->status, review->text);
    } else if (reply) {
        http_reply_send(reply, 200, "application/json", review->text, strlen(review->text));
    }
    list_leave(review->list);
    free(review->body);
    free(review->text);
    free(review);
    release(answers);
}

static void on_gone(void *arg)
{
    struct review *review = arg;
    review->reply = NULL;
}

/* Returns a new review; NULL: out of memory. */
static struct review *take_in(struct answers *answers, const struct http_request *request)
{
    struct review *review = calloc(1, sizeof *review);
    if (!review || !(review->body = malloc(request->body_bytes + 1))) {
        free(review);
        return NULL;
    }
    memcpy(review->body, request->body, request->body_bytes + 1);
    review->bytes = request->body_bytes;
    review->answers = answers;
    review->list = list_use(answers->list);
    return review;
}

static void begin(struct answers *answers, const struct http_request *request,
                  struct http_reply *reply, bool conversion)
{
    if (answers->count == UNDER_WAY_MAX ||
        answers->bytes + request->body_bytes > UNDER_WAY_BYTES_MAX) {
        http_reply_header(reply, "Retry-After", "1");
        send_text(reply, 429, "too many reviews at once: come again in a second\n");
        return;
    }
    struct review *review = take_in(answers, request);
    if (!review) {
        send_text(reply, 500, "no memory\n");
        return;
    }
    review->conversion = conversion;
    review->reply = reply;
    reply->on_gone = on_gone;
    reply->arg = review;
    answers->count++;
    answers->bytes += review->bytes;
    int r = uv_queue_work(answers->loop, &review->work, answer, on_answered);
    assert(r == 0); /* it fails only if a function is missing */
    (void)r;
}

static void refuse_size(const struct http_request *request, struct http_reply *reply)
{
    char most[MEMORY_TEXT_BYTES], text[MEMORY_TEXT_BYTES + 80];
    (void)snprintf(text, sizeof text,
                   "the review is larger than %s; list in pages (kubectl does)\n",
                   memory_text((int64_t)request->body_bytes_max, most));
    send_text(reply, 413, text);
}

void answers_handle(void *arg, const struct http_request *request, struct http_reply *reply)
{
    struct answers *answers = arg;
    bool conversion = strcmp(request->path, ANSWERS_PATH_CONVERT) == 0;
    bool known = conversion || strcmp(request->path, ANSWERS_PATH_JOBS) == 0 ||
                 strcmp(request->path, ANSWERS_PATH_PODS) == 0;
    if (answers->leaving) {
        http_reply_header(reply, "Connection", "close");
    }
    if (request->head_fault) {
        send_text(reply, 400, request->head_fault);
    } else if (!known) {
        send_text(reply, 404,
                  "there are POST " ANSWERS_PATH_JOBS ", " ANSWERS_PATH_PODS
                  " and " ANSWERS_PATH_CONVERT "\n");
    } else if (strcmp(request->method, "POST") != 0) {
        http_reply_header(reply, "Allow", "POST");
        send_text(reply, 405, "a webhook is asked by POST\n");
    } else if (request->too_large) {
        refuse_size(request, reply);
    } else {
        begin(answers, request, reply, conversion);
    }
}

/* ---- life ---- */

struct answers *answers_new(uv_loop_t *loop)
{
    struct images none = {0};
    struct answers *answers = calloc(1, sizeof *answers);
    if (!answers) {
        return NULL;
    }
    answers->loop = loop;
    if (answers_set_images(answers, &none, NULL) < 0) {
        free(answers);
        return NULL;
    }
    return answers;
}

void answers_leave(struct answers *answers)
{
    answers->leaving = true;
}

void answers_free(struct answers *answers)
{
    if (answers) {
        answers->freed = true;
        release(answers);
    }
}
