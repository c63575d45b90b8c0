/* What a worker takes for its coordinator. */
#include "client/socket/connection.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

/* As the kernel does by chance where nobody listens yet at a port of the range it gives out. */
static void who_is_connected_to_itself_has_no_coordinator(void **state)
{
    (void)state;
    struct sockaddr_in self = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof self;
    struct connection c;
    connection_init(&c);
    c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    c.connecting = true;
    assert_int_equal(bind(c.fd, (struct sockaddr *)&self, bytes), 0);
    assert_int_equal(getsockname(c.fd, (struct sockaddr *)&self, &bytes), 0);
    assert_true(connect(c.fd, (struct sockaddr *)&self, bytes) == 0 || errno == EINPROGRESS);
    struct pollfd p = {.fd = c.fd, .events = connection_events(&c)};
    assert_int_equal(poll(&p, 1, test_limit_ms()), 1);
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(connection_move(&c, &err), MUSTER_EUNAVAIL);
    assert_non_null(strstr(err.text, "Connection refused"));
    connection_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_connected_to_itself_has_no_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
