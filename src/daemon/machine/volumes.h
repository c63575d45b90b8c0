/* A pod's volumes as folders of this machine.
 *
 *     configMap, secret   files written under the pod's folder
 *     emptyDir            a folder under the pod's folder, gone with the pod
 *     hostPath            the path itself
 *     persistentVolumeClaim   volumes/NAMESPACE/CLAIM under MUSTER_HOME, kept between jobs
 *
 * Layer: program (daemon). Ownership: everything borrowed but what is returned. One thread.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

struct volume_sources {
    const char *home;   /* MUSTER_HOME */
    const char *folder; /* the pod's own folder */
    /* Returns a new reference to an object of the pod's namespace ("configmaps", "secrets",
     * "persistentvolumeclaims"). MUSTER_ENOENT: it does not exist; other codes: this cannot be
     * known. */
    int (*find)(void *data, const char *resource, const char *namespace, const char *name,
                json_t **ret, struct muster_err *err);
    void *data;
    const json_t *env; /* the container's {"NAME": "value"}, for subPathExpr; may be NULL */
};

/* Makes every volume that `container` mounts, and lists the mounts as the supervisor takes them:
 * [{"name","hostPath","mountPath","readOnly","subPath"}]. MUSTER_ENOENT: an object is missing (it
 * may be created later); MUSTER_EUNSUPPORTED: this machine does not have this kind of volume. */
int volumes_mount(const struct volume_sources *sources, const json_t *pod, const json_t *container,
                  json_t **ret_mounts, struct muster_err *err);

/* Returns the folder of a claim; the caller frees it. */
char *volumes_claim_folder(const char *home, const char *namespace, const char *claim);
