/* Checks that printed YAML is read back as the same document. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/yaml/yaml.h"

static void a_job_is_printed_as_kubectl_prints_it(void **state)
{
    (void)state;
    const char *text = "apiVersion: kubeflow.org/v1\n"
                       "metadata:\n"
                       "  annotations:\n"
                       "    sidecar.istio.io/inject: \"false\"\n"
                       "spec:\n"
                       "  nprocPerNode: \"2\"\n"
                       "  containers:\n"
                       "  - name: pytorch\n"
                       "    args:\n"
                       "    - --backend\n"
                       "    command:\n"
                       "    - sh\n"
                       "    - -c\n"
                       "    - |\n"
                       "      set -e\n"
                       "\n"
                       "      train \"$@\"\n"
                       "    resources:\n"
                       "      limits:\n"
                       "        cpu: 500m\n"
                       "        memory: 1Gi\n"
                       "        nvidia.com/gpu: 1\n"
                       "  empty: {}\n"
                       "  none: []\n"
                       "  nothing: null\n"
                       "  suspend: false\n";
    json_t *doc = parse_yaml(text);
    char *printed = yaml_print(doc);
    /* A leading dash is quoted, because readers differ about it. */
    char expected[2048];
    const char *dash = strstr(text, "- --backend");
    snprintf(expected, sizeof expected, "%.*s- \"--backend\"%s", (int)(dash - text), text,
             dash + strlen("- --backend"));
    char *minus_c = strstr(expected, "- -c");
    memmove(minus_c + 6, minus_c + 4, strlen(minus_c + 4) + 1);
    memcpy(minus_c, "- \"-c\"", 6);
    assert_string_equal(printed, expected);
    free(printed);
    json_decref(doc);
}

static void any_text_survives(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        " ",
        "~",
        "null",
        "yes",
        "y",
        "No",
        "012",
        "0x1f",
        "1e3",
        "1_000",
        ".5",
        ".inf",
        "1:30",
        "2001-01-01",
        "08",
        "-",
        "- a",
        "a: b",
        "a:",
        ":a",
        "a #b",
        "#a",
        "<<",
        "=",
        "---",
        "...",
        "? a",
        "!x",
        "&a",
        "*a",
        "|",
        "%TAG",
        "@a",
        "`a",
        "'a'",
        "\"a\"",
        "a\\b",
        "a\nb",
        "a\n",
        "a\n\n",
        "\na",
        "\n",
        " a\nb",
        "a\n b",
        "a \nb",
        "a\n\n\nb",
        "a\tb\nc",
        "a\r\n",
        "\x01",
        "\x7f",
        "é",
        "\xc2\x85",
        "\xc2\x9b",
        "\xe2\x80\xa8",
        "\xef\xbb\xbf",
        "😀",
        "a\nb: c\n#d",
        "{}",
        "[1]",
        "a,b",
        "a b",
        "1Gi",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *doc = json_pack("{s:s, s:[s, [s], {s:s}]}", "a", texts[i], "b", texts[i], texts[i],
                                *texts[i] ? texts[i] : "k", texts[i]);
        assert_non_null(doc);
        char *printed = yaml_print(doc);
        json_t *again = parse_yaml(printed);
        if (!json_equal(doc, again)) {
            fail_msg("case %zu: %s", i, printed);
        }
        free(printed);
        json_decref(again);
        json_decref(doc);
    }
}

static void every_shape_survives(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "[]",
        "{}",
        "\"text\"",
        "\"a\\nb\\n\"",
        "12",
        "-1.5",
        "1e300",
        "true",
        "[[[]],[{}],[[1,2],3]]",
        "{\"a\":{\"b\":{\"c\":[{\"d\":[1,[2,{\"e\":null}]]}]}}}",
        "[{\"a\":1,\"b\":[2]},{\"a\":{}}]",
        "9223372036854775807",
        "-9223372036854775807",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        json_t *doc = NULL;
        assert_int_equal(doc_parse(shapes[i], strlen(shapes[i]), &doc, NULL), 0);
        char *printed = yaml_print(doc);
        json_t *again = parse_yaml(printed);
        assert_true(json_equal(doc, again));
        free(printed);
        json_decref(again);
        json_decref(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_printed_as_kubectl_prints_it),
        cmocka_unit_test(any_text_survives),
        cmocka_unit_test(every_shape_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
