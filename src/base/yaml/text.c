/* See text.h. */
#include "base/yaml/text.h"

#include "base/text.h"
#include "base/yaml/scan.h"

#include <string.h>

/* Whether the text looks like UTF-16: a file begins with ASCII characters, so every other byte is
 * NUL. In UTF-32, more bytes are NUL. */
static bool looks_like_utf_16(const char *text, size_t bytes)
{
    if (bytes < 4) {
        return false;
    }
    bool first = text[0] == 0, second = text[1] == 0;
    return first != second && (text[2] == 0) == first && (text[3] == 0) == second;
}

const char *yaml_text_fault(const char *text, size_t bytes, struct yaml_place *ret_place,
                            const char **ret_hint)
{
    const unsigned char *at = (const unsigned char *)text;
    *ret_place = (struct yaml_place){1, 1};
    *ret_hint = "save the file as UTF-8";
    if (bytes >= 2 && (memcmp(at, "\xff\xfe", 2) == 0 || memcmp(at, "\xfe\xff", 2) == 0)) {
        return "the text is UTF-16";
    }
    if (looks_like_utf_16(text, bytes)) {
        return "the text looks like UTF-16";
    }
    for (size_t i = 0, length; i < bytes; i += length) {
        length = text_utf8_length(at + i, bytes - i);
        if (length == 0) {
            return "invalid UTF-8";
        }
        if (at[i] == '\n') {
            *ret_place = (struct yaml_place){ret_place->line + 1, 0};
        } else if ((at[i] < 0x20 && at[i] != '\t' && at[i] != '\r') || at[i] == 0x7f) {
            *ret_hint = memchr(text, 0, bytes) ? "is this a binary file?"
                                               : "remove it, or write it as \"\\xNN\"";
            return at[i] == 0 ? "the text holds a NUL byte" : "the text holds a control character";
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

/* Returns the bytes of line `number` (from 1) and their count. */
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

/* Returns the end of the blanks that begin at `at`. */
static size_t skip_blanks(const char *line, size_t length, size_t at)
{
    while (at < length && line[at] == ' ') {
        at++;
    }
    return at;
}

static bool tab_in_indentation(const char *text, size_t bytes, int number)
{
    size_t length;
    const char *line = find_line(text, bytes, number, &length);
    size_t blank = skip_blanks(line, length, 0);
    return blank < length && line[blank] == '\t';
}

static bool is_end(const char *text, size_t bytes, int number)
{
    size_t length;
    return find_line(text, bytes, number, &length) == text + bytes;
}

/* A part of libfyaml's message, and our message for it. */
static const struct sentence {
    const char *theirs;
    const char *ours;
    const char *hint;
} sentences[] = {
    {"at the end of block sequence",
     "this line is neither part of the list item above it nor a new item",
     "align it with the item's first key, or start it with '- '"},
    {"did not find expected '-' indicator", "this line is not an item of the list above it",
     "start it with '- ', or align it with the key of the list"},
    {"wrong indendation in sequence", "this list item is indented less than the block above it",
     "align it with the items of its own list"},
    {"block scalar no linebreak", "there is text in the line of a | or >",
     "put the text in the next line, or in quotes"},
    {"indented block scalar", "a text that begins with | or > is indented less than its key",
     "indent its lines further"},
    {"block scalar with wrongly indented",
     "a text that begins with | or > is indented less than its key", "indent its lines further"},
    {"wrongly indented", "this line is indented less than the block it belongs to",
     "align it with the keys of its own block"},
    {"invalid indentation in mapping",
     "this line is indented less than the block above it and more than the block around that",
     "align it with the keys of its own block"},
    {"indent for", "this line is indented less than the block it belongs to",
     "align it with the keys of its own block"},
    {"as indend", "a tab indents this line; YAML allows only spaces", "use spaces"},
    {"tab", "a tab indents this line; YAML allows only spaces", "use spaces"},
    {"did not find expected key", "this line is not 'key: value', as its neighbours are",
     "indent it further, or remove the '- '"},
    {"could not find expected ':'", "': ' is missing after this key", NULL},
    {"missing ':'", "': ' is missing after this key", NULL},
    {"invalid value after mapping", "': ' is missing after this key", NULL},
    {"invalid mapping in plain multiline", "': ' is missing in the line above this one", NULL},
    {"invalid nested block mapping", "there is a second ': ' in this line",
     "put the value in quotes"},
    {"same line as previous key", "there are two keys in this line", "put each in its own line"},
    {"block sequence on the same line", "a list may not start in the line of its key",
     "put it in the next line, or in [ ]"},
    {"block sequence entries not allowed", "a list item may not stand here",
     "put it in a line of its own, aligned with the items above"},
    {"illegal block entry", "a list item may not stand here",
     "put it in a line of its own, aligned with the items above"},
    {"missing comma", "a comma is missing before this", NULL},
    {"without a closing bracket", "a [ or { is never closed", NULL},
    {"without closing quote", "this quote is never closed", "add the closing quote"},
    {"mismatched flow", "this bracket does not match the one that was opened", NULL},
    {"invalid extra closing", "this closes a bracket that was never opened", "remove it"},
    {"did not find expected node content", "a value is missing here", NULL},
    {"flow sequence with invalid", "a value is missing before this comma", "remove one comma"},
    {"plain scalar cannot start with", "text may not begin with this character",
     "put the text in quotes"},
    {"illegal unicode", "this character is not allowed outside quotes", "remove it"},
    {"invalid trailing content", "there is text after the closing quote",
     "put all of it in one pair of quotes"},
    {"used as key", "a key may not span several lines", NULL},
    {"multiline flow", "a key may not span several lines", NULL},
    {"comment", "a comment needs a blank before its #", NULL},
    {"document", "a document marker (--- or ...) may not stand here", NULL},
    {"directive", "a line that starts with % is a YAML directive; this one is not valid",
     "put the text in quotes"},
    {"tag", "this tag (!…) is not valid", "remove it, or put the text in quotes"},
    {"alias", "an alias (*…) may not stand here", "put the text in quotes"},
    {"anchor", "an anchor (&…) may not stand here", "put the text in quotes"},
    {"invalid mapping key", "a key may not stand here", NULL},
    {"Illegal placement of ':'", "a ':' may not stand here", "put the text in quotes"},
    {"illegal value mark", "a ':' may not stand here", "put the text in quotes"},
    {"escape", "YAML has no such escape after a backslash", "use single quotes, or write \\\\"},
};

static const struct sentence fallback = {"", "this is not valid YAML", "put text in quotes"};

/* For a line that continues in the line below, which has a key: returns why this line is not a
 * key. */
static const struct sentence *explain_plain_key(const char *line, size_t length)
{
    static const struct sentence no_colon = {"", "': ' is missing in this line",
                                             "write it as 'key: value'"};
    static const struct sentence no_blank = {"", "a blank is missing after the ':' in this line",
                                             "write it as 'key: value'"};
    static const struct sentence no_dash = {"", "a blank is missing after the '-' in this line",
                                            "write it as '- key: value'"};
    static const struct sentence runs_on = {"",
                                            "this value goes on in the next line, which has a key",
                                            "indent the next line like this one"};
    size_t i = skip_blanks(line, length, 0);
    while (i + 1 < length && line[i] == '-' && line[i + 1] == ' ') {
        i = skip_blanks(line, length, i + 1);
    }
    if (i + 1 < length && line[i] == '-') {
        return &no_dash;
    }
    const char *colon = memchr(line, ':', length);
    if (!colon) {
        return &no_colon;
    }
    return colon + 1 < line + length && colon[1] != ' ' && colon[1] != '/' ? &no_blank : &runs_on;
}

/* Explains a missing ': '. Perhaps there is a colon, but without a blank, or after quoted text. */
static const struct sentence *explain_missing(const char *line, size_t length,
                                              struct yaml_place place,
                                              const struct sentence *otherwise)
{
    static const struct sentence behind = {"", "there is text after the closing quote",
                                           "put all of it in one pair of quotes"};
    size_t before = place.column > 1 ? (size_t)place.column - 2 : length;
    const struct sentence *plain = explain_plain_key(line, length);
    if (before < length && (line[before] == '"' || line[before] == '\'')) {
        return &behind;
    }
    return strstr(plain->ours, "a blank is missing") ? plain : otherwise;
}

static const struct sentence *find_sentence(const char *text, size_t bytes, struct yaml_place place,
                                            const char *library_says)
{
    size_t length;
    const char *line = find_line(text, bytes, place.line, &length);
    if (strstr(library_says, "invalid multiline plain key") && length > 0) {
        return explain_plain_key(line, length);
    }
    const struct sentence *found = &fallback;
    for (size_t i = 0; found == &fallback && i < sizeof sentences / sizeof sentences[0]; i++) {
        found = strstr(library_says, sentences[i].theirs) ? &sentences[i] : found;
    }
    return strstr(found->ours, "': ' is missing after")
               ? explain_missing(line, length, place, found)
               : found;
}

/* Finds the bracket or quote that was left open above `place`: libfyaml notices it lines later or
 * not at all. Returns NULL if there is none. */
static const struct sentence *find_unclosed(const char *text, size_t bytes,
                                            struct yaml_place *place)
{
    static const struct sentence open[] = {
        {"[", "this [ is never closed", "add the closing ]"},
        {"{", "this { is never closed", "add the closing }"},
        {"\"", "this quote is never closed", "add the closing quote"},
        {"'", "this quote is never closed", "add the closing quote"},
    };
    struct yaml_scan scan;
    struct yaml_scan_char c;
    yaml_scan_init(&scan, text, bytes);
    while (!scan.unclosed.what && yaml_scan_next(&scan, &c)) {
    }
    if (!scan.unclosed.what || scan.unclosed.place.line > place->line) {
        return NULL;
    }
    *place = scan.unclosed.place;
    const struct sentence *found = NULL;
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        found = open[i].theirs[0] == scan.unclosed.what ? &open[i] : found;
    }
    return found;
}

const char *yaml_syntax_sentence(const char *text, size_t bytes, struct yaml_place *place,
                                 const char *library_says, const char **ret_hint)
{
    for (int number = place->line; number <= place->line + 1; number++) {
        if (tab_in_indentation(text, bytes, number)) {
            *place = (struct yaml_place){number, 1};
            *ret_hint = "use spaces";
            return "a tab indents this line; YAML allows only spaces";
        }
    }
    const struct sentence *found = find_unclosed(text, bytes, place);
    if (!found) {
        /* At the end of a text, what libfyaml reports as missing is not what the writer forgot. */
        bool at_end = strstr(library_says, "missing comma") && is_end(text, bytes, place->line);
        found =
            find_sentence(text, bytes, *place, at_end ? "without a closing bracket" : library_says);
    }
    *ret_hint = found->hint;
    return found->ours;
}
