/* Where a container's command comes from, and the one error when it comes from nowhere. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/test.h"
#include "daemon/image.h"

static json_t *parse(const char *text)
{
    json_t *doc = NULL;
    assert_int_equal(doc_parse(text, strlen(text), &doc, NULL), 0);
    return doc;
}

static void the_nearest_source_wins_and_args_follow(void **state)
{
    (void)state;
    static const char mapped[] =
        "{\"metadata\":{\"annotations\":{\"muster.dev/images\":\"{\\\"i:1\\\":[\\\"mapped\\\"]}\","
        "\"muster.dev/command\":\"from job\"}}}";
    static const struct {
        const char *job, *annotations, *container, *words;
    } table[] = {
        {mapped, "{}", "{\"name\":\"c\",\"image\":\"i:1\",\"command\":[\"own\"],\"args\":[\"a\"]}",
         "[\"own\",\"a\"]"},
        {mapped, "{\"muster.dev/command\":\"x\"}",
         "{\"name\":\"c\",\"image\":\"i:1\",\"args\":[\"a\",\"b\"]}", "[\"mapped\",\"a\",\"b\"]"},
        {mapped, "{\"muster.dev/command\":\"sh -c 'a b'\"}", "{\"name\":\"c\",\"image\":\"other\"}",
         "[\"sh\",\"-c\",\"a b\"]"},
        {mapped, "{}", "{\"name\":\"c\",\"image\":\"other\"}", "[\"from\",\"job\"]"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        muster_auto(doc) json_t *job = parse(table[i].job);
        muster_auto(doc) json_t *annotations = parse(table[i].annotations);
        muster_auto(doc) json_t *container = parse(table[i].container);
        muster_auto(doc) json_t *words = NULL;
        assert_int_equal(image_command(job, annotations, container, &words, NULL), 0);
        muster_auto(free) char *text = doc_print(words);
        assert_string_equal(text, table[i].words);
    }
}

static void an_image_without_command_is_said_exactly(void **state)
{
    (void)state;
    muster_auto(doc) json_t *job = parse(
        "{\"spec\":{\"pytorchReplicaSpecs\":{\"Master\":{\"template\":{\"spec\":{\"containers\":["
        "{\"name\":\"pytorch\",\"image\":\"mnist:1.0\"}]}}}}}}");
    struct muster_err err = {0};
    assert_int_equal(image_check(job, &err), MUSTER_EDATA);
    assert_non_null(strstr(err.text, "Master: container pytorch has no command"));
    assert_non_null(strstr(err.text, "--image 'mnist:1.0=COMMAND'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_source_wins_and_args_follow),
        cmocka_unit_test(an_image_without_command_is_said_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
