/* See volumes.h. */
#include "cli/elasticdl/volumes.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/elasticdl/pair.h"

#include <stdlib.h>
#include <string.h>

enum { VOLUMES_MAX = 1024, KEYS_MAX = 8 };

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

struct volume {
    const char *flag;       /* the flag that has the volume */
    const char *text;       /* the text of this volume */
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

/* Reads one pair and moves *at behind it. */
static int read_pair(struct volume *v, const char **at, struct muster_err *err)
{
    size_t length = strcspn(*at, "=");
    for (size_t key = 0; key < KEY_COUNT; key++) {
        if (strlen(volume_keys[key]) != length || strncmp(*at, volume_keys[key], length) != 0) {
            continue;
        }
        const char *value = *at + length + ((*at)[length] == '=');
        size_t bytes = (*at)[length] ? shorter(pair_value_length(value, ',', is_volume_key),
                                               pair_value_length(value, ';', is_volume_key))
                                     : 0;
        if (v->values[key]) {
            return muster_fail(err, MUSTER_EINVAL, "--%s: %s is given twice for one volume",
                               v->flag, volume_keys[key]);
        }
        v->values[key] = pair_trimmed(value, bytes);
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

/* The name of the same volume, if it is already in the list, or of a new one, which is added. */
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
        *at = pair_skip_blanks(*at);
        r = read_pair(&v, at, err);
        more = r == 0 && **at == ',' && *pair_skip_blanks(*at + 1);
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

int volumes_read(const char *flag, const char *text, const char *job, json_t **ret_volumes,
                 json_t **ret_mounts, struct muster_err *err)
{
    muster_auto(doc) json_t *volumes = json_array();
    muster_auto(doc) json_t *mounts = json_array();
    for (const char *at = text + strspn(text, " ;"); *at; at += strspn(at, " ;")) {
        int r = json_array_size(mounts) > VOLUMES_MAX
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
