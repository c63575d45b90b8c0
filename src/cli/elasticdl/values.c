/* See values.h. */
#include "cli/elasticdl/values.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/command/elasticdl.h"
#include "cli/elasticdl/pair.h"
#include "job/generate.h"
#include "job/shell_variables.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PEER_LIMIT "HOROVOD_GLOO_TIMEOUT_SECONDS"
enum { VARIABLES_MAX = 1024, PEER_LIMIT_DIGITS = 6 };

static bool is_variable(const char *at, size_t length)
{
    bool word = length > 0 && !isdigit((unsigned char)*at);
    for (size_t i = 0; i < length; i++) {
        word = word && (isalnum((unsigned char)at[i]) || at[i] == '_');
    }
    return word;
}

/* --- variables --- */

static int check_variable(const char *flag, const char *name, struct muster_err *err)
{
    if (!is_variable(name, strlen(name))) {
        return muster_fail(err, MUSTER_EINVAL,
                           "--%s must be NAME=VALUE,NAME=VALUE…: '%.80s' is no name of a variable",
                           flag, name);
    }
    bool ours = shell_variable_is(VARIABLE_OURS, name) || strcmp(name, "WORKER_ID") == 0 ||
                strncmp(name, "MUSTER_COORDINATOR", strlen("MUSTER_COORDINATOR")) == 0;
    return ours ? muster_fail(err, MUSTER_EINVAL,
                              "--%s: %s is set by muster for each worker, and cannot be given",
                              flag, name)
                : 0;
}

static void set_variable(json_t *list, const char *name, const char *value)
{
    json_t *entry = json_pack("{s:s, s:o}", "name", name, "value", job_literal(value));
    size_t i;
    json_t *each;
    json_array_foreach (list, i, each) {
        if (strcmp(json_string_value(json_object_get(each, "name")), name) == 0) {
            json_array_set_new(list, i, entry);
            return;
        }
    }
    json_array_append_new(list, entry);
}

int values_variables(const char *flag, const char *text, json_t **ret, struct muster_err *err)
{
    muster_auto(doc) json_t *list = json_array();
    const char *at = pair_skip_blanks(text);
    while (*at) {
        size_t name_length = strcspn(at, "=");
        size_t length =
            at[name_length] ? pair_value_length(at + name_length + 1, ',', is_variable) : 0;
        muster_auto(free) char *name = strndup(at, name_length);
        muster_auto(free) char *value =
            at[name_length] ? strndup(at + name_length + 1, length) : strdup("");
        if (!list || !name || !value || json_array_size(list) > VARIABLES_MAX) {
            return err_no_memory(err);
        }
        if (!at[name_length]) {
            return muster_fail(err, MUSTER_EINVAL,
                               "--%s must be NAME=VALUE,NAME=VALUE…: '%.80s' has no =", flag, name);
        }
        int r = check_variable(flag, name, err);
        if (r < 0) {
            return r;
        }
        set_variable(list, name, value);
        at += name_length + 1 + length;
        at = pair_skip_blanks(at + strspn(at, ","));
    }
    *ret = muster_take(list);
    return 0;
}

int values_peer_limit(const json_t *variables, int64_t *ret_s, struct muster_err *err)
{
    size_t i;
    json_t *each;
    *ret_s = 0;
    json_array_foreach (variables, i, each) {
        const char *value = doc_text(each, "value", "");
        if (strcmp(doc_text(each, "name", ""), PEER_LIMIT) == 0) {
            size_t digits = strspn(value, "0123456789");
            *ret_s = digits > 0 && digits <= PEER_LIMIT_DIGITS && !value[digits] ? atoll(value) : 0;
            return *ret_s > 0 ? 0
                              : muster_fail(err, MUSTER_EINVAL,
                                            "--envs: " PEER_LIMIT
                                            " must be a number of seconds, 1 or more, not '%.80s'",
                                            value);
        }
    }
    return 0;
}

/* --- resources --- */

