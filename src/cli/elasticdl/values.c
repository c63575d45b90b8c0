/* See values.h. */
#include "cli/elasticdl/values.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/command/elasticdl.h"
#include "job/generate.h"
#include "job/shell_variables.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 1024, KEYS_MAX = 8 };

typedef bool is_key_fn(const char *at, size_t length);

static bool is_variable(const char *at, size_t length)
{
    bool word = length > 0 && !isdigit((unsigned char)*at);
    for (size_t i = 0; i < length; i++) {
        word = word && (isalnum((unsigned char)at[i]) || at[i] == '_');
    }
    return word;
}

static const char *const volume_keys[] = {"host_path", "claim_name", "mount_path", "sub_path",
                                          "type"};

static bool is_volume_key(const char *at, size_t length)
{
    for (size_t i = 0; i < sizeof volume_keys / sizeof volume_keys[0]; i++) {
        if (strlen(volume_keys[i]) == length && strncmp(at, volume_keys[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\n");
}

static bool starts_pair(const char *at, is_key_fn *is_key)
{
    at = skip_blanks(at);
    size_t length = strcspn(at, "=");
    return at[length] == '=' && is_key(at, length);
}

/* How long the value at `at` is: to the next `separator` after which a KEY= follows, or to the end;
 * separators at the end are not the value's. */
static size_t value_length(const char *at, char separator, is_key_fn *is_key)
{
    size_t length = 0;
    while (at[length] && !(at[length] == separator && starts_pair(at + length + 1, is_key))) {
        length++;
    }
    bool last = !at[length];
    while (last && length > 0 && strchr(", ;", at[length - 1]) && at[length - 1] == separator) {
        length--;
    }
    return length;
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
    const char *at = skip_blanks(text);
    while (*at) {
        size_t name_length = strcspn(at, "=");
        size_t length = at[name_length] ? value_length(at + name_length + 1, ',', is_variable) : 0;
        muster_auto(free) char *name = strndup(at, name_length);
        muster_auto(free) char *value =
            at[name_length] ? strndup(at + name_length + 1, length) : strdup("");
        if (!list || !name || !value || json_array_size(list) > VALUES_MAX) {
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
        at = skip_blanks(at + strspn(at, ","));
    }
    *ret = muster_take(list);
    return 0;
}

/* --- resources --- */

/* "gpu" is NVIDIA's; a vendor's own is "amd.com/gpu"; NULL when it is none. */
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

static char *trimmed(const char *at, size_t length)
{
    while (length > 0 && isspace((unsigned char)*at)) {
        at++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)at[length - 1])) {
        length--;
    }
    return strndup(at, length);
}

int values_resources(const char *flag, const char *text, json_t **ret, struct muster_err *err)
{
    muster_auto(doc) json_t *resources = json_object();
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        size_t name_length = strcspn(at, "=");
        muster_auto(free) char *name = trimmed(at, name_length < length ? name_length : length);
        muster_auto(free) char *amount =
            name_length < length ? trimmed(at + name_length + 1, length - name_length - 1)
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

/* --- volumes --- */

struct volume {
    const char *flag;       /* that says so */
    const char *text;       /* of this one */
    char *values[KEYS_MAX]; /* by volume_keys */
};
enum volume_key { HOST_PATH, CLAIM_NAME, MOUNT_PATH, SUB_PATH, TYPE, KEY_COUNT };

static void volume_done(struct volume *v)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        free(v->values[i]);
    }
}

static int refuse_volume(const struct volume *v, const char *what, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EINVAL,
                       "--%s: %s: '%.200s' (host_path=PATH or claim_name=CLAIM, mount_path=PATH, "
                       "sub_path=PATH, type=TYPE; ; between volumes)",
                       v->flag, what, v->text);
}

static int unknown_key(const struct volume *v, const char *at, struct muster_err *err)
{
    muster_auto(free) char *name = strndup(at, strcspn(at, "=,;"));
    const char *near = name ? text_nearest(name, volume_keys, KEY_COUNT) : NULL;
    return muster_fail(err, MUSTER_EINVAL, "--%s: unknown key '%.80s'%s%s", v->flag,
                       name ? name : "",
                       near ? "; did you mean "
                            : " (host_path, claim_name, mount_path, sub_path, "
                              "type)",
                       near ? near : "");
}

static size_t shorter(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One pair; *at is moved behind it. */
static int read_pair(struct volume *v, const char **at, struct muster_err *err)
{
    size_t length = strcspn(*at, "=");
    for (size_t key = 0; key < KEY_COUNT; key++) {
        if (strlen(volume_keys[key]) != length || strncmp(*at, volume_keys[key], length) != 0) {
            continue;
        }
        const char *value = *at + length + ((*at)[length] == '=');
        size_t bytes = (*at)[length] ? shorter(value_length(value, ',', is_volume_key),
                                               value_length(value, ';', is_volume_key))
                                     : 0;
        if (v->values[key]) {
            return muster_fail(err, MUSTER_EINVAL, "--%s: %s is given twice for one volume",
                               v->flag, volume_keys[key]);
        }
        v->values[key] = trimmed(value, bytes);
        *at = value + bytes;
        return v->values[key] ? 0 : err_no_memory(err);
    }
    return unknown_key(v, *at, err);
}

static int check_volume(const struct volume *v, struct muster_err *err)
{
    const char *host = v->values[HOST_PATH];
    const char *claim = v->values[CLAIM_NAME];
    const char *mount = v->values[MOUNT_PATH];
    if ((!host || !*host) == (!claim || !*claim)) {
        return refuse_volume(v, "needs one of host_path and claim_name", err);
    }
    if (!mount || *mount != '/') {
        return refuse_volume(v, "needs a mount_path that begins with /", err);
    }
    if (host && *host == '{') {
        return muster_fail(err, MUSTER_EINVAL,
                           "--%s: host_path=%.200s stands for a folder of yours: put its path "
                           "there",
                           v->flag, host);
    }
    if (host && *host != '/') {
        return muster_fail(err, MUSTER_EINVAL,
                           "--%s: host_path=%.200s must be absolute: $PWD/%.200s?", v->flag, host,
                           host);
    }
    return 0;
}

/* The name of the volume that is there already, or of a new one. */
static const char *volume_name(json_t *volumes, const char *job, const struct volume *v)
{
    bool is_host = v->values[HOST_PATH] != NULL;
    json_t *source = is_host ? json_pack("{s:{s:s, s:s*}}", "hostPath", "path",
                                         v->values[HOST_PATH], "type", v->values[TYPE])
                             : json_pack("{s:{s:s}}", "persistentVolumeClaim", "claimName",
                                         v->values[CLAIM_NAME]);
    size_t i;
    json_t *each;
    json_array_foreach (volumes, i, each) {
        muster_auto(doc) json_t *copy = json_copy(each);
        json_object_del(copy, "name");
        if (json_equal(copy, source)) {
            json_decref(source);
            return json_string_value(json_object_get(each, "name"));
        }
    }
    json_t *volume = json_object();
    json_object_set_new(volume, "name", json_sprintf("%s-volume-%zu", job, i));
    json_object_update_missing(volume, source);
    json_decref(source);
    json_array_append_new(volumes, volume);
    return json_string_value(json_object_get(volume, "name"));
}

static int read_volume(const char *flag, const char **at, const char *job, json_t *volumes,
                       json_t *mounts, struct muster_err *err)
{
    struct volume v = {.flag = flag, .text = *at};
    int r = 0;
    for (bool more = true; r == 0 && more;) {
        *at = skip_blanks(*at);
        r = read_pair(&v, at, err);
        more = r == 0 && **at == ',' && *skip_blanks(*at + 1);
        *at += r == 0 && **at == ',';
    }
    r = r < 0 ? r : check_volume(&v, err);
    if (r == 0) {
        const char *name = volume_name(volumes, job, &v);
        json_t *mount = json_pack("{s:s*, s:s, s:s*}", "name", name, "mountPath",
                                  v.values[MOUNT_PATH], "subPath", v.values[SUB_PATH]);
        r = name && json_array_append_new(mounts, mount) == 0 ? 0 : err_no_memory(err);
    }
    volume_done(&v);
    return r;
}

int values_volumes(const char *flag, const char *text, const char *job, json_t **ret_volumes,
                   json_t **ret_mounts, struct muster_err *err)
{
    muster_auto(doc) json_t *volumes = json_array();
    muster_auto(doc) json_t *mounts = json_array();
    for (const char *at = text + strspn(text, " ;"); *at; at += strspn(at, " ;")) {
        int r = json_array_size(mounts) > VALUES_MAX
                    ? err_no_memory(err)
                    : read_volume(flag, &at, job, volumes, mounts, err);
        if (r < 0) {
            return r;
        }
    }
    *ret_volumes = muster_take(volumes);
    *ret_mounts = muster_take(mounts);
    return 0;
}

/* --- the rest --- */

int values_relaunch_is_off(const char *text, int *ret, struct muster_err *err)
{
    static const char key[] = "disable_relaunch=";
    *ret = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ";");
        muster_auto(free) char *pair = trimmed(at, length);
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
