/* A pod's hosts file has everything of the machine's file, and the names that are missing there. */
#include "base/cleanup.h"
#include "base/testing/test_doc.h"
#include "process/monitor/hosts.h"

#include <stdlib.h>

static void names_that_are_missing_are_added(void **state)
{
    (void)state;
    static const char *const names[] = {"laptop", "mnist-worker-0"};
    static const struct {
        const char *machine, *expected;
    } table[] = {
        {NULL,
         "127.0.0.1\tlocalhost\n::1\tlocalhost\n127.0.0.1\tlaptop\n127.0.0.1\tmnist-worker-0\n"},
        {"", "127.0.0.1\tlaptop\n127.0.0.1\tmnist-worker-0\n"},
        {"10.0.0.1 nas", "10.0.0.1 nas\n127.0.0.1\tlaptop\n127.0.0.1\tmnist-worker-0\n"},
        {"127.0.1.1 laptop.lan LAPTOP # mine\n",
         "127.0.1.1 laptop.lan LAPTOP # mine\n127.0.0.1\tmnist-worker-0\n"},
        {"127.0.0.1 laptops #laptop\nlaptop\n\n # 1 laptop\n10.0.0.2\tmnist-worker-0\n",
         "127.0.0.1 laptops #laptop\nlaptop\n\n # 1 laptop\n10.0.0.2\tmnist-worker-0\n127.0.0.1\tlaptop\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        muster_auto(free) char *text = hosts_text(table[i].machine, names, 2, NULL);
        assert_string_equal(text, table[i].expected);
    }
}

static void what_is_no_name_is_left_out(void **state)
{
    (void)state;
    static const char *const names[] = {"", "two words", "line\nbreak", "same", "Same"};
    muster_auto(free) char *text = hosts_text("", names, 5, NULL);
    assert_string_equal(text, "127.0.0.1\tsame\n");
}

static void services_have_all_the_names_of_a_cluster(void **state)
{
    (void)state;
    muster_auto(doc) json_t *services =
        parse("{'namespace': 'team', 'names': ['a-master-0', 'no name', 7, 'a-worker-0']}");
    muster_auto(doc) json_t *nowhere = parse("{'namespace': 'x\\ny', 'names': ['a']}");
    muster_auto(free) char *text = hosts_text("", NULL, 0, services);
    assert_string_equal(text, "127.0.0.1\ta-master-0 a-master-0.team a-master-0.team.svc "
                              "a-master-0.team.svc.cluster.local\n"
                              "127.0.0.1\ta-worker-0 a-worker-0.team a-worker-0.team.svc "
                              "a-worker-0.team.svc.cluster.local\n");
    muster_auto(free) char *none = hosts_text("", NULL, 0, nowhere);
    assert_string_equal(none, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(services_have_all_the_names_of_a_cluster),
        cmocka_unit_test(names_that_are_missing_are_added),
        cmocka_unit_test(what_is_no_name_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
