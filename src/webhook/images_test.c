/* Lists of images are compared with names of images, in the way a runtime reads the names. */
#include "webhook/images.h"

#include "base/testing/test.h"

#include <stdlib.h>
#include <string.h>

static bool allows(const char *list, const char *image)
{
    struct images images;
    struct muster_err err = MUSTER_ERR_INIT;
    if (images_read(&images, list, &err) != 0) {
        fail_msg("%s", err.text);
    }
    bool allowed = images_allow(&images, image);
    images_done(&images);
    return allowed;
}

static void names_are_compared_part_by_part(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        const char *image;
        bool allowed;
    } cases[] = {
        {"registry.example/team/*", "registry.example/team/trainer:1", true},
        {"registry.example/team/*", "registry.example/team/a/b@sha256:00", true},
        {"registry.example/team/*", "registry.example/team", false},
        {"registry.example/team/*", "registry.example/teams/trainer", false},
        {"registry.example/team/*", "registry.example.evil/team/trainer", false},
        {"registry.example/team/*", "evil/registry.example/team/trainer", false},
        {"registry.example/team/*", "registry.example/team/../other/trainer", false},
        {"registry.example/team/*", "registry.example:5000/team/trainer", false},
        {"registry.example/team/*", "REGISTRY.example/team/trainer", true},
        {"registry.example/team/", "registry.example/team/trainer:1", true},
        {"registry.example/team/", "registry.example/team", false},
        {"registry.example/*", "registry.example/team/trainer", true},
        {"registry.example:5000/*", "registry.example:5000/trainer", true},
        {"registry:5000/*", "registry:5000/trainer", true}, /* a port marks a registry */
        {"localhost/*", "localhost/trainer", true},
        {"registry.example/a", "registry.example/a", true},
        {"registry.example/a", "registry.example/a:2", true},
        {"registry.example/a", "registry.example/a@sha256:00", true},
        {"registry.example/a", "registry.example/a/b", false},
        {"registry.example/a:2", "registry.example/a:2", true},
        {"registry.example/a:2", "registry.example/a:3", false},
        {"registry.example/a:2", "registry.example/a", false},
        {"registry.example/a:latest", "registry.example/a", true},
        {"registry.example/a:2", "registry.example/a:2@sha256:00",
         false}, /* the digest is pulled */
        {"registry.example/a@sha256:00", "registry.example/a:2@sha256:00", true},
        {"registry.example/a@sha256:00", "registry.example/a@sha256:01", false},
        {"python", "python", true},
        {"python", "docker.io/library/python:3", true},
        {"docker.io/library/*", "python:3.11", true},
        {"docker.io/python", "index.docker.io/python", true},
        {"python", "someone/python", false},
        {"someone/*", "someone/python", true},
        {"someone/*", "someone", false},
        {"*", "anything/at.all", true},
        {"*", "No Name", false},
        {"", "python", false},
        {"# nothing yet", "python", false},
        {"a/b, c/d\n# c/e\n\tf/g", "f/g", true},
        {"a/b, c/d\n# c/e\n\tf/g", "c/e", false},
        {"a/b # c/e", "a/b", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (allows(cases[i].list, cases[i].image) != cases[i].allowed) {
            fail_msg("'%s' under '%s'", cases[i].image, cases[i].list);
        }
    }
}

static void what_is_no_name_is_not_allowed(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",    "/",     "a//b",    "a/",        "/a",     "a b", "a\nb", "a:",       "a@",
        "a@b", "a:b:c", "a@b:c@d", "UPPER/a/B", "a/..:1", "é",   ":tag", "@sha256:0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (allows("*", names[i])) {
            fail_msg("'%s'", names[i]);
        }
    }
    char *longest = calloc(1, 4096);
    memset(longest, 'a', 4095);
    assert_false(allows("*", longest));
    free(longest);
}

static void without_a_list_every_image_is_allowed(void **state)
{
    (void)state;
    struct images images = {0};
    assert_true(images_allow(&images, "anything"));
    assert_true(images_allow(&images, "No Name"));
}

static void a_pattern_that_is_none_is_named(void **state)
{
    (void)state;
    static const char *const lists[] = {"a//b", "/*", "a/*/b", "a*", "ok/a b/C/", "a:*"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct images images;
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(images_read(&images, lists[i], &err), MUSTER_EDATA);
        assert_non_null(strstr(err.text, "is no pattern of images"));
        assert_int_equal(images.count, 0);
    }
}

static void a_list_has_a_limit(void **state)
{
    (void)state;
    char *text = calloc(IMAGES_PATTERNS_MAX + 2, 2);
    assert_non_null(text);
    for (int i = 0; i <= IMAGES_PATTERNS_MAX; i++) {
        memcpy(text + (size_t)i * 2, "a ", 2);
    }
    struct images images;
    assert_int_equal(images_read(&images, text, NULL), MUSTER_ETOOBIG);
    text[(size_t)IMAGES_PATTERNS_MAX * 2] = '\0';
    assert_int_equal(images_read(&images, text, NULL), 0);
    assert_int_equal(images.count, IMAGES_PATTERNS_MAX);
    images_done(&images);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_compared_part_by_part),
        cmocka_unit_test(what_is_no_name_is_not_allowed),
        cmocka_unit_test(without_a_list_every_image_is_allowed),
        cmocka_unit_test(a_pattern_that_is_none_is_named),
        cmocka_unit_test(a_list_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
