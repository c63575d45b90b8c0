/* Checks how a worker's connection recognizes that there is no coordinator, and how the job
 * ended. */
#include "client/socket/connection.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel connects a socket to itself by chance, if no process listens yet at a port of the
 * range that the kernel assigns. */
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

static void write_mark(const char *mark, const char *contents)
{
    FILE *file = fopen(mark, "w");
    assert_non_null(file);
    assert_true(fputs(contents, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void what_lies_beside_the_socket_says_how_the_job_ended(void **state)
{
    (void)state;
    char folder[] = "/tmp/muster-test-XXXXXX", address[64], mark[64];
    struct muster_err err = MUSTER_ERR_INIT;
    struct connection c;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(address, sizeof address, "unix:%s/socket", folder);
    (void)snprintf(mark, sizeof mark, "%s/socket.done", folder);
    connection_init(&c);
    assert_int_equal(connection_open(&c, address, &err), MUSTER_EUNAVAIL);
    write_mark(mark, "");
    assert_int_equal(connection_open(&c, address, &err), MUSTER_EGONE);
    write_mark(mark, "the job has failed: why");
    assert_int_equal(connection_open(&c, address, &err), MUSTER_EFAILED);
    assert_string_equal(err.text, "the job has failed: why");
    assert_int_equal(unlink(mark), 0);
    assert_int_equal(mkdir(mark, 0700), 0); /* an unreadable mark is ignored */
    assert_int_equal(connection_open(&c, address, &err), MUSTER_EUNAVAIL);
    connection_done(&c);
    assert_true(rmdir(mark) == 0 && rmdir(folder) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_beside_the_socket_says_how_the_job_ended),
        cmocka_unit_test(who_is_connected_to_itself_has_no_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
