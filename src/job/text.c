/* See text.h. Rules: Kubernetes, "Object Names and IDs" (RFC 1035 and 1123 labels), and the
 * quantity grammar of apimachinery/pkg/api/resource. */
#include "job/text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

enum { LABEL_BYTES_MAX = 63, SUBDOMAIN_BYTES_MAX = 253, PORT_NAME_BYTES_MAX = 15 };

static bool only(const char *text, const char *set)
{
    return *text && text[strspn(text, set)] == '\0';
}

static bool one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static const char *label_fault(const char *text)
{
    size_t length = strnlen(text, LABEL_BYTES_MAX + 1);
    if (length == 0 || length > LABEL_BYTES_MAX) {
        return "must have 1 to 63 characters";
    }
    if (!only(text, LOWER DIGITS "-")) {
        return "must be made of a-z, 0-9 and '-'";
    }
    if (text[0] == '-' || text[length - 1] == '-') {
        return "must start and end with a letter or digit";
    }
    return NULL;
}

static const char *label_1035_fault(const char *text)
{
    const char *fault = label_fault(text);
    return fault ? fault : one_of(text[0], LOWER) ? NULL : "must start with a letter (a-z)";
}

static const char *subdomain_fault(const char *text)
{
    size_t length = strnlen(text, SUBDOMAIN_BYTES_MAX + 1);
    if (length == 0 || length > SUBDOMAIN_BYTES_MAX) {
        return "must have 1 to 253 characters";
    }
    if (!only(text, LOWER DIGITS "-.")) {
        return "must be made of a-z, 0-9, '-' and '.'";
    }
    if (one_of(text[0], "-.") || one_of(text[length - 1], "-.") || strstr(text, "..") ||
        strstr(text, "-.") || strstr(text, ".-")) {
        return "each part between dots must start and end with a letter or digit";
    }
    return NULL;
}

static const char *label_value_fault(const char *text)
{
    size_t length = strnlen(text, LABEL_BYTES_MAX + 1);
    if (length == 0) {
        return NULL;
    }
    if (length > LABEL_BYTES_MAX) {
        return "must have 63 characters at most";
    }
    if (!only(text, LOWER UPPER DIGITS "-_.")) {
        return "must be made of letters, digits, '-', '_' and '.'";
    }
    if (one_of(text[0], "-_.") || one_of(text[length - 1], "-_.")) {
        return "must start and end with a letter or digit";
    }
    return NULL;
}

static const char *qualified_fault(const char *text)
{
    static const char must[] =
        "must be [domain/]name, name of 63 letters, digits, '-', '_' and '.' "
        "at most";
    const char *slash = strchr(text, '/');
    char domain[SUBDOMAIN_BYTES_MAX + 1];
    if (slash) {
        size_t length = (size_t)(slash - text);
        if (length > SUBDOMAIN_BYTES_MAX) {
            return must;
        }
        memcpy(domain, text, length);
        domain[length] = '\0';
    }
    const char *name = slash ? slash + 1 : text;
    return (slash && subdomain_fault(domain)) || !*name || label_value_fault(name) ? must : NULL;
}

/* Since Kubernetes 1.34, any printable ASCII except '=' is valid. */
static const char *env_name_fault(const char *text)
{
    if (!*text) {
        return "must not be empty";
    }
    for (const char *at = text; *at; at++) {
        if (*at < ' ' || *at > '~' || *at == '=') {
            return "must be printable ASCII without '='";
        }
    }
    return NULL;
}

static const char *port_name_fault(const char *text)
{
    size_t length = strnlen(text, PORT_NAME_BYTES_MAX + 1);
    if (length == 0 || length > PORT_NAME_BYTES_MAX) {
        return "must have 1 to 15 characters";
    }
    if (!only(text, LOWER DIGITS "-") || !strpbrk(text, LOWER) || text[0] == '-' ||
        text[length - 1] == '-' || strstr(text, "--")) {
        return "must be made of a-z, 0-9 and single '-' inside, with at least one letter";
    }
    return NULL;
}

static const char *processes_fault(const char *text)
{
    static const char must[] = "must be auto, cpu, gpu or a count of 1 or more";
    if (strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0 || strcmp(text, "gpu") == 0) {
        return NULL;
    }
    return only(text, DIGITS) && strlen(text) <= 6 && strtol(text, NULL, 10) > 0 ? NULL : must;
}

static const char *inside_fault(const char *text)
{
    for (const char *part = text; part;) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.') {
            return "must not contain '..'";
        }
        part = part[length] ? part + length + 1 : NULL;
    }
    return *text == '/' ? "must be a relative path" : NULL;
}

const char *job_text_fault(enum schema_form form, const char *text)
{
    switch (form) {
    case SCHEMA_FREE:
    case SCHEMA_WORDS: return NULL;
    case SCHEMA_NOT_EMPTY: return *text ? NULL : "must not be empty";
    case SCHEMA_LABEL: return label_fault(text);
    case SCHEMA_LABEL_1035: return label_1035_fault(text);
    case SCHEMA_SUBDOMAIN: return subdomain_fault(text);
    case SCHEMA_LABEL_VALUE: return label_value_fault(text);
    case SCHEMA_QUALIFIED: return qualified_fault(text);
    case SCHEMA_ENV_NAME: return env_name_fault(text);
    case SCHEMA_PORT_NAME: return port_name_fault(text);
    case SCHEMA_ABSOLUTE: return *text == '/' ? NULL : "must start with '/'";
    case SCHEMA_INSIDE: return inside_fault(text);
    case SCHEMA_PROCESSES: return processes_fault(text);
    }
    assert(false);
    return NULL;
}

/* Returns a letter or digit that a name may have, or '-' for any other character. */
static char mend_char(enum schema_form form, char c)
{
    c = one_of(c, UPPER) ? (char)(c - 'A' + 'a') : c;
    return one_of(c, LOWER DIGITS) || (c == '.' && form == SCHEMA_SUBDOMAIN) ? c : '-';
}

void job_text_mend(enum schema_form form, const char *text, size_t max, char *ret, size_t ret_bytes)
{
    size_t used = 0;
    size_t room = form == SCHEMA_PORT_NAME ? PORT_NAME_BYTES_MAX : LABEL_BYTES_MAX;
    room = room < max ? room : max;
    room = room < ret_bytes - 1 ? room : ret_bytes - 1;
    const char *start = form == SCHEMA_LABEL_1035 ? LOWER : LOWER DIGITS;
    for (const char *at = text; *at && used < room; at++) {
        char c = mend_char(form, *at);
        bool again = used > 0 && one_of(c, "-.") && one_of(ret[used - 1], "-.");
        if (!again && (used > 0 || one_of(c, start))) {
            ret[used++] = c;
        }
    }
    while (used > 0 && one_of(ret[used - 1], "-.")) {
        used--;
    }
    ret[used] = '\0';
    if (used > 0 && job_text_fault(form, ret)) {
        ret[0] = '\0';
    }
}
