/* What of a shell's environment a rank may see. */
#include "job/submit.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/testing/test.h"

#include <stdio.h>
#include <stdlib.h>

static void strays_stay_out(void **state)
{
    (void)state;
    char *environment[] = {"PATH=/bin",
                           "LC_ALL=C",
                           "CONDA_PREFIX=/c",
                           "VIRTUAL_ENV=/v",
                           "MASTER_PORT=1",
                           "RANK=3",
                           "MASTER_ADDR=h",
                           "WORLD_SIZE=2",
                           "AWS_SECRET_ACCESS_KEY=x",
                           "LC_=odd",
                           "noequals",
                           "PATHX=1",
                           "LANG=\xff",
                           NULL};
    json_t *captured = submit_capture(environment);
    assert_string_equal(json_string_value(json_object_get(captured, "PATH")), "/bin");
    assert_string_equal(json_string_value(json_object_get(captured, "LC_ALL")), "C");
    assert_string_equal(json_string_value(json_object_get(captured, "CONDA_PREFIX")), "/c");
    assert_string_equal(json_string_value(json_object_get(captured, "VIRTUAL_ENV")), "/v");
    assert_int_equal(json_object_size(captured), 4);
    json_decref(captured);
}

static void names_are_of_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned kinds;
    } table[] = {
        {"PATH", SUBMIT_LISTED | SUBMIT_LOCAL},
        {"RANK", SUBMIT_LAUNCHER | SUBMIT_OURS},
        {"LOCAL_RANK", SUBMIT_LAUNCHER},
        {"OMPI_COMM_WORLD_RANK", SUBMIT_LAUNCHER},
        {"SLURM_PROCID", SUBMIT_LAUNCHER},
        {"MUSTER_HOME", SUBMIT_LAUNCHER},
        {"MUSTER_POD", SUBMIT_LAUNCHER | SUBMIT_OURS},
        {"PET_RDZV_CONF", SUBMIT_LAUNCHER | SUBMIT_OURS},
        {"PET_LOG_DIR", SUBMIT_LAUNCHER},
        {"CUDA_VISIBLE_DEVICES", SUBMIT_LISTED},
        {"LD_PRELOAD", SUBMIT_LOCAL},
        {"OMP_NUM_THREADS", 0},
        {"API_KEY", 0},
        {"RANKS", 0},
        {"", 0},
    };
    static const enum submit_kind kinds[] = {SUBMIT_LISTED, SUBMIT_LAUNCHER, SUBMIT_OURS,
                                             SUBMIT_LOCAL};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        unsigned found = 0;
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            found |= submit_is(kinds[k], table[i].name) ? kinds[k] : 0U;
        }
        assert_int_equal(found, table[i].kinds);
    }
}

/* Each pattern of a kind stands, in backquotes, in the line of docs/environment.md that begins with
 * the kind's name. */
static void the_page_has_every_name(void **state)
{
    (void)state;
    static const struct {
        enum submit_kind kind;
        const char *begin;
    } lines[] = {{SUBMIT_LISTED, "\n| the list |"},
                 {SUBMIT_LAUNCHER, "\n| a launcher's |"},
                 {SUBMIT_OURS, "\n| muster's |"},
                 {SUBMIT_LOCAL, "\n| this machine's |"}};
    muster_auto(free) char *page = NULL;
    size_t bytes = 0;
    char path[512];
    const char *source = getenv("MUSTER_SOURCE");
    (void)snprintf(path, sizeof path, "%s/docs/environment.md", source ? source : ".");
    assert_int_equal(file_read(path, 1 << 20, &page, &bytes, NULL), 0);
    for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++) {
        const char *begin = strstr(page, lines[k].begin);
        assert_non_null(begin);
        muster_auto(free) char *line = strndup(begin + 1, strcspn(begin + 1, "\n"));
        for (size_t i = 0; i < submit_rule_count; i++) {
            char quoted[64];
            (void)snprintf(quoted, sizeof quoted, "`%s`", submit_rules[i].pattern);
            if ((submit_rules[i].kinds & lines[k].kind) && !strstr(line, quoted)) {
                fail_msg("docs/environment.md, %s: %s is missing", lines[k].begin + 1, quoted);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strays_stay_out),
        cmocka_unit_test(names_are_of_kinds),
        cmocka_unit_test(the_page_has_every_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
