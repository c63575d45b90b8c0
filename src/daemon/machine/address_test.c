/* Checks which values of variables change on this machine, and that all others stay as on a
 * cluster. */
#include "base/testing/test.h"
#include "daemon/machine/address.h"

#include <stdlib.h>

static void only_the_jobs_own_addresses_change(void **state)
{
    (void)state;
    struct job job = {.name = "mnist", .namespace = "default"};
    job.replica[JOB_MASTER].port = 23456;
    job.replica[JOB_WORKER].port = 23456;
    static const struct {
        const char *name, *value, *local;
    } table[] = {
        {"MASTER_ADDR", "mnist-master-0", "127.0.0.1"},
        {"PET_MASTER_ADDR", "mnist-master-0", "127.0.0.1"},
        {"MASTER_PORT", "23456", "21000"},
        {"PET_RDZV_ENDPOINT", "mnist-worker-0:23456", "127.0.0.1:22000"},
        {"PET_RDZV_ENDPOINT", "etcd.example:2379", NULL}, /* the user's own rendezvous */
        {"MASTER_ADDR", "other-master-0", NULL},
        {"MASTER_ADDR", "mnist-master-x", NULL},
        {"MASTER_PORT", "9999", NULL},
        {"WORLD_SIZE", "2", NULL},
        {"PEER", "mnist-master-0", NULL},
        {"MUSTER_COORDINATOR", "tcp:mnist-master-0:23456", "tcp:127.0.0.1:21000"},
        {"MUSTER_COORDINATOR", "tcp:mnist-master-0:777", "tcp:127.0.0.1:777"},
        {"MUSTER_COORDINATOR", "tcp:10.0.0.1:23456", NULL}, /* on another machine */
        {"MUSTER_COORDINATOR", "unix:/run/mnist", NULL},
        {"MUSTER_COORDINATOR", "tcp:", NULL},
        {"MUSTER_COORDINATOR", "", NULL},
        {"MUSTER_COORDINATOR_LISTEN", "tcp:0.0.0.0:23456", "tcp:127.0.0.1:21000"},
    };
    const struct address_map map = {&job, 21000, 22000, NULL};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char *local = address_localize(&map, table[i].name, table[i].value);
        if (table[i].local) {
            assert_non_null(local);
            assert_string_equal(local, table[i].local);
        } else {
            assert_null(local);
        }
        free(local);
    }
}

static void a_private_network_keeps_its_ports(void **state)
{
    (void)state;
    struct job job = {.name = "mnist", .namespace = "default"};
    job.replica[JOB_MASTER].port = 23456;
    const struct address_map map = {&job, 0, 0, NULL};
    assert_null(address_localize(&map, "MASTER_PORT", "23456"));
    char *endpoint = address_localize(&map, "PET_RDZV_ENDPOINT", "mnist-worker-0:23456");
    assert_string_equal(endpoint, "127.0.0.1:23456");
    free(endpoint);
}

static void a_coordinator_of_this_machine_has_a_socket(void **state)
{
    (void)state;
    struct job job = {.name = "mnist", .namespace = "default"};
    const struct address_map map = {&job, 0, 0, "/h/jobs/1/coordinator.sock"};
    static const char *const names[] = {"MUSTER_COORDINATOR", "MUSTER_COORDINATOR_LISTEN"};
    static const char *const values[] = {"tcp:mnist-master-0:23456", "tcp:0.0.0.0:23456"};
    for (size_t i = 0; i < 2; i++) {
        char *local = address_localize(&map, names[i], values[i]);
        assert_string_equal(local, "unix:/h/jobs/1/coordinator.sock");
        free(local);
    }
    assert_null(address_localize(&map, "MUSTER_COORDINATOR", "tcp:example.org:23456"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_jobs_own_addresses_change),
        cmocka_unit_test(a_coordinator_of_this_machine_has_a_socket),
        cmocka_unit_test(a_private_network_keeps_its_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