/* The resource of this name: "gpu" is NVIDIA's, and another vendor's is written as "amd.com/gpu";
 * NULL if the name is not a resource. */
static const char *resource_of(const char *name)
{
    static const char *const table[][2] = {{"cpu", "cpu"},
                                           {"memory", "memory"},
                                           {"disk", "ephemeral-storage"},
                                           {"ephemeral-storage", "ephemeral-storage"},
                                           {"gpu", "nvidia.com/gpu"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i][0], name) == 0) {
            return table[i][1];
        }
    }
    const char *slash = strchr(name, '/');
    bool vendors = slash && slash > name && slash[1] &&
                   (strcmp(slash, "/gpu") == 0 || strncmp(name, "nvidia.com/", 11) == 0);
    return vendors ? name : NULL;
}

static int unknown_resource(const char *flag, const char *name, struct muster_err *err)
{
    static const char *const known[] = {"cpu", "memory", "disk", "ephemeral-storage", "gpu"};
    const char *near = text_nearest(name, known, sizeof known / sizeof known[0]);
    return muster_fail(err, MUSTER_EINVAL,
                       "--%s: unknown resource '%.80s'%s%s (cpu, memory, disk, ephemeral-storage, "
                       "gpu, VENDOR/gpu)",
                       flag, name, near ? "; did you mean " : "", near ? near : "");
}

static int add_resource(const char *flag, const char *name, const char *amount, json_t *into,
                        struct muster_err *err)
{
    const char *resource = resource_of(name);
    if (!resource) {
        return unknown_resource(flag, name, err);
    }
    bool whole = strchr(resource, '/') != NULL;
    bool fits = whole ? *amount && strspn(amount, "0123456789") == strlen(amount) &&
                            strlen(amount) < 6 && strtol(amount, NULL, 10) > 0
                      : quantity_milli(amount) > 0;
    if (!fits) {
        return muster_fail(err, MUSTER_EINVAL, "--%s: %s=%.80s: must be %s", flag, name, amount,
                           whole ? "a whole number over 0"
                                 : "an amount over 0, such as 0.5, 250m or 1024Mi");
    }
    if (json_object_get(into, resource)) {
        return muster_fail(err, MUSTER_EINVAL, "--%s: %s is given twice", flag, name);
    }
    return json_object_set_new(into, resource, json_string(amount)) == 0 ? 0 : err_no_memory(err);
}

int values_resources(const char *flag, const char *text, json_t **ret, struct muster_err *err)
{
    muster_auto(doc) json_t *resources = json_object();
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        size_t name_length = strcspn(at, "=");
        muster_auto(free) char *name =
            pair_trimmed(at, name_length < length ? name_length : length);
        muster_auto(free) char *amount =
            name_length < length ? pair_trimmed(at + name_length + 1, length - name_length - 1)
                                 : strdup("");
        if (!resources || !name || !amount) {
            return err_no_memory(err);
        }
        int r = name_length < length
                    ? add_resource(flag, name, amount, resources, err)
                    : muster_fail(err, MUSTER_EINVAL,
                                  "--%s must be NAME=AMOUNT,NAME=AMOUNT…: '%.80s' has no =", flag,
                                  name);
        if (r < 0) {
            return r;
        }
        at += length + (at[length] == ',');
    }
    *ret = muster_take(resources);
    return 0;
}

/* --- the rest --- */

int values_relaunch_is_off(const char *text, int *ret, struct muster_err *err)
{
    static const char key[] = "disable_relaunch=";
    *ret = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ";");
        muster_auto(free) char *pair = pair_trimmed(at, length);
        if (!pair) {
            return err_no_memory(err);
        }
        int value =
            strncmp(pair, key, strlen(key)) == 0 ? elasticdl_boolean(pair + strlen(key)) : -1;
        if (*pair && value < 0) {
            return muster_fail(err, MUSTER_EINVAL,
                               "--aux_params: '%.80s': muster knows disable_relaunch=true or false",
                               pair);
        }
        *ret = *pair ? value : *ret;
        at += length + (at[length] == ';');
    }
    return 0;
}
