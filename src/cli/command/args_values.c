/* Reads the value of an option from a parsed line: its last value, all of its values, or a value
 * as a number, a duration or a choice. See args.h. */
#include "cli/command/args.h"

#include "base/err.h"
#include "base/time/duration.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_item *find(const struct args *args, const char *name)
{
    return cli_option_find(args->command, name, strlen(name), 0);
}

static const struct cli_item *known(const struct args *args, const char *name)
{
    const struct cli_item *option = find(args, name);
    assert(option);
    return option;
}

bool args_has(const struct args *args, const char *option)
{
    return find(args, option) != NULL;
}

bool args_has_flag(const struct args *args, const char *option)
{
    return args_has(args, option) && args_flag(args, option);
}

const char *args_each(const struct args *args, const char *option, size_t *at)
{
    const struct cli_item *wanted = known(args, option);
    while (*at < args->given_count) {
        const struct args_given *g = &args->given[(*at)++];
        if (g->option == wanted) {
            return g->value;
        }
    }
    return NULL;
}

const char *args_value(const struct args *args, const char *option)
{
    const char *last = known(args, option)->fallback;
    size_t at = 0;
    for (const char *value; (value = args_each(args, option, &at));) {
        last = value;
    }
    return last;
}

const char *args_text(const struct args *args, const char *option)
{
    const char *value = args_value(args, option);
    return value && *value ? value : NULL;
}

bool args_flag(const struct args *args, const char *option)
{
    size_t at = 0;
    return args_each(args, option, &at) != NULL;
}

const char *args_spelling(const struct args *args, const char *option,
                          char ret[ARGS_SPELLING_BYTES])
{
    const struct cli_item *wanted = known(args, option);
    snprintf(ret, ARGS_SPELLING_BYTES, "--%s", option);
    for (size_t i = 0; i < args->given_count; i++) {
        const struct args_given *g = &args->given[i];
        if (g->option == wanted && g->by_letter) {
            snprintf(ret, ARGS_SPELLING_BYTES, "-%c", g->written->letter);
        } else if (g->option == wanted) {
            snprintf(ret, ARGS_SPELLING_BYTES, "--%s", g->written->name);
        }
    }
    return ret;
}

int args_number(const struct args *args, const char *option, int64_t least, int64_t most,
                int64_t *ret, struct muster_err *err)
{
    char spelling[ARGS_SPELLING_BYTES];
    const char *text = args_value(args, option);
    if (!text) {
        return 0;
    }
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno || number < least || number > most) {
        return muster_fail(err, MUSTER_EINVAL,
                           "%s: %s must be a number from %lld to %lld, not '%s'",
                           args->command->name, args_spelling(args, option, spelling),
                           (long long)least, (long long)most, text);
    }
    *ret = number;
    return 0;
}

int args_duration(const struct args *args, const char *option, int64_t *ret_ms,
                  struct muster_err *err)
{
    char spelling[ARGS_SPELLING_BYTES];
    const char *text = args_value(args, option);
    if (!text) {
        return 0;
    }
    return duration_read(text, ret_ms) == 0
               ? 0
               : muster_fail(err, MUSTER_EINVAL,
                             "%s: %s must be a duration such as 30s, 10m or 1h30m, not '%s'",
                             args->command->name, args_spelling(args, option, spelling), text);
}

int args_choice(const struct args *args, const char *option, const char **ret,
                struct muster_err *err)
{
    char spelling[ARGS_SPELLING_BYTES];
    const char *text = args_value(args, option);
    if (!text) {
        return 0;
    }
    const char *words = known(args, option)->argument;
    for (const char *at = words; *at; at += strspn(at, "|")) {
        size_t length = strcspn(at, "|");
        if (strlen(text) == length && strncmp(at, text, length) == 0) {
            *ret = text;
            return 0;
        }
        at += length;
    }
    return muster_fail(err, MUSTER_EINVAL, "%s: %s must be one of %s, not '%s'",
                       args->command->name, args_spelling(args, option, spelling), words, text);
}
