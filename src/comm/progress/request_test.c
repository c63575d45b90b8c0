/* Checks requests: which function is told that a call has ended, how often, and who owns the
 * request then. */
#include "comm/progress/request.h"

#include "base/testing/test.h"

#include <pthread.h>

enum { ROUNDS = 20000 };

static struct muster_request *pending(void)
{
    struct muster_request *request = request_alloc();
    assert_non_null(request);
    atomic_init(&request->state, REQUEST_PENDING);
    request->err = (struct muster_err)MUSTER_ERR_INIT;
    return request;
}

struct told {
    _Atomic int times;
    int code;
};

static void tell(void *context, int code)
{
    struct told *told = context;
    told->code = code;
    atomic_fetch_add(&told->times, 1);
}

static void who_asked_last_is_told_once(void **state)
{
    (void)state;
    static const int ends[] = {REQUEST_DONE, MUSTER_EPEERDEAD};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct told first = {0}, second = {0}, late = {0};
        struct muster_request *request = pending();
        muster_request_notify(request, tell, &first);
        muster_request_notify(request, tell, &second);
        assert_true(request_is_pending(request));
        if (ends[i] < 0) {
            muster_fail(&request->err, ends[i], "as a rank was gone");
        }
        request_end(request, ends[i]);
        assert_false(request_is_pending(request));
        assert_true(first.times == 0 && second.times == 1);
        assert_int_equal(second.code, ends[i] < 0 ? ends[i] : 0);
        muster_request_notify(request, tell, &late);
        assert_true(late.times == 1 && late.code == second.code);
        assert_int_equal(muster_request_test(request, NULL), ends[i]);
        muster_request_free(request);
    }
}

/* A request that its user has freed still ends. Its memory is used again after that, but not
 * before. */
static void what_its_user_has_left_ends_all_the_same(void **state)
{
    (void)state;
    struct told told = {0};
    struct muster_request *request = pending();
    muster_request_notify(request, tell, &told);
    muster_request_free(request);
    assert_true(request_is_pending(request) && told.times == 0);
    struct muster_request *other = pending();
    assert_ptr_not_equal(other, request);
    request_end(request, REQUEST_DONE);
    assert_int_equal(told.times, 1);
    struct muster_request *again = pending();
    assert_ptr_equal(again, request);
    muster_request_free(NULL);
    request_drop(other);
    request_drop(again);
}

/* ---- by two threads ---- */

static struct muster_request *shared[ROUNDS];
static pthread_barrier_t together;

static void *end_all(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++) {
        request_end(shared[i], REQUEST_DONE);
    }
    return NULL;
}

static void whoever_ends_it_the_last_notify_is_told(void **state)
{
    (void)state;
    static struct told first[ROUNDS], second[ROUNDS];
    pthread_t thread;
    pthread_barrier_init(&together, NULL, 2);
    for (int i = 0; i < ROUNDS; i++) {
        shared[i] = pending();
    }
    assert_int_equal(pthread_create(&thread, NULL, end_all, NULL), 0);
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++) {
        muster_request_notify(shared[i], tell, &first[i]);
        muster_request_notify(shared[i], tell, &second[i]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        muster_request_free(shared[i]); /* some are still pending */
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        assert_true(first[i].times <= 1 && second[i].times == 1);
    }
    pthread_barrier_destroy(&together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asked_last_is_told_once),
        cmocka_unit_test(what_its_user_has_left_ends_all_the_same),
        cmocka_unit_test(whoever_ends_it_the_last_notify_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
