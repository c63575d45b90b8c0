/* See elasticdl.h. */
#include "cli/command/elasticdl.h"

#include <string.h>
#include <strings.h>

static const struct elasticdl_refused refused[] = {
#define FLAG(name, argument, fallback, help)
#define REFUSED(name, fallback, why) {name, fallback, why},
#include "cli/command/elasticdl.def"
#undef FLAG
#undef REFUSED
};

static bool is_elasticdls(const struct cli_command *command)
{
    return cli_option_find(command, "job_command", strlen("job_command"), 0) != NULL;
}

const struct elasticdl_refused *elasticdl_refused_at(size_t index)
{
    return index < sizeof refused / sizeof refused[0] ? &refused[index] : NULL;
}

const struct elasticdl_refused *elasticdl_refused_find(const struct cli_command *command,
                                                       const char *name)
{
    for (size_t i = 0; is_elasticdls(command) && i < sizeof refused / sizeof refused[0]; i++) {
        if (cli_same_name(refused[i].name, name, strlen(name))) {
            return &refused[i];
        }
    }
    return NULL;
}

int elasticdl_boolean(const char *word)
{
    static const char *const words[][2] = {
        {"false", "true"}, {"no", "yes"}, {"f", "t"}, {"n", "y"}, {"0", "1"}};
    for (size_t i = 0; i < 2 * sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(word, words[i / 2][i % 2]) == 0) {
            return (int)(i % 2);
        }
    }
    return -1;
}

static bool is_boolean(const struct elasticdl_refused *flag)
{
    return strcmp(flag->fallback, "true") == 0 || strcmp(flag->fallback, "false") == 0;
}

bool elasticdl_takes(const struct elasticdl_refused *flag, const char *next)
{
    return is_boolean(flag) ? elasticdl_boolean(next) >= 0 : strncmp(next, "--", 2) != 0;
}

bool elasticdl_is_fallback(const struct elasticdl_refused *flag, const char *value)
{
    return is_boolean(flag) ? elasticdl_boolean(value) == elasticdl_boolean(flag->fallback)
                            : strcmp(value, flag->fallback) == 0;
}

bool elasticdl_is_optional(const struct cli_item *option)
{
    return option->argument && option->argument[0] == '[';
}
