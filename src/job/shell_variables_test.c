/* Which variables of a shell's environment a rank may see. */
#include "job/shell_variables.h"

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
    json_t *captured = shell_variables_capture(environment);
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
        {"PATH", VARIABLE_LISTED | VARIABLE_LOCAL},
        {"RANK", VARIABLE_LAUNCHER | VARIABLE_OURS | VARIABLE_OPERATOR},
        {"LOCAL_RANK", VARIABLE_LAUNCHER},
        {"OMPI_COMM_WORLD_RANK", VARIABLE_LAUNCHER},
        {"SLURM_PROCID", VARIABLE_LAUNCHER},
        {"MUSTER_HOME", VARIABLE_LAUNCHER},
        {"MUSTER_POD", VARIABLE_LAUNCHER | VARIABLE_OURS},
        {"PET_RDZV_CONF", VARIABLE_LAUNCHER | VARIABLE_OURS | VARIABLE_OPERATOR},
        {"PET_LOG_DIR", VARIABLE_LAUNCHER},
        {"CUDA_VISIBLE_DEVICES", VARIABLE_LISTED},
        {"LD_PRELOAD", VARIABLE_LOCAL},
        {"PYTHONUNBUFFERED", VARIABLE_OPERATOR | VARIABLE_LOCAL},
        {"OMP_NUM_THREADS", 0},
        {"API_KEY", 0},
        {"RANKS", 0},
        {"", 0},
    };
    static const enum shell_variable_kind kinds[] = {
        VARIABLE_LISTED, VARIABLE_LAUNCHER, VARIABLE_OURS, VARIABLE_LOCAL, VARIABLE_OPERATOR};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        unsigned found = 0;
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            found |= shell_variable_is(kinds[k], table[i].name) ? kinds[k] : 0U;
        }
        assert_int_equal(found, table[i].kinds);
    }
}

/* Each pattern of a kind is in backquotes in the line of docs/environment.md that begins with the
 * name of the kind. */
static void the_page_has_every_name(void **state)
{
    (void)state;
    static const struct {
        enum shell_variable_kind kind;
        const char *begin;
    } lines[] = {{VARIABLE_LISTED, "\n| the list |"},
                 {VARIABLE_LAUNCHER, "\n| a launcher's |"},
                 {VARIABLE_OURS, "\n| muster's |"},
                 {VARIABLE_LOCAL, "\n| this machine's |"}};
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
        for (size_t i = 0; i < shell_variable_count; i++) {
            char quoted[64];
            (void)snprintf(quoted, sizeof quoted, "`%s`", shell_variables[i].pattern);
            if ((shell_variables[i].kinds & lines[k].kind) && !strstr(line, quoted)) {
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
