/* See shell_words.h. One pass; `word` collects the current word, `open` says whether there is one.
 */
#include "base/shell_words.h"

#include "base/err.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES_MAX = 1 << 20, SHELL_WORDS_MAX = 4096 };

struct splitter {
    struct buf word;
    bool open;
    char **words;
    size_t count;
    struct muster_err *err;
};

static int push(struct splitter *s)
{
    if (!s->open) {
        return 0;
    }
    if (s->count == SHELL_WORDS_MAX) {
        return muster_fail(s->err, MUSTER_ETOOBIG, "more than %d arguments", SHELL_WORDS_MAX);
    }
    char **words = realloc(s->words, (s->count + 2) * sizeof *words);
    if (!words) {
        return err_no_memory(s->err);
    }
    s->words = words;
    words[s->count] = buf_steal(&s->word);
    words[s->count + 1] = NULL;
    if (!words[s->count]) {
        return muster_fail(s->err, MUSTER_ETOOBIG, "an argument is too long");
    }
    s->count++;
    s->open = false;
    return 0;
}

/* Reads from the opening quote at *at to the closing one. */
static int read_quoted(struct splitter *s, const char **at)
{
    char quote = **at;
    s->open = true;
    for (const char *p = *at + 1; *p; p++) {
        if (*p == quote) {
            *at = p;
            return 0;
        }
        if (quote == '"' && *p == '\\' && p[1] && strchr("\"\\$`", p[1])) {
            p++;
        }
        buf_add(&s->word, p, 1);
    }
    return muster_fail(s->err, MUSTER_EDATA, "a %c quote is never closed", quote);
}

static int split(struct splitter *s, const char *text)
{
    for (const char *p = text; *p; p++) {
        int r = 0;
        if (strchr(" \t\r\n", *p)) {
            r = push(s);
        } else if (*p == '\'' || *p == '"') {
            r = read_quoted(s, &p);
        } else {
            if (*p == '\\' && p[1]) {
                p++;
            }
            s->open = true;
            buf_add(&s->word, p, 1);
        }
        if (r < 0) {
            return r;
        }
    }
    return push(s);
}

int shell_split(const char *text, char ***ret, struct muster_err *err)
{
    struct splitter s = {.err = err, .words = calloc(1, sizeof(char *))};
    buf_init(&s.word, WORD_BYTES_MAX);
    int r = s.words ? split(&s, text) : err_no_memory(err);
    buf_done(&s.word);
    if (r < 0) {
        shell_free(s.words);
        return r;
    }
    *ret = s.words;
    return 0;
}

char **shell_free(char **words)
{
    for (char **w = words; w && *w; w++) {
        free(*w);
    }
    free(words);
    return NULL;
}

void shell_quote(const char *word, struct buf *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@%=,";
    if (*word && word[strspn(word, plain)] == '\0') {
        buf_text(out, word);
        return;
    }
    buf_text(out, "'");
    for (; *word; word++) {
        if (*word == '\'') {
            buf_text(out, "'\\''");
        } else {
            buf_add(out, word, 1);
        }
    }
    buf_text(out, "'");
}
