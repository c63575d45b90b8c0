/* Checks the option parser: forms of options, mistakes, values. */
#include "cli/command/args.h"
#include "cli/command/commands.h"

#include "base/testing/test.h"

static struct args args;
static struct muster_err err;

static int parse(const char *verb, char **words)
{
    int count = 0;
    while (words[count]) {
        count++;
    }
    err = (struct muster_err)MUSTER_ERR_INIT;
    return args_parse(cli_command_find(verb), count, words, &args, &err);
}

#define PARSE(verb, ...) parse(verb, (char *[]){__VA_ARGS__, NULL})

static void options_and_operands_mix(void **state)
{
    (void)state;
    assert_int_equal(PARSE("get", "pods", "-n", "team", "-wA", "--output=json", "a", "-lx=y"), 0);
    assert_string_equal(args_value(&args, "namespace"), "team");
    assert_true(args_flag(&args, "watch") && args_flag(&args, "all-namespaces"));
    assert_string_equal(args_value(&args, "output"), "json");
    assert_string_equal(args_value(&args, "selector"), "x=y");
    assert_int_equal(args.operand_count, 2);
    assert_string_equal(args.operands[1], "a");
    assert_null(args.operands[2]);
    args_done(&args);
}

static void defaults_hold_until_given(void **state)
{
    (void)state;
    assert_int_equal(PARSE("get", "pods"), 0);
    assert_string_equal(args_value(&args, "namespace"), "default");
    assert_null(args_value(&args, "output"));
    assert_false(args_flag(&args, "namespace"));
    args_done(&args);
    assert_int_equal(PARSE("delete", "pods", "--all", "-n", ""), 0);
    assert_string_equal(args_value(&args, "namespace"), "default");
    args_done(&args);
}

static void command_after_ranks_keeps_its_options(void **state)
{
    (void)state;
    assert_int_equal(PARSE("run", "-n", "4", "python3", "train.py", "--lr", "-f", "--"), 0);
    assert_int_equal(args.operand_count, 5);
    assert_string_equal(args.operands[3], "-f");
    assert_false(args_flag(&args, "filename"));
    args_done(&args);
    assert_int_equal(PARSE("run", "-n4", "--name=x", "--", "a", "--name=y"), 0);
    assert_string_equal(args_value(&args, "name"), "x");
    assert_true(args.separated);
    assert_string_equal(args.operands[1], "--name=y");
    args_done(&args);
}

static void the_ranks_have_torchruns_names(void **state)
{
    (void)state;
    static char *const names[] = {"--nproc-per-node=4", "--nproc_per_node=4", "--ranks=4", "-n4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(PARSE("run", names[i], "train", "--lr"), 0);
        assert_string_equal(args_value(&args, "ranks"), "4");
        assert_int_equal(args.operand_count, 2);
        args_done(&args);
    }
    assert_int_equal(PARSE("get", "pods", "--namespace", "4"), 0);
    assert_string_equal(args_value(&args, "namespace"), "4");
    args_done(&args);
}

static void repeated_options_come_in_order(void **state)
{
    (void)state;
    assert_int_equal(PARSE("create", "-f", "a", "-f", "b"), 0);
    size_t at = 0;
    assert_string_equal(args_each(&args, "filename", &at), "a");
    assert_string_equal(args_each(&args, "filename", &at), "b");
    assert_null(args_each(&args, "filename", &at));
    assert_string_equal(args_value(&args, "filename"), "b");
    args_done(&args);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *verb;
        char *words[3];
        const char *message;
    } cases[] = {
        {"get",
         {"--wach"},
         "get: unknown option --wach; did you mean --watch? (muster get --help)"},
        {"get", {"--zzzzzzzzz=1"}, "get: unknown option --zzzzzzzzz (muster get --help)"},
        {"train",
         {"-n", "2"},
         "train: unknown option -n; the number of workers is --num_workers N"},
        {"get", {"-wz"}, "get: unknown option -z (muster get --help)"},
        {"get", {"-n"}, "get: -n needs a value: NAMESPACE"},
        {"get", {"--namespace"}, "get: --namespace needs a value: NAMESPACE"},
        {"wait", {"--timeout"}, "wait: --timeout needs a value: DURATION"},
        {"get", {"--watch=yes"}, "get: --watch takes no value"},
        {"get",
         {"-n", "4"},
         "get: -n is the namespace here (the number of ranks in run and perf); if a namespace is "
         "called 4: --namespace 4"},
        {"get",
         {"--namespace=Team"},
         "get: --namespace must be made of a-z, 0-9 and '-', not 'Team'"},
        {"run",
         {"--nnodes=1"},
         "run: torchrun's --nnodes: all ranks run on this machine; leave it out"},
        {"run",
         {"train.py", "--lr"},
         "run: 'train.py' is a script: muster run -n N -- python3 train.py --lr … (on N ranks)"},
        {"run",
         {"my 'b'.py", "--lr"},
         "run: 'my 'b'.py' is a script: muster run -n N -- python3 'my '\\''b'\\''.py' --lr … (on N "
         "ranks)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i].verb, (char **)(uintptr_t)cases[i].words), MUSTER_EINVAL);
        assert_string_equal(err.text, cases[i].message);
    }
}

