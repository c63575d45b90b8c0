/* See say.h. */
#include "api/validate/say.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "job/text.h"

#include <arpa/inet.h>
#include <string.h>

enum { PORT_MAX = 65535, LIST_BYTES_MAX = 512 };

void say_required(struct check *c, const char *below, const char *why)
{
    check_say(c, JOB_ERROR, below, NULL, "Required value%s%s", why ? ": " : "", why ? why : "");
    check_reason(c, "FieldValueRequired");
}

void say_duplicate(struct check *c, const char *below, const char *text)
{
    check_say(c, JOB_ERROR, below, NULL, "Duplicate value: \"%.100s\"", text);
    check_reason(c, "FieldValueDuplicate");
}

void say_forbidden(struct check *c, const char *below, const char *why)
{
    check_say(c, JOB_ERROR, below, NULL, "Forbidden: %s", why);
    check_reason(c, "FieldValueForbidden");
}

void say_invalid(struct check *c, const char *below, const json_t *value, const char *must)
{
    muster_auto(free) char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    check_say(c, JOB_ERROR, below, NULL, "Invalid value: %.200s: %s", text ? text : "", must);
    check_reason(c, "FieldValueInvalid");
}

void say_invalid_text(struct check *c, const char *below, const char *text, const char *must)
{
    check_say(c, JOB_ERROR, below, NULL, "Invalid value: \"%.100s\": %s", text, must);
    check_reason(c, "FieldValueInvalid");
}

/* ---- words and forms ---- */

static bool is_one_of(const char *text, const char *words)
{
    size_t length = strlen(text);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == length && strncmp(at, text, length) == 0) {
            return true;
        }
        at += word;
    }
    return false;
}

void say_unless_one_of(struct check *c, const json_t *object, const char *key, const char *words)
{
    const char *text = doc_text(object, key, "");
    struct buf list;
    if (!*text || is_one_of(text, words)) {
        return;
    }
    buf_init(&list, LIST_BYTES_MAX);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        buf_format(&list, "%s\"%.*s\"", at == words ? "" : ", ", (int)word, at);
        at += word;
    }
    check_say(c, JOB_ERROR, key, NULL, "Unsupported value: \"%.100s\": supported values: %s", text,
              buf_str(&list));
    check_reason(c, "FieldValueNotSupported");
    buf_done(&list);
}

void say_unless_formed(struct check *c, const json_t *object, const char *key,
                       enum schema_form form)
{
    const char *text = doc_text(object, key, "");
    const char *fault = *text ? job_text_fault(form, text) : NULL;
    if (fault) {
        say_invalid_text(c, key, text, fault);
    }
}

/* ---- ports, labels, addresses ---- */

static bool is_port(json_int_t number)
{
    return number >= 1 && number <= PORT_MAX;
}

static void say_no_port(struct check *c, const char *below, json_int_t number)
{
    check_say(c, JOB_ERROR, below, NULL,
              "Invalid value: %" JSON_INTEGER_FORMAT ": must be between 1 and 65535, inclusive",
              number);
    check_reason(c, "FieldValueInvalid");
}

void say_unless_port(struct check *c, const json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get((json_t *)object, key));
    if (!is_port(number)) {
        say_no_port(c, key, number);
    }
}

void say_unless_number_or_name_of_port(struct check *c, const char *below, const json_t *port)
{
    const char *name = json_string_value(port);
    const char *fault = name ? job_text_fault(SCHEMA_PORT_NAME, name) : NULL;
    if (fault) {
        say_invalid_text(c, below, name, fault);
    } else if (!name && !is_port(json_integer_value(port))) {
        say_no_port(c, below, json_integer_value(port));
    }
}

void say_unless_labels(struct check *c, const char *below, const json_t *labels)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)labels, key, value) {
        const char *text = json_string_value(value);
        const char *key_fault = job_text_fault(SCHEMA_QUALIFIED, key);
        const char *fault = text ? job_text_fault(SCHEMA_LABEL_VALUE, text) : NULL;
        if (key_fault) {
            say_invalid_text(c, below, key, key_fault);
        }
        if (fault) {
            say_invalid_text(c, below, text, fault);
        }
    }
}

void say_unless_address(struct check *c, const char *below, const char *text)
{
    struct in6_addr address;
    if (inet_pton(AF_INET, text, &address) != 1 && inet_pton(AF_INET6, text, &address) != 1) {
        say_invalid_text(c, below, text,
                         "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}
