/* See paste.h. */
#include "job/paste.h"

#include "base/text.h"
#include "base/yaml/scan.h"

#include <stdio.h>
#include <string.h>

#define RENDER_HELM "this is a template: render it first, for example with helm template"
#define RENDER_SHELL "this is a template: fill it in first, for example with envsubst"

enum { EXCERPT_BYTES = 40, MESSAGE_BYTES = 160 };

struct pass {
    struct job_problems *problems;
    const char *end;
    int line; /* line of the last problem: one problem per line is enough */
    enum paste_verdict verdict;
};

static void say(struct pass *p, struct yaml_place place, const char *hint, const char *message)
{
    if (place.line != p->line) {
        job_problem_place(p->problems, JOB_ERROR, place, NULL, hint, "%s", message);
    }
    p->line = place.line;
    p->verdict = p->verdict < PASTE_MARKS ? PASTE_MARKS : p->verdict;
}

static bool starts(const char *at, const char *end, const char *with)
{
    size_t length = strlen(with);
    return (size_t)(end - at) >= length && memcmp(at, with, length) == 0;
}

/* --- texts that are not YAML at all --- */

static const struct foreign {
    const char *start; /* start of a line */
    bool first_only;   /* only in the text's first line */
    const char *what;
    const char *hint;
} foreigners[] = {
    {"<!DOCTYPE", true, "this is a web page, not YAML", "download the raw file"},
    {"<!doctype", true, "this is a web page, not YAML", "download the raw file"},
    {"<html", true, "this is a web page, not YAML", "download the raw file"},
    {"<?xml", true, "this is XML, not YAML", NULL},
    {"diff --git ", true, "this is a patch, not YAML", "apply it with git apply"},
    {"--- a/", true, "this is a patch, not YAML", "apply it with git apply"},
    {"+apiVersion", true, "this is a patch, not YAML", "remove the + before each line"},
    {"@@ -", false, "this is a patch, not YAML", "apply it with git apply"},
    {"<<<<<<< ", false, "a merge conflict starts here", "resolve it, and remove the markers"},
    {"```", false, "this is Markdown", "keep only the lines between the ```"},
    {"$ ", true, "this line is a shell command, not YAML", "remove it"},
    {"cat <<", true, "this line is a shell command, not YAML",
     "remove it, and the line that ends the text"},
    {"kubectl ", true, "this line is a shell command, not YAML", "remove it"},
};

static bool check_line(struct pass *p, const char *at, struct yaml_place place, bool first)
{
    for (size_t i = 0; i < sizeof foreigners / sizeof foreigners[0]; i++) {
        const struct foreign *f = &foreigners[i];
        if ((first || !f->first_only) && starts(at, p->end, f->start)) {
            say(p, place, f->hint, f->what);
            p->verdict = PASTE_FOREIGN;
            return true;
        }
    }
    return false;
}

/* Checks lines, not values: a block scalar may contain any of these, but then it is indented. */
static bool check_foreign(struct pass *p, const char *text)
{
    bool first = true;
    int number = 0;
    for (const char *line = text; line < p->end;) {
        const char *stop = memchr(line, '\n', (size_t)(p->end - line));
        const char *at = line;
        number++;
        while (first && at < p->end && *at == ' ') {
            at++;
        }
        if (check_line(p, at, (struct yaml_place){number, (int)(at - line) + 1}, first)) {
            return true;
        }
        first = first && (at == stop || (at < p->end && *at == '\r'));
        line = stop ? stop + 1 : p->end;
    }
    return false;
}

/* --- single characters --- */

static const struct mark {
    const char *bytes;
    bool quote; /* wrong only where a value begins */
    const char *what;
    const char *hint;
} marks[] = {
    {"\u201c", true, "this is a curly quote, which is text to YAML", "write a straight \""},
    {"\u201d", true, "this is a curly quote, which is text to YAML", "write a straight \""},
    {"\u201e", true, "this is a curly quote, which is text to YAML", "write a straight \""},
    {"\u00ab", true, "this is a curly quote, which is text to YAML", "write a straight \""},
    {"\u2018", true, "this is a curly quote, which is text to YAML", "write a straight '"},
    {"\u2019", true, "this is a curly quote, which is text to YAML", "write a straight '"},
    {"\u00a0", false, "this is a non-breaking space, which is text to YAML", "write a blank"},
    {"\u202f", false, "this is a non-breaking space, which is text to YAML", "write a blank"},
    {"\u2007", false, "this is a non-breaking space, which is text to YAML", "write a blank"},
    {"\u3000", false, "this is a wide space, which is text to YAML", "write a blank"},
    {"\u200b", false, "this is a zero-width space, which is text to YAML", "remove it"},
    {"\ufeff", false, "this is a byte order mark inside the text", "remove it"},
    {"\u2013", true, "this is an en dash, which is text to YAML", "write -"},
    {"\u2014", true, "this is an em dash, which is text to YAML", "write -"},
};

