/* Checks where a container's command comes from, and the one error when there is none. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "daemon/machine/image.h"

static void the_nearest_source_wins(void **state)
{
    (void)state;
    static const char job_text[] = "{\"metadata\":{\"annotations\":{\"muster.dev/"
                                   "images\":\"{\\\"i:1\\\":[\\\"mapped\\\"]}\","
                                   "\"muster.dev/command\":\"from job\"}}}";
    static const struct {
        const char *annotations, *container, *words;
    } table[] = {
        {"{}", "{\"image\":\"i:1\",\"command\":[\"own\"]}", NULL},
        {"{\"muster.dev/command\":\"x\"}", "{\"image\":\"i:1\"}", "[\"mapped\"]"},
        {"{\"muster.dev/command\":\"sh -c 'a b'\"}", "{\"image\":\"o\"}",
         "[\"sh\",\"-c\",\"a b\"]"},
        {"{}", "{\"image\":\"o\"}", "[\"from\",\"job\"]"},
    };
    muster_auto(doc) json_t *job = parse_yaml(job_text);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        muster_auto(doc) json_t *annotations = parse_yaml(table[i].annotations);
        muster_auto(doc) json_t *container = parse_yaml(table[i].container);
        muster_auto(doc) json_t *words = NULL;
        assert_int_equal(image_entrypoint(job, annotations, container, &words, NULL), 0);
        muster_auto(free) char *text = words ? doc_print(words) : NULL;
        if (table[i].words) {
            assert_string_equal(text, table[i].words);
        } else {
            assert_null(words);
        }
    }
}

static void an_image_without_command_is_said_exactly(void **state)
{
    (void)state;
    muster_auto(doc) json_t *job = parse_yaml(
        "{\"spec\":{\"pytorchReplicaSpecs\":{\"Master\":{\"template\":{\"spec\":{\"containers\":["
        "{\"name\":\"pytorch\",\"image\":\"mnist:1.0\"}]}}}}}}");
    struct job_problems problems;
    job_problems_init(&problems, 4);
    image_check(job, &problems);
    assert_int_equal(problems.count, 1);
    const struct job_problem *p = &problems.list[0];
    assert_string_equal(p->path, "spec.pytorchReplicaSpecs.Master.template.spec.containers[0]");
    assert_string_equal(p->message,
                        "container pytorch has no command, and muster cannot read the ENTRYPOINT "
                        "of image mnist:1.0: add command:, or the annotation muster.dev/command");
    assert_string_equal(p->reason, "NoCommand");
    job_problems_done(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_source_wins),
        cmocka_unit_test(an_image_without_command_is_said_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
