/* See journal.h. */
#include "cli/elasticdl/journal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "cli/elasticdl/values.h"
#include "cli/elasticdl/volumes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAG "journal_volume"
#define MOUNT_PATH "/var/lib/muster"
#define VOLUME_NAME "journal"
#define ACCOUNT "elasticdl-coordinator" /* defined in deploy/elasticdl-rbac.yaml */

static int make_default(struct journal_place *ret, struct muster_err *err)
{
    ret->volume = json_pack("{s:s, s:{}}", "name", VOLUME_NAME, "emptyDir");
    ret->mount = json_pack("{s:s, s:s}", "name", VOLUME_NAME, "mountPath", MOUNT_PATH);
    return ret->volume && ret->mount ? 0 : err_no_memory(err);
}

/* Reads a volume that is written as for --volume, but without mount_path. */
static int read_volume(const char *text, struct journal_place *ret, struct muster_err *err)
{
    muster_auto(doc) json_t *volumes = NULL;
    muster_auto(doc) json_t *mounts = NULL;
    char *whole = NULL;
    bool mounts_it = strstr(text, "mount_path=") != NULL;
    if (mounts_it || strchr(text, ';')) {
        return muster_fail(err, MUSTER_EINVAL, "--" FLAG ": %s: '%.200s'",
                           mounts_it ? "leave mount_path out, muster says where it is mounted"
                                     : "one volume, without ;",
                           text);
    }
    if (asprintf(&whole, "%s,mount_path=" MOUNT_PATH, text) < 0) {
        return err_no_memory(err);
    }
    int r = volumes_read(FLAG, whole, VOLUME_NAME, &volumes, &mounts, err);
    free(whole);
    if (r == 0) {
        ret->volume = json_incref(json_array_get(volumes, 0));
        ret->mount = json_incref(json_array_get(mounts, 0));
        bool named = json_object_set_new(ret->volume, "name", json_string(VOLUME_NAME)) == 0 &&
                     json_object_set_new(ret->mount, "name", json_string(VOLUME_NAME)) == 0;
        r = named ? 0 : err_no_memory(err);
    }
    return r;
}

int journal_place_read(const char *text, struct journal_place *ret, struct muster_err *err)
{
    *ret = (struct journal_place){.outlives_pod = *text != '\0'};
    return ret->outlives_pod ? read_volume(text, ret, err) : make_default(ret, err);
}

void journal_place_done(struct journal_place *place)
{
    json_decref(place->volume);
    json_decref(place->mount);
    *place = (struct journal_place){0};
}

const char *journal_folder(const struct journal_place *place)
{
    return place->outlives_pod ? MOUNT_PATH "/$(MUSTER_JOB_UID)" : MOUNT_PATH;
}

/* A journal that outlives the pod may outlive its node: it must not be older than what was
 * announced (--durable). Two pods may reach it, if a node goes on that the cluster has given up
 * (--lease). */
void journal_add_words(const struct journal_place *place, const char *job, struct build *b,
                       json_t *command)
{
    if (place->outlives_pod) {
        build_add(b, command, json_string("--durable"));
        build_add(b, command, json_string("--lease"));
        build_add(b, command, json_sprintf("%s-coordinator", job));
    }
}

void journal_add_volume(const struct journal_place *place, struct build *b, json_t *pod,
                        json_t *container)
{
    build_add(b, build_array_at(b, container, "volumeMounts"), json_incref(place->mount));
    build_add(b, build_array_at(b, pod, "volumes"), json_incref(place->volume));
    if (place->outlives_pod) {
        build_text(b, pod, "serviceAccountName", ACCOUNT);
    }
}