static bool check_mark(struct pass *p, const struct yaml_scan_char *c)
{
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if ((c->start || !marks[i].quote) && starts(c->at, p->end, marks[i].bytes)) {
            say(p, c->place, marks[i].hint, marks[i].what);
            return true;
        }
    }
    return false;
}

/* --- templates --- */

/* Copies "{{ .Values.x }}" with its content, cut short. */
static void excerpt(const char *at, const char *end, const char *close, char ret[EXCERPT_BYTES + 4])
{
    size_t length = 0;
    while (at + length < end && at[length] != '\n' && length < EXCERPT_BYTES) {
        length++;
        if (starts(at + length, end, close)) {
            length += strlen(close);
            break;
        }
    }
    char cut[EXCERPT_BYTES + 4];
    length = length < sizeof cut - 1 ? length : sizeof cut - 1;
    memcpy(cut, at, length);
    cut[length] = '\0';
    text_copy(ret, EXCERPT_BYTES + 4, cut);
}

/* Whether the text after "{{" is in Helm's language; text that only has braces hardly has these
 * words. */
static bool is_helm(const char *at, const char *end)
{
    static const char *const words[] = {".Values", ".Release", ".Chart",  "include ", "template ",
                                        "toYaml ", "if ",      "range ",  "with ",    "end ",
                                        "end}",    "else",     "define ", "tpl "};
    at += at < end && *at == '-';
    while (at < end && *at == ' ') {
        at++;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (starts(at, end, words[i])) {
            return true;
        }
    }
    return false;
}

static void say_template(struct pass *p, const struct yaml_scan_char *c, const char *close,
                         const char *what, const char *hint)
{
    char shown[EXCERPT_BYTES + 4], message[MESSAGE_BYTES];
    excerpt(c->at, p->end, close, shown);
    snprintf(message, sizeof message, "%s %s", shown, what);
    say(p, c->place, hint, message);
}

/* Checks for templates. Text in quotes may contain them, but no YAML value begins like this without
 * quotes. */
static void check_template(struct pass *p, const struct yaml_scan_char *c)
{
    bool illegal = !c->quoted && (c->start || c->flow);
    if (starts(c->at, p->end, "{{") && (illegal || is_helm(c->at + 2, p->end))) {
        say_template(p, c, "}}", "is template syntax, not YAML", RENDER_HELM);
    } else if (illegal && starts(c->at, p->end, "{%")) {
        say_template(p, c, "%}", "is template syntax, not YAML", RENDER_HELM);
    } else if (starts(c->at, p->end, "<no value>")) {
        say_template(p, c, ">", "is what helm writes for a value that is not set",
                     "set the value, and render the template again");
    }
}

enum paste_verdict paste_check(const char *text, size_t bytes, struct job_problems *problems)
{
    struct pass p = {.problems = problems, .end = text + bytes};
    struct yaml_scan scan;
    struct yaml_scan_char c;
    if (check_foreign(&p, text)) {
        return p.verdict;
    }
    yaml_scan_init(&scan, text, bytes);
    while (yaml_scan_next(&scan, &c)) {
        bool marked = !c.quoted && (unsigned char)*c.at >= 0x80 && check_mark(&p, &c);
        if (!marked && (*c.at == '{' || *c.at == '<')) {
            check_template(&p, &c);
        }
    }
    return p.verdict;
}

/* --- values --- */

/* Returns the number of letters of a name that begin at `at`. */
static size_t name_length(const char *at)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    return *at && strchr(letters, *at)
               ? strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789")
               : 0;
}

const char *paste_template_hint(const char *text)
{
    if (strstr(text, "{{") || strstr(text, "{%")) {
        return RENDER_HELM;
    }
    for (const char *at = strchr(text, '$'); at; at = strchr(at + 1, '$')) {
        if (at[1] == '(' && name_length(at + 2) > 0) {
            return "$(NAME) is expanded only in command, args and the values of env";
        }
        if (name_length(at + 1 + (at[1] == '{')) > 0) {
            return RENDER_SHELL;
        }
    }
    const char *open = strchr(text, '<');
    const char *close = open ? strchr(open, '>') : NULL;
    return close && close > open + 1 ? "write your own value in place of <…>" : NULL;
}
