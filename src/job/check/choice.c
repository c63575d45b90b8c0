/* Fields whose value must be one of several words. See context.h. */
#include "job/check/context.h"
#include "job/paste.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HINT_BYTES_MAX = 512 };

static bool word_in(const char *word, const char *words)
{
    size_t length = strlen(word);
    for (const char *at = words; *at;) {
        size_t step = strcspn(at, " ");
        if (step == length && strncmp(at, word, step) == 0) {
            return true;
        }
        at += step + (at[step] == ' ');
    }
    return false;
}

/* Finds the word of the list that differs only in case, and writes a hint. */
static bool same_but_case(const char *word, const char *words, char *ret, size_t ret_bytes)
{
    size_t length = strlen(word);
    for (const char *at = words; *at;) {
        size_t step = strcspn(at, " ");
        if (step == length && strncasecmp(at, word, step) == 0) {
            snprintf(ret, ret_bytes, "did you mean %.*s?", (int)step, at);
            return true;
        }
        at += step + (at[step] == ' ');
    }
    return false;
}

void check_choice(struct check *c, const char *word, const char *words)
{
    char hint[HINT_BYTES_MAX], list[HINT_BYTES_MAX];
    size_t used = 0;
    if (word_in(word, words)) {
        return;
    }
    for (const char *at = words; *at && used + 2 < sizeof list; at++) {
        list[used++] = *at == ' ' ? ',' : *at;
        if (*at == ' ') {
            list[used++] = ' ';
        }
    }
    list[used] = '\0';
    bool near = same_but_case(word, words, hint, sizeof hint);
    const char *template = paste_template_hint(word);
    check_say(c, JOB_ERROR, NULL,
              template ? template
              : near   ? hint
                       : NULL,
              "must be one of %s; not \"%.60s\"", list, word);
    check_reason(c, "FieldValueNotSupported");
}
