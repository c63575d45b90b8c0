/* The nodes that cover a span tile it, and all covers have the nodes of one tree. */
#include "schedule/tree.h"

#include "base/testing/test.h"

static void left_is_the_largest_power_of_two_below(void **state)
{
    (void)state;
    assert_int_equal(tree_left(2), 1);
    assert_int_equal(tree_left(3), 2);
    assert_int_equal(tree_left(4), 2);
    assert_int_equal(tree_left(5), 4);
    assert_int_equal(tree_left(9), 8);
}

static void covers_tile_their_span(void **state)
{
    (void)state;
    for (size_t total = 1; total <= 40; total++) {
        for (size_t first = 0; first <= total; first++) {
            for (size_t count = 0; first + count <= total; count++) {
                struct tree_span nodes[TREE_MAX_COVER];
                size_t num = tree_cover(total, (struct tree_span){first, count}, nodes);
                size_t at = first;
                for (size_t i = 0; i < num; i++) {
                    assert_int_equal(nodes[i].first, at);
                    at += nodes[i].count;
                }
                assert_int_equal(at, first + count);
            }
        }
    }
}

static void a_whole_tree_is_one_node(void **state)
{
    (void)state;
    struct tree_span nodes[TREE_MAX_COVER];
    assert_int_equal(tree_cover(1000, (struct tree_span){0, 1000}, nodes), 1);
    assert_int_equal(tree_cover(8, (struct tree_span){1, 6}, nodes), 4); /* 1, 2-3, 4-5, 6 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_is_the_largest_power_of_two_below),
        cmocka_unit_test(covers_tile_their_span),
        cmocka_unit_test(a_whole_tree_is_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
