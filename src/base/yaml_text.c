/* See yaml_text.h. */
#include "base/yaml_text.h"

#include <string.h>

/* Length of the UTF-8 sequence at `at`; 0 when it is none (RFC 3629: no surrogates, no overlong
 * forms, nothing past U+10FFFF). */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max;
        size_t length;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    if (*at < 0x80) {
        return 1;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (*at < forms[i].first_min || *at > forms[i].first_max) {
            continue;
        }
        bool fits =
            left >= forms[i].length && at[1] >= forms[i].second_min && at[1] <= forms[i].second_max;
        for (size_t j = 2; fits && j < forms[i].length; j++) {
            fits = (at[j] & 0xc0) == 0x80;
        }
        return fits ? forms[i].length : 0;
    }
    return 0;
}

const char *yaml_text_fault(const char *text, size_t bytes, struct yaml_place *ret_place,
                            const char **ret_hint)
{
    const unsigned char *at = (const unsigned char *)text;
    *ret_place = (struct yaml_place){1, 1};
    *ret_hint = "save the file as UTF-8";
    if (bytes >= 2 && (memcmp(at, "\xff\xfe", 2) == 0 || memcmp(at, "\xfe\xff", 2) == 0)) {
        return "the file is UTF-16";
    }
    for (size_t i = 0, length; i < bytes; i += length) {
        length = utf8_length(at + i, bytes - i);
        if (length == 0) {
            return "the bytes here are no UTF-8";
        }
        if (at[i] == '\n') {
            *ret_place = (struct yaml_place){ret_place->line + 1, 0};
        } else if ((at[i] < 0x20 && at[i] != '\t' && at[i] != '\r') || at[i] == 0x7f) {
            *ret_hint = at[i] == 0 ? "is this a text file?" : "remove it, or write it as \"\\xNN\"";
            return at[i] == 0 ? "a NUL byte" : "a control character";
        }
        ret_place->column++;
    }
    return NULL;
}

size_t yaml_text_open_max(const char *text, size_t bytes)
{
    size_t open = 0, most = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '[' || text[i] == '{') {
            open++;
            most = open > most ? open : most;
        } else if ((text[i] == ']' || text[i] == '}') && open > 0) {
            open--;
        }
    }
    return most;
}

/* The bytes of line `number` (from 1) and their count. */
static const char *find_line(const char *text, size_t bytes, int number, size_t *ret_length)
{
    const char *end = text + bytes;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        if (--number == 0) {
            *ret_length = (size_t)(stop - line);
            return line;
        }
        line = stop + 1;
    }
    *ret_length = 0;
    return end;
}

static bool tab_in_indentation(const char *text, size_t bytes, int number)
{
    size_t length;
    const char *line = find_line(text, bytes, number, &length);
    size_t blank = 0;
    while (blank < length && line[blank] == ' ') {
        blank++;
    }
    return blank < length && line[blank] == '\t';
}

static bool is_end(const char *text, size_t bytes, int number)
{
    size_t length;
    return find_line(text, bytes, number, &length) == text + bytes;
}

/* libfyaml's wording, as a substring, and ours. */
static const struct {
    const char *theirs;
    const char *ours;
    const char *hint;
} sentences[] = {
    {"at the end of block sequence",
     "this line is neither part of the list item above it nor a new item",
     "align it with the item's first key, or start it with '- '"},
    {"invalid multiline plain key", "the text here runs into the next line, which holds a key",
     "indent the next line like this one"},
    {"invalid indentation in mapping",
     "this line is indented less than the block above it and more than the block around that",
     "align it with the keys of its own block"},
    {"did not find expected key", "this line is no 'key: value' like those it is aligned with",
     "indent it further, or remove the '- '"},
    {"could not find expected ':'", "there is no ': ' after this key", NULL},
    {"invalid value after mapping", "this does not belong to the mapping above it",
     "a key needs ': ' after it"},
    {"invalid nested block mapping", "there is a second ': ' on this line",
     "put the text in quotes"},
    {"block sequence on the same line", "a list may not start on the line of its key",
     "put it on the next line, or in [ ]"},
    {"missing comma", "a comma is missing before this", NULL},
    {"without a closing bracket", "a [ or { above is never closed", NULL},
    {"without closing quote", "this quote is never closed", NULL},
    {"mismatched flow", "this closes something that was opened by another kind of bracket", NULL},
    {"invalid extra closing", "this closes a bracket that was never opened", NULL},
    {"did not find expected node content", "a value is missing here", NULL},
    {"plain scalar cannot start with", "text may not start with this character",
     "put the text in quotes"},
    {"invalid trailing content", "there is something behind the closing quote", NULL},
    {"escape", "a backslash in this text starts no escape that YAML knows",
     "use single quotes, or write \\\\"},
};

const char *yaml_syntax_sentence(const char *text, size_t bytes, struct yaml_place place,
                                 const char *library_says, const char **ret_hint)
{
    *ret_hint = NULL;
    if (tab_in_indentation(text, bytes, place.line) ||
        tab_in_indentation(text, bytes, place.line + 1)) {
        *ret_hint = "use spaces";
        return "a tab indents this line or the next; YAML allows only spaces";
    }
    /* What libfyaml misses at the end of a text is not what the writer forgot. */
    if (strstr(library_says, "missing comma") && is_end(text, bytes, place.line)) {
        library_says = "without a closing bracket";
    }
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        if (strstr(library_says, sentences[i].theirs)) {
            *ret_hint = sentences[i].hint;
            return sentences[i].ours;
        }
    }
    return library_says;
}
