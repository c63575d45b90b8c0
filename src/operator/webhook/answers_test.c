/* The webhooks' routes without sockets: requests that are answered at once. */
#include "operator/webhook/answers.h"

#include "base/testing/test.h"

#include <string.h>

struct seen {
    struct http_reply reply; /* must be the first member */
    int status;
    bool closes;
};

static void see_header(struct http_reply *reply, const char *name, const char *value)
{
    struct seen *seen = (struct seen *)reply;
    seen->closes |= strcmp(name, "Connection") == 0 && strcmp(value, "close") == 0;
}

static void see_answer(struct http_reply *reply, int status, const char *type, const void *bytes,
                       size_t count)
{
    (void)type, (void)bytes, (void)count;
    ((struct seen *)reply)->status = status;
}

static const struct http_reply_ops ops = {.header = see_header, .send = see_answer};

static struct seen ask(struct answers *answers, const char *method, const char *path)
{
    const struct http_request request = {.method = method, .path = path, .body = ""};
    struct seen seen = {.reply = {.ops = &ops}};
    answers_handle(answers, &request, &seen.reply);
    return seen;
}

static void who_leaves_keeps_no_connection(void **state)
{
    (void)state;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct answers *answers = answers_new(&loop);
    struct seen before = ask(answers, "GET", ANSWERS_PATH_JOBS);
    assert_int_equal(before.status, 405);
    assert_false(before.closes);
    answers_leave(answers);
    struct seen after = ask(answers, "GET", ANSWERS_PATH_JOBS);
    assert_int_equal(after.status, 405);
    assert_true(after.closes);
    assert_true(ask(answers, "POST", "/other").closes);
    answers_free(answers);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_keeps_no_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
