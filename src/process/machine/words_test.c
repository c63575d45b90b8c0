/* Words that the kernel would refuse are reported with the place where they are. */
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "process/machine/words.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char *repeat(size_t bytes)
{
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    return text;
}

static size_t word_bytes_max(void)
{
    return (size_t)sysconf(_SC_PAGESIZE) * 32 - 1;
}

/* Runs `true` with this word and returns its exit code; 126: the word was too long. */
static int execute(char *word)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *const argv[] = {"true", word, NULL};
        char *const env[] = {NULL};
        (void)execve("/bin/true", argv, env);
        _exit(errno == E2BIG ? 126 : 125);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static json_t *container_of(const char *word)
{
    return json_pack("{s:[s, s], s:[{s:s, s:s}]}", "command", "true", word, "env", "name", "N",
                     "value", "v");
}

/* The longest word that is accepted is the longest that this kernel executes. */
static void the_longest_word_is_the_kernels(void **state)
{
    (void)state;
    struct words_fault fault;
    for (size_t more = 0; more <= 1; more++) {
        char *word = repeat(word_bytes_max() + more);
        json_t *container = container_of(word);
        assert_int_equal(words_fault(container, "c", 0, &fault), more == 1);
        assert_int_equal(execute(word), more == 1 ? 126 : 0);
        json_decref(container);
        free(word);
    }
    assert_string_equal(fault.path, "c.command[1]");
    assert_non_null(strstr(fault.text, "128 KiB are too long"));
}

static void a_variable_counts_with_its_name(void **state)
{
    (void)state;
    struct words_fault fault;
    char *value = repeat(word_bytes_max() - 2);
    json_t *container = container_of("word");
    json_t *variable = json_array_get(json_object_get(container, "env"), 0);
    json_object_set_new(variable, "value", json_string(value));
    assert_false(words_fault(container, "c", 0, &fault));
    json_object_set_new(variable, "name", json_string("NN"));
    assert_true(words_fault(container, "c", 0, &fault));
    assert_string_equal(fault.path, "c.env[0]");
    json_decref(container);
    free(value);
}

static void many_words_count_together(void **state)
{
    (void)state;
    struct words_fault fault;
    json_t *container = json_pack("{s:[s], s:[]}", "command", "echo", "args");
    for (int i = 0; i < 100000; i++) {
        json_array_append_new(json_object_get(container, "args"), json_string("1"));
    }
    assert_false(words_fault(container, "c", 2 << 20, &fault));
    assert_true(words_fault(container, "c", 512 << 10, &fault));
    assert_string_equal(fault.path, "c");
    assert_string_equal(fault.text, "command and args are too long (976 KiB): the kernel takes 512 "
                                    "KiB in all (ulimit -s is four times that)");
    json_decref(container);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_word_is_the_kernels),
        cmocka_unit_test(a_variable_counts_with_its_name),
        cmocka_unit_test(many_words_count_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
