/* Checks that the memory of a communicator's links grows with the number of hosts, not with its
 * square. */
#include "comm/api/comm.h"
#include "comm/tcp/link.h"

#include "base/testing/test.h"

#include <stdio.h>
#include <unistd.h>

enum { HOST_BYTES_MAX = 512 * 1024 }; /* of address space for each host */

/* Returns the size of this process's address space. */
static size_t virtual_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    size_t pages = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Makes links as a communicator does when it forms, before the first connection. Returns how much
 * address space they use. */
static size_t bytes_of_links(int hosts)
{
    const struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    int lowest[MUSTER_MAX_RANKS];
    for (int r = 0; r < hosts; r++) {
        lowest[r] = r;
    }
    struct muster_comm *comm = comm_new(0, hosts, lowest, &options);
    assert_non_null(comm);
    size_t before = virtual_bytes();
    assert_int_equal(link_init(comm, &err), 0);
    size_t bytes = virtual_bytes() - before;
    muster_comm_free(comm);
    return bytes;
}

static void links_take_one_piece_a_peer(void **state)
{
    (void)state;
    static const int hosts[] = {2, 16, MUSTER_MAX_RANKS};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        size_t bytes = bytes_of_links(hosts[i]);
        print_message("%d hosts: %zu KiB of addresses\n", hosts[i], bytes / 1024);
        assert_true(bytes <= (size_t)hosts[i] * HOST_BYTES_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_take_one_piece_a_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
