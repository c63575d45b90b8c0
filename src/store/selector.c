/* Selectors: parsed once, matched often. See selector.h.
 *
 * Grammar of labels (k8s.io/apimachinery, labels.Parse): requirements separated by commas; key,
 * !key, key=v, key==v, key!=v, key in (v,…), key notin (v,…).
 */
#include "store/selector.h"

#include "base/doc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
    const char *at;
};

static void skip_space(struct cursor *c)
{
    c->at += strspn(c->at, " \t");
}

static bool take(struct cursor *c, const char *token)
{
    skip_space(c);
    size_t length = strlen(token);
    if (strncmp(c->at, token, length) != 0) {
        return false;
    }
    c->at += length;
    return true;
}

/* Takes "in" or "notin" as a whole word: "inner" is not "in". */
static bool take_word(struct cursor *c, const char *word)
{
    struct cursor trial = *c;
    if (!take(&trial, word) || (*trial.at != ' ' && *trial.at != '(' && *trial.at != '\t')) {
        return false;
    }
    *c = trial;
    return true;
}

/* Takes the characters up to white space or one of `stop`; the result may be empty. */
static char *take_text(struct cursor *c, const char *stop)
{
    skip_space(c);
    size_t length = 0;
    while (c->at[length] && !isspace((unsigned char)c->at[length]) &&
           !strchr(stop, c->at[length])) {
        length++;
    }
    char *text = strndup(c->at, length);
    c->at += length;
    return text;
}

static int add_value(struct selector_requirement *requirement, char *value, struct muster_err *err)
{
    char **larger =
        requirement->value_count < SELECTOR_VALUES_MAX
            ? realloc(requirement->values, (requirement->value_count + 1) * sizeof *larger)
            : NULL;
    if (!value || !larger) {
        free(value);
        return muster_fail(err, MUSTER_EINVAL, "a selector may list %d values at most",
                           SELECTOR_VALUES_MAX);
    }
    requirement->values = larger;
    requirement->values[requirement->value_count++] = value;
    return 0;
}

static int add_requirement(struct selector *s, enum selector_operator operator, char * key,
                           struct muster_err *err)
{
    struct selector_requirement *larger =
        s->count < SELECTOR_REQUIREMENTS_MAX
            ? realloc(s->requirements, (s->count + 1) * sizeof *larger)
            : NULL;
    if (!larger) {
        free(key);
        return muster_fail(err, MUSTER_EINVAL, "a selector may have %d requirements at most",
                           SELECTOR_REQUIREMENTS_MAX);
    }
    s->requirements = larger;
    s->requirements[s->count++] = (struct selector_requirement){.operator= operator, .key = key };
    return 0;
}

static int unreadable(const struct cursor *c, const char *text, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EINVAL,
                       "unable to parse the selector \"%.100s\" at \"%.40s\": write key, !key, "
                       "key=value, key!=value, key in (a,b) or key notin (a,b)",
                       text, c->at);
}

static int parse_set(struct cursor *c, const char *text, struct selector_requirement *requirement,
                     struct muster_err *err)
{
    if (!take(c, "(")) {
        return unreadable(c, text, err);
    }
    do {
        int r = add_value(requirement, take_text(c, ",()=!"), err);
        if (r < 0) {
            return r;
        }
    } while (take(c, ","));
    return take(c, ")") ? 0 : unreadable(c, text, err);
}

static enum selector_operator take_operator(struct cursor *c, bool *ret_set)
{
    *ret_set = true;
    if (take_word(c, "in")) {
        return SELECTOR_IN;
    }
    if (take_word(c, "notin")) {
        return SELECTOR_NOT_IN;
    }
    *ret_set = false;
    if (take(c, "!=")) {
        return SELECTOR_NOT_IN;
    }
    return take(c, "==") || take(c, "=") ? SELECTOR_IN : SELECTOR_EXISTS;
}

static int parse_requirement(struct cursor *c, const char *text, struct selector *s,
                             struct muster_err *err)
{
    bool missing = take(c, "!");
    char *key = take_text(c, ",()=!");
    if (!key || !*key) {
        free(key);
        return unreadable(c, text, err);
    }
    bool set = false;
    enum selector_operator operator= missing ? SELECTOR_MISSING : take_operator(c, &set);
    int r = add_requirement(s, operator, key, err);
    if (r < 0 || operator== SELECTOR_MISSING || operator== SELECTOR_EXISTS) {
        return r;
    }
    struct selector_requirement *added = &s->requirements[s->count - 1];
    return set ? parse_set(c, text, added, err) : add_value(added, take_text(c, ",()=!"), err);
}

