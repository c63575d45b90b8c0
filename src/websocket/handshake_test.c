/* The handshake: RFC 6455 section 1.3's example, and what clients offer. */
#include "base/testing/test.h"
#include "websocket/handshake.h"

#include <string.h>

static void test_the_key_of_the_rfc(void **state)
{
    (void)state;
    char accept[WEBSOCKET_ACCEPT_BYTES];
    assert_int_equal(websocket_accept_key("dGhlIHNhbXBsZSBub25jZQ==", accept), 0);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_true(websocket_accept_key("short", accept) < 0);
}

static void test_who_asks_for_a_websocket(void **state)
{
    (void)state;
    static const struct {
        const char *connection, *upgrade;
        bool asked;
    } cases[] = {{"Upgrade", "websocket", true},
                 {"keep-alive, upgrade", "WebSocket", true},
                 {"keep-alive", "websocket", false},
                 {"Upgrade", "SPDY/3.1", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct http_pair headers[] = {{"connection", cases[i].connection},
                                            {"upgrade", cases[i].upgrade}};
        const struct http_request request = {.headers = headers, .header_count = 2};
        assert_int_equal(websocket_is_asked(&request, "websocket"), cases[i].asked);
    }
}

/* The order of our list decides; names are compared as a whole. */
static void test_the_subprotocol(void **state)
{
    (void)state;
    static const char *const ours[] = {"v5.channel.k8s.io", "v4.channel.k8s.io", NULL};
    static const struct {
        const char *first, *second, *taken;
    } cases[] = {{"v4.channel.k8s.io, v5.channel.k8s.io", "", "v5.channel.k8s.io"},
                 {"v4.channel.k8s.io", "v5.channel.k8s.io", "v5.channel.k8s.io"},
                 {"channel.k8s.io,v4.channel.k8s.io", "", "v4.channel.k8s.io"},
                 {"v4.channel.k8s.iox", "xv4.channel.k8s.io", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct http_pair headers[] = {{"sec-websocket-protocol", cases[i].first},
                                            {"Sec-WebSocket-Protocol", cases[i].second}};
        const struct http_request request = {.headers = headers, .header_count = 2};
        const char *taken = websocket_subprotocol(&request, ours);
        if (cases[i].taken) {
            assert_string_equal(taken, cases[i].taken);
        } else {
            assert_null(taken);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_key_of_the_rfc),
        cmocka_unit_test(test_who_asks_for_a_websocket),
        cmocka_unit_test(test_the_subprotocol),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
