/* Checks structs of programs that were compiled with an older or a newer muster. Each struct ends
 * at the beginning of a page that must not be touched. */
#include "comm/system/sized.h"

#include "base/testing/test.h"

#include <muster/muster.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct guarded {
    char *pages;
    size_t page_bytes;
};

static int set_up(void **state)
{
    static struct guarded g;
    g.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    g.pages =
        mmap(NULL, 2 * g.page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *state = &g;
    return g.pages == MAP_FAILED || mprotect(g.pages + g.page_bytes, g.page_bytes, PROT_NONE);
}

static int tear_down(void **state)
{
    struct guarded *g = *state;
    return munmap(g->pages, 2 * g->page_bytes);
}

/* Returns a copy of the first size_bytes of a struct, with nothing behind them. */
static void *cut(const struct guarded *g, const void *whole, size_t size_bytes)
{
    char *at = g->pages + g->page_bytes - size_bytes;
    memcpy(at, whole, size_bytes);
    memcpy(at, &size_bytes, sizeof size_bytes);
    return at;
}

static struct muster_comm *alone(void)
{
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    struct muster_comm *comm = NULL;
    assert_int_equal(muster_comm_create(&options, &comm, NULL), 0);
    return comm;
}

static void smaller_options_have_the_defaults_beyond_their_end(void **state)
{
    const struct muster_comm_options whole = MUSTER_COMM_OPTIONS_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm_options own = {.heartbeat_timeout_ms = 17};
    size_t bytes = offsetof(struct muster_comm_options, heartbeat_timeout_ms);
    struct muster_comm_options *old = cut(*state, &whole, bytes);
    assert_int_equal(sized_read(&sized_options, &own, old, &err), 0);
    assert_int_equal(own.heartbeat_timeout_ms, 17);
    assert_int_equal(own.timeout_ms, whole.timeout_ms);
    assert_int_equal(own.struct_size, sizeof own);

    struct muster_comm *comm = NULL;
    assert_int_equal(muster_comm_create(old, &comm, &err), 0);
    muster_comm_free(comm);
}

static void only_what_has_another_size_is_copied(void **state)
{
    const struct muster_call whole = {.struct_size = sizeof whole, .tag = 3, .count = 5};
    struct muster_call other = {.count = 7};
    struct muster_err err = MUSTER_ERR_INIT;
    assert_true(sized_is_ours(&sized_call, &whole));
    struct muster_call *old = cut(*state, &whole, offsetof(struct muster_call, count));
    assert_false(sized_is_ours(&sized_call, old));
    assert_int_equal(sized_read(&sized_call, &other, old, &err), 0);
    assert_true(other.tag == 3 && other.count == 7 && other.struct_size == sizeof other);
    const size_t none = 0;
    memcpy(old, &none, sizeof none);
    assert_false(sized_is_ours(&sized_call, old) || sized_is_ours(&sized_call, NULL));
    assert_int_equal(sized_read(&sized_call, &other, old, &err), MUSTER_EINVAL);
    assert_int_equal(sized_read(&sized_call, &other, NULL, &err), MUSTER_EINVAL);
}

static void form_takes_smaller_options(void **state)
{
    const struct muster_comm_options whole = MUSTER_COMM_OPTIONS_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm_options *old =
        cut(*state, &whole, offsetof(struct muster_comm_options, host));
    struct muster_endpoint *endpoint;
    struct muster_member self;
    struct muster_comm *comm = NULL;
    assert_int_equal(muster_endpoint_open(NULL, &endpoint, &err), 0);
    muster_endpoint_member(endpoint, &self);
    assert_int_equal(muster_comm_form(endpoint, &self, 1, 0, 1, 10000, old, &comm, &err), 0);
    muster_comm_free(comm);
    size_t none = 0;
    memcpy(old, &none, sizeof none);
    assert_int_equal(muster_comm_form(endpoint, &self, 1, 0, 1, 10000, old, &comm, &err),
                     MUSTER_EINVAL);
    muster_endpoint_close(endpoint);
}

static int store_set(void *context, const char *key, const void *value, size_t size_bytes)
{
    (void)key;
    (void)value;
    (void)size_bytes;
    *(bool *)context = true;
    return MUSTER_EUNAVAIL;
}

static int store_get(void *context, const char *key, void *value, size_t capacity_bytes,
                     size_t *ret_size, int64_t timeout_ms)
{
    (void)context;
    (void)key;
    (void)value;
    (void)capacity_bytes;
    (void)ret_size;
    (void)timeout_ms;
    return MUSTER_EUNAVAIL;
}

static void a_store_ends_where_it_says(void **state)
{
    bool asked = false;
    struct muster_err err = MUSTER_ERR_INIT;
    const struct muster_store whole = {sizeof whole, &asked, store_set, store_get};
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    struct muster_comm *comm = NULL;
    options.size = 2;
    options.store = cut(*state, &whole, sizeof whole);
    assert_int_equal(muster_comm_create(&options, &comm, &err), MUSTER_EUNAVAIL);
    assert_true(asked);
    options.store = cut(*state, &whole, offsetof(struct muster_store, get));
    assert_int_equal(muster_comm_create(&options, &comm, &err), MUSTER_EINVAL);
    assert_non_null(strstr(err.text, "set and get"));
}

static void a_smaller_call_is_run_and_started(void **state)
{
    struct muster_comm *comm = alone();
    struct muster_err err = MUSTER_ERR_INIT;
    int32_t in = 7, out = 0;
    const struct muster_call whole = {.struct_size = sizeof whole,
                                      .kind = MUSTER_ALL_REDUCE,
                                      .type = MUSTER_I32,
                                      .in = &in,
                                      .out = &out,
                                      .count = 1};
    struct muster_call *old = cut(*state, &whole, offsetof(struct muster_call, in_counts));
    assert_int_equal(muster_run(comm, old, &err), 0);
    assert_int_equal(out, 7);
    struct muster_request *request;
    out = 0;
    assert_int_equal(muster_start(comm, old, &request, &err), 0);
    assert_int_equal(muster_request_wait(request, -1, &err), 0);
    assert_int_equal(out, 7);
    muster_request_free(request);
    const struct muster_call barrier = MUSTER_CALL_INIT;
    old = cut(*state, &barrier, offsetof(struct muster_call, type));
    assert_int_equal(muster_run(comm, old, &err), 0);
    muster_comm_free(comm);
}

static void a_smaller_state_and_message_are_written_to_their_end(void **state)
{
    struct muster_comm *comm = alone();
    struct muster_err err = MUSTER_ERR_INIT;
    const struct muster_comm_state whole = MUSTER_COMM_STATE_INIT;
    struct muster_comm_state *old =
        cut(*state, &whole, offsetof(struct muster_comm_state, completed));
    old->started = 99;
    assert_int_equal(muster_comm_query(comm, old, NULL, &err), 0);
    assert_int_equal(old->started, 0);

    char in = 'x', out = 0;
    const struct muster_message no_message = MUSTER_MESSAGE_INIT;
    struct muster_message *message =
        cut(*state, &no_message, offsetof(struct muster_message, size_bytes));
    assert_int_equal(muster_send(comm, &in, 1, MUSTER_U8, 0, 5, &err), 0);
    assert_int_equal(muster_recv(comm, &out, 1, MUSTER_U8, 0, 5, message, &err), 0);
    assert_int_equal(message->source, 0);
    assert_int_equal(message->tag, 5);
    muster_comm_free(comm);
}

static void a_smaller_error_has_a_shorter_sentence(void **state)
{
    struct muster_comm *comm = alone();
    const struct muster_err whole = MUSTER_ERR_INIT;
    struct muster_err *old = cut(*state, &whole, offsetof(struct muster_err, text) + 16);
    assert_int_equal(muster_broadcast(comm, NULL, 1, MUSTER_U8, 3, old), MUSTER_EINVAL);
    assert_int_equal(old->code, MUSTER_EINVAL);
    assert_string_equal(old->text, "broadcast: ther");

    /* This failure was kept for later. */
    struct muster_call call = MUSTER_CALL_INIT;
    call.kind = MUSTER_BROADCAST;
    call.peer = 3;
    struct muster_request *request;
    old = cut(*state, &whole, offsetof(struct muster_err, text) + 8);
    assert_int_equal(muster_start(comm, &call, &request, old), MUSTER_EINVAL);
    assert_string_equal(old->text, "broadca");
    muster_comm_free(comm);
}

static void a_size_of_zero_is_refused_with_the_initializers_name(void **state)
{
    (void)state;
    struct muster_comm *comm = alone(), *other = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm_options options = {.size = 1};
    assert_int_equal(muster_comm_create(&options, &other, &err), MUSTER_EINVAL);
    assert_string_equal(err.text, "struct_size of struct muster_comm_options is 0: initialize it "
                                  "with MUSTER_COMM_OPTIONS_INIT");
    struct muster_store store = {0};
    options = (struct muster_comm_options)MUSTER_COMM_OPTIONS_INIT;
    options.store = &store;
    assert_int_equal(muster_comm_create(&options, &other, &err), MUSTER_EINVAL);
    assert_non_null(strstr(err.text, "MUSTER_STORE_INIT"));
    struct muster_call call = {.kind = MUSTER_BARRIER};
    struct muster_request *request;
    assert_int_equal(muster_run(comm, &call, &err), MUSTER_EINVAL);
    assert_non_null(strstr(err.text, "MUSTER_CALL_INIT"));
    assert_int_equal(muster_start(comm, &call, &request, &err), MUSTER_EINVAL);
    struct muster_comm_state query = {0};
    assert_int_equal(muster_comm_query(comm, &query, NULL, &err), MUSTER_EINVAL);
    assert_non_null(strstr(err.text, "MUSTER_COMM_STATE_INIT"));
    struct muster_message message = {0};
    assert_int_equal(muster_recv(comm, NULL, 0, MUSTER_U8, 0, 0, &message, &err), MUSTER_EINVAL);
    assert_non_null(strstr(err.text, "MUSTER_MESSAGE_INIT"));
    struct muster_err forgotten = {0};
    assert_int_equal(muster_barrier(comm, &forgotten), MUSTER_EINVAL);
    assert_string_equal(forgotten.text, "struct_size of struct muster_err is 0: initialize it with "
                                        "MUSTER_ERR_INIT");
    struct muster_err tiny = {.struct_size = 3};
    assert_int_equal(muster_barrier(comm, &tiny), MUSTER_EINVAL);
    assert_int_equal(muster_barrier(comm, NULL), 0);
    muster_comm_free(comm);
}

static void of_a_newer_program_only_what_is_zero_is_accepted(void **state)
{
    (void)state;
    struct {
        struct muster_call call;
        uint64_t new_field;
    } newer = {.call = MUSTER_CALL_INIT};
    newer.call.struct_size = sizeof newer;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *comm = alone();
    assert_int_equal(muster_run(comm, &newer.call, &err), 0);
    newer.new_field = 1;
    assert_int_equal(muster_run(comm, &newer.call, &err), MUSTER_EUNSUPPORTED);
    assert_non_null(strstr(err.text, muster_version_string()));
    newer.call.struct_size = SIZE_MAX;
    assert_int_equal(muster_run(comm, &newer.call, &err), MUSTER_EINVAL);

    struct {
        struct muster_comm_state query;
        uint64_t new_field;
    } larger = {.query = MUSTER_COMM_STATE_INIT, .new_field = 1};
    larger.query.struct_size = sizeof larger;
    assert_int_equal(muster_comm_query(comm, &larger.query, NULL, &err), 0);
    assert_int_equal(larger.new_field, 0);
    assert_int_equal(larger.query.struct_size, sizeof larger);
    muster_comm_free(comm);
}

static void the_library_says_its_version(void **state)
{
    (void)state;
    char text[32];
    (void)snprintf(text, sizeof text, "%d.%d.%d", MUSTER_VERSION_MAJOR, MUSTER_VERSION_MINOR,
                   MUSTER_VERSION_PATCH);
    assert_string_equal(muster_version_string(), text);
    assert_string_equal(muster_version_string(), MUSTER_VERSION); /* as in CMakeLists.txt */
    assert_int_equal(muster_version(), MUSTER_VERSION_NUMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smaller_options_have_the_defaults_beyond_their_end),
        cmocka_unit_test(only_what_has_another_size_is_copied),
        cmocka_unit_test(form_takes_smaller_options),
        cmocka_unit_test(a_store_ends_where_it_says),
        cmocka_unit_test(a_smaller_call_is_run_and_started),
        cmocka_unit_test(a_smaller_state_and_message_are_written_to_their_end),
        cmocka_unit_test(a_smaller_error_has_a_shorter_sentence),
        cmocka_unit_test(a_size_of_zero_is_refused_with_the_initializers_name),
        cmocka_unit_test(of_a_newer_program_only_what_is_zero_is_accepted),
        cmocka_unit_test(the_library_says_its_version),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