static int parse(const char *text, struct selector *ret, struct muster_err *err)
{
    struct selector s = {0};
    struct cursor c = {text ? text : ""};
    if (strlen(c.at) > SELECTOR_TEXT_BYTES_MAX) {
        return muster_fail(err, MUSTER_EINVAL, "the selector is longer than %d bytes",
                           SELECTOR_TEXT_BYTES_MAX);
    }
    skip_space(&c);
    int r = 0;
    while (r == 0 && *c.at) {
        r = parse_requirement(&c, text, &s, err);
        skip_space(&c);
        if (r == 0 && *c.at && !(take(&c, ",") && (skip_space(&c), *c.at))) {
            r = unreadable(&c, text, err);
        }
    }
    if (r < 0) {
        selector_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}

int selector_parse_labels(const char *text, struct selector *ret, struct muster_err *err)
{
    return parse(text, ret, err);
}

/* Whether the key has short parts between single dots, as doc_at requires. */
static bool is_path(const char *key)
{
    return strlen(key) < 128 && *key != '.' && !strstr(key, "..") && key[strlen(key) - 1] != '.';
}

static int refuse_field(const char *text, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EINVAL,
                       "a field selector knows only field=value and field!=value, not \"%.100s\"",
                       text);
}

int selector_parse_fields(const char *text, struct selector *ret, struct muster_err *err)
{
    struct selector s = {0};
    bool sets = text && strpbrk(text, "()");
    int r = sets ? refuse_field(text, err) : parse(text, &s, err);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < s.count; i++) {
        if (s.requirements[i].value_count != 1 || !is_path(s.requirements[i].key)) {
            r = muster_fail(
                err, MUSTER_EINVAL,
                "a field selector knows only field=value and field!=value, not \"%.100s\"", text);
        }
    }
    if (r < 0) {
        selector_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void selector_done(struct selector *selector)
{
    for (size_t i = 0; i < selector->count; i++) {
        struct selector_requirement *requirement = &selector->requirements[i];
        for (size_t j = 0; j < requirement->value_count; j++) {
            free(requirement->values[j]);
        }
        free(requirement->values);
        free(requirement->key);
    }
    free(selector->requirements);
    *selector = (struct selector){0};
}

/* ---- matching ---- */

static bool listed(const struct selector_requirement *requirement, const char *value)
{
    for (size_t i = 0; i < requirement->value_count; i++) {
        if (strcmp(requirement->values[i], value) == 0) {
            return true;
        }
    }
    return false;
}

static bool holds(const struct selector_requirement *requirement, const char *value)
{
    switch (requirement->operator) {
    case SELECTOR_IN: return value && listed(requirement, value);
    case SELECTOR_NOT_IN: return !value || !listed(requirement, value);
    case SELECTOR_EXISTS: return value;
    case SELECTOR_MISSING: return !value;
    }
    return false;
}

bool selector_match_labels(const struct selector *selector, const json_t *object)
{
    const json_t *labels = doc_at(object, "metadata.labels");
    for (size_t i = 0; i < selector->count; i++) {
        const struct selector_requirement *requirement = &selector->requirements[i];
        if (!holds(requirement, json_string_value(json_object_get(labels, requirement->key)))) {
            return false;
        }
    }
    return true;
}

bool selector_match_fields(const struct selector *selector, const json_t *object)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct selector_requirement *requirement = &selector->requirements[i];
        if (!holds(requirement, doc_text(object, requirement->key, ""))) {
            return false;
        }
    }
    return true;
}

/* Whether JSON prints the value without escapes. */
static bool is_plain(const char *value)
{
    return value[strspn(
               value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")] == '\0';
}

bool selector_may_match_text(const struct selector *fields, const char *text)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct selector_requirement *requirement = &fields->requirements[i];
        if (requirement->operator== SELECTOR_IN && requirement->value_count == 1 &&
            is_plain(requirement->values[0]) &&
            !strstr(text, requirement->values[0])) {
            return false;
        }
    }
    return true;
}
