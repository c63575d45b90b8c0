/* Checks what is made from the command table: docs/cli.md is current, and every verb is in every
 * list. */
#include "cli/command/commands.h"
#include "cli/command/elasticdl.h"
#include "cli/command/help.h"

#include "base/file.h"
#include "base/testing/test.h"

#include <stdlib.h>

static char *text_of(void (*print)(FILE *out))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    print(out);
    fclose(out);
    return text;
}

static void is_current(const char *document, void (*print)(FILE *out))
{
    const char *source = getenv("MUSTER_SOURCE");
    assert_non_null(source);
    char *path = file_join(source, document);
    char *kept = NULL;
    size_t bytes = 0;
    assert_int_equal(file_read(path, 1 << 20, &kept, &bytes, NULL), 0);
    char *made = text_of(print);
    assert_string_equal(kept, made);
    free(made);
    free(kept);
    free(path);
}

/* If this fails, run: muster help --markdown > docs/cli.md */
static void docs_are_current(void **state)
{
    (void)state;
    is_current("docs/cli.md", help_markdown);
}

/* If this fails, run: elasticdl help --markdown > docs/elasticdl-flags.md */
static void flags_of_elasticdl_are_current(void **state)
{
    (void)state;
    cli_tool_choose("elasticdl");
    is_current("docs/elasticdl-flags.md", help_flags);
    cli_tool_choose("muster");
}

/* No flag of ElasticDL is both accepted and refused. */
static void no_flag_is_taken_and_refused(void **state)
{
    (void)state;
    const struct cli_command *train = cli_command_find("train");
    const struct elasticdl_refused *refused;
    for (size_t i = 0; (refused = elasticdl_refused_at(i)); i++) {
        const struct cli_item *o = cli_option_find(train, refused->name, strlen(refused->name), 0);
        assert_true(!o || strcmp(refused->name, "output") == 0); /* muster has its own -o */
        assert_ptr_equal(elasticdl_refused_find(train, refused->name), refused);
    }
}

static void every_verb_is_everywhere(void **state)
{
    (void)state;
    char *texts[] = {text_of(help_all), text_of(help_manual), text_of(help_completion),
                     text_of(help_markdown)};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        for (size_t i = 0; i < cli_command_count; i++) {
            assert_non_null(strstr(texts[t], cli_commands[i].name));
        }
        free(texts[t]);
    }
}

/* Two options of a verb never share a letter or a name, and -h always means --help. */
static void options_do_not_clash(void **state)
{
    (void)state;
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *c = &cli_commands[i];
        for (const struct cli_item *o = NULL; (o = cli_next(c, o, CLI_ITEM_OPTION));) {
            assert_ptr_equal(cli_option_find(c, o->name, strlen(o->name), 0), o);
            if (o->letter) {
                assert_ptr_equal(cli_option_find(c, NULL, 0, o->letter), o);
            }
            assert_int_not_equal(o->letter, 'h');
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(docs_are_current),
        cmocka_unit_test(flags_of_elasticdl_are_current),
        cmocka_unit_test(no_flag_is_taken_and_refused),
        cmocka_unit_test(every_verb_is_everywhere),
        cmocka_unit_test(options_do_not_clash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