static void numbers_stay_in_their_range(void **state)
{
    (void)state;
    static char *const bad[] = {"0", "10", "x", "", "3x", "99999999999999999999", "-1"};
    int64_t number = -7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(PARSE("run", "--ranks", bad[i]), 0);
        assert_int_equal(args_number(&args, "ranks", 1, 9, &number, &err), MUSTER_EINVAL);
        assert_int_equal(number, -7);
        args_done(&args);
    }
    assert_int_equal(PARSE("run", "--ranks", "9"), 0);
    assert_int_equal(args_number(&args, "ranks", 1, 9, &number, &err), 0);
    assert_int_equal(number, 9);
    args_done(&args);
}

/* A message names -n if the user wrote -n, and not --ranks. */
static void a_message_names_an_option_as_it_was_written(void **state)
{
    (void)state;
    static const struct {
        char *word;
        const char *start;
    } cases[] = {
        {"-n0", "run: -n must be a number from 1 to 9, not '0'"},
        {"--ranks=0", "run: --ranks must be a number from 1 to 9, not '0'"},
        {"--nproc_per_node=0", "run: --nproc-per-node must be a number from 1 to 9, not '0'"},
    };
    int64_t number = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(PARSE("run", cases[i].word, "true"), 0);
        assert_int_equal(args_number(&args, "ranks", 1, 9, &number, &err), MUSTER_EINVAL);
        assert_string_equal(err.text, cases[i].start);
        args_done(&args);
    }
}

static void durations_have_units(void **state)
{
    (void)state;
    static const struct {
        char *text;
        int64_t ms; /* negative: the text is refused */
    } cases[] = {{"90", 90000},     {"1h30m", 5400000}, {"250ms", 250}, {"1.5s", 1500}, {"0", 0},
                 {"2d", 172800000}, {"x", -1},          {"5y", -1},     {"-3s", -1},    {"", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ms = -1;
        assert_int_equal(PARSE("run", "--timeout", cases[i].text), 0);
        int r = args_duration(&args, "timeout", &ms, &err);
        assert_int_equal(r, cases[i].ms < 0 ? MUSTER_EINVAL : 0);
        assert_int_equal(ms, cases[i].ms);
        args_done(&args);
    }
}

static void choices_are_those_of_the_help(void **state)
{
    (void)state;
    const char *format = NULL;
    assert_int_equal(PARSE("version", "-o", "yam"), 0);
    assert_int_equal(args_choice(&args, "output", &format, &err), MUSTER_EINVAL);
    assert_string_equal(err.text, "version: -o must be one of json|yaml, not 'yam'");
    args_done(&args);
    assert_int_equal(PARSE("version", "-o", "yaml"), 0);
    assert_int_equal(args_choice(&args, "output", &format, &err), 0);
    assert_string_equal(format, "yaml");
    args_done(&args);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_operands_mix),
        cmocka_unit_test(defaults_hold_until_given),
        cmocka_unit_test(command_after_ranks_keeps_its_options),
        cmocka_unit_test(the_ranks_have_torchruns_names),
        cmocka_unit_test(repeated_options_come_in_order),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(numbers_stay_in_their_range),
        cmocka_unit_test(a_message_names_an_option_as_it_was_written),
        cmocka_unit_test(durations_have_units),
        cmocka_unit_test(choices_are_those_of_the_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
