/* Probes members that listen, and members that do not listen any more. */
#include "coordinator/server/probe.h"

#include "base/testing/test.h"
#include "comm/endpoint/endpoint.h"

#include <muster/comm.h>

#include <string.h>
#include <unistd.h>

struct asked {
    uv_loop_t loop;
    struct server_probe *probe;
    bool answered, refused;
};

static void on_answer(void *data, bool refused)
{
    struct asked *asked = data;
    asked->answered = true;
    asked->refused = refused;
    server_probe_stop(asked->probe);
    asked->probe = NULL;
}

static void address_of(struct muster_endpoint *endpoint, uint8_t ret[WIRE_ADDRESS_BYTES])
{
    struct muster_member member;
    muster_endpoint_member(endpoint, &member);
    memcpy(ret, member.bytes, sizeof member.bytes);
}

static void listen_at(const char *host, struct muster_endpoint **ret,
                      uint8_t ret_address[WIRE_ADDRESS_BYTES])
{
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(muster_endpoint_open(host, ret, &err), 0);
    address_of(*ret, ret_address);
}

static bool is_refused(const uint8_t address[WIRE_ADDRESS_BYTES])
{
    struct asked asked = {0};
    assert_int_equal(uv_loop_init(&asked.loop), 0);
    asked.probe = server_probe_start(&asked.loop, address, on_answer, &asked);
    assert_non_null(asked.probe);
    assert_int_equal(uv_run(&asked.loop, UV_RUN_DEFAULT), 0);
    assert_true(asked.answered);
    assert_int_equal(uv_loop_close(&asked.loop), 0);
    return asked.refused;
}

static void a_port_refuses_once_its_process_has_ended(void **state)
{
    (void)state;
    struct muster_endpoint *endpoint;
    uint8_t address[WIRE_ADDRESS_BYTES];
    listen_at("127.0.0.1", &endpoint, address);
    assert_false(is_refused(address));
    assert_false(is_refused(address)); /* no process accepts the connections: it is stopped */
    muster_endpoint_close(endpoint);
    assert_true(is_refused(address));
}

static void a_probe_is_stopped_before_it_is_answered(void **state)
{
    (void)state;
    struct muster_endpoint *endpoint;
    uint8_t address[WIRE_ADDRESS_BYTES];
    struct asked asked = {0};
    listen_at("127.0.0.1", &endpoint, address);
    assert_int_equal(uv_loop_init(&asked.loop), 0);
    server_probe_stop(server_probe_start(&asked.loop, address, on_answer, &asked));
    assert_int_equal(uv_run(&asked.loop, UV_RUN_DEFAULT), 0);
    assert_false(asked.answered);
    assert_int_equal(uv_loop_close(&asked.loop), 0);
    muster_endpoint_close(endpoint);
}

/* The test changes the IPv6 address, as struct member has it, to that of another network. */
static void an_address_of_the_loopback_says_nothing_of_another_host(void **state)
{
    (void)state;
    enum { ADDRESS_AT = 48, LAST = ADDRESS_AT + 15, FIRST_OF_FOUR = ADDRESS_AT + 12 };
    struct muster_endpoint *endpoint;
    uint8_t address[WIRE_ADDRESS_BYTES], none[WIRE_ADDRESS_BYTES] = {0};
    listen_at("127.0.0.1", &endpoint, address);
    assert_int_equal(address[FIRST_OF_FOUR], 127);
    assert_false(server_probe_may(address));
    address[FIRST_OF_FOUR] = 10;
    assert_true(server_probe_may(address));
    memset(address + ADDRESS_AT, 0, 16);
    assert_false(server_probe_may(address));
    address[LAST] = 1; /* ::1 */
    assert_false(server_probe_may(address));
    assert_false(server_probe_may(none));
    assert_null(server_probe_start(NULL, none, on_answer, NULL));
    muster_endpoint_close(endpoint);
}

/* The connection is within the host; the member listens at this address, or at another one. */
static void an_address_is_of_who_connects_from_it(void **state)
{
    (void)state;
    struct muster_endpoint *here, *there;
    uint8_t address[WIRE_ADDRESS_BYTES], other[WIRE_ADDRESS_BYTES], none[WIRE_ADDRESS_BYTES] = {0};
    listen_at("127.0.0.1", &here, address);
    listen_at("127.0.0.2", &there, other);
    struct muster_member member;
    memcpy(member.bytes, address, sizeof member.bytes);
    const struct member at = endpoint_member(&member);
    int fd = endpoint_begin(&at, false);
    assert_true(fd >= 0);
    assert_true(server_probe_is_of_peer(address, fd));
    assert_false(server_probe_is_of_peer(other, fd));
    assert_false(server_probe_is_of_peer(none, fd));
    assert_false(server_probe_is_of_peer(address, -1));
    close(fd);
    muster_endpoint_close(there);
    muster_endpoint_close(here);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_refuses_once_its_process_has_ended),
        cmocka_unit_test(a_probe_is_stopped_before_it_is_answered),
        cmocka_unit_test(an_address_of_the_loopback_says_nothing_of_another_host),
        cmocka_unit_test(an_address_is_of_who_connects_from_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
