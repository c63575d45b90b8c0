/* See checkpoint.h. */
#include "cli/result/checkpoint.h"

#include "base/text.h"

#include <ctype.h>
#include <string.h>

bool checkpoint_is_name(const char *path)
{
    static const char *const endings[] = {".pt", ".pth", ".ckpt", ".safetensors", ".bin"};
    static const char folder[] = "checkpoint-";
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (text_ends_with(name, endings[i])) {
            return true;
        }
    }
    size_t prefix = sizeof folder - 1;
    size_t digits = strncmp(name, folder, prefix) == 0 ? strspn(name + prefix, "0123456789") : 0;
    return digits > 0 && name[prefix + digits] == '\0';
}

static bool is_break(char c)
{
    return isspace((unsigned char)c) || c == '\0' || strchr("\"'`,;()[]{}<>|", c) != NULL;
}

/* Skips a colour: ESC [ … letter. */
static const char *skip_escape(const char *at, const char *end)
{
    at++;
    if (at < end && *at == '[') {
        at++;
        while (at < end && !isalpha((unsigned char)*at)) {
            at++;
        }
        at += at < end;
    }
    return at;
}

/* Cuts off what a sentence puts behind a path, and the slash behind a folder. */
static size_t trim(const char *from, size_t length)
{
    while (length > 0 && strchr(".:!?/*", from[length - 1])) {
        length--;
    }
    return length;
}

static bool take(const char *from, size_t length, char ret[CHECKPOINT_PATH_BYTES])
{
    length = trim(from, length);
    if (length == 0 || length >= CHECKPOINT_PATH_BYTES) {
        return false;
    }
    memcpy(ret, from, length);
    ret[length] = '\0';
    return checkpoint_is_name(ret);
}

/* Takes 'my runs/a.pt': from a quote to the same quote in its line. If this is not a checkpoint,
 * the words in it are looked at next. */
static bool take_quoted(const char *quote, const char *end, char ret[CHECKPOINT_PATH_BYTES])
{
    const char *at = quote + 1;
    bool spaces = false;
    while (at < end && *at != *quote && *at != '\n' && *at != '\033') {
        spaces = spaces || *at == ' ';
        at++;
    }
    return spaces && at < end && *at == *quote && take(quote + 1, (size_t)(at - quote - 1), ret);
}

bool checkpoint_next(const char **at, const char *end, char ret[CHECKPOINT_PATH_BYTES])
{
    while (*at < end) {
        if (**at == '\033') {
            *at = skip_escape(*at, end);
            continue;
        }
        if (is_break(**at)) {
            const char *quote = (*at)++;
            if ((*quote == '\'' || *quote == '"') && take_quoted(quote, end, ret)) {
                return true;
            }
            continue;
        }
        const char *from = *at;
        const char *to = from;
        while (to < end && !is_break(*to) && *to != '\033') {
            to++;
        }
        const char *equals = memchr(from, '=', (size_t)(to - from));
        *at = equals ? equals + 1 : to;
        if (take(from, (size_t)(to - from), ret)) {
            return true;
        }
    }
    return false;
}
