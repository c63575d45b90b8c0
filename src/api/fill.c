/* Fills in the defaults that an API server fills into objects, whoever writes them. See api_fill
 * in api.h.
 *
 * Layer: services, pure. Source: k8s.io/kubernetes pkg/apis/core/v1/defaults.go.
 */
#include "api/api.h"

#include "base/doc.h"

#include <string.h>

static const struct row {
    const char *resource;
    const char *path;
    const char *text; /* or, if NULL, the number */
    int64_t number;
} rows[] = {
    {"namespaces", "status.phase", "Active", 0},
    {"persistentvolumeclaims", "status.phase", "Bound", 0}, /* a folder can always be made */
    {"pods", "spec.restartPolicy", "Always", 0},
    {"pods", "spec.terminationGracePeriodSeconds", NULL, 30},
    {"pods", "status.phase", "Pending", 0},
    {"secrets", "type", "Opaque", 0},
    {"services", "spec.clusterIP", "None", 0}, /* no proxy here: every service is headless */
    {"services", "spec.sessionAffinity", "None", 0},
    {"services", "spec.type", "ClusterIP", 0},
};

/* The folder has the modes and the size that the claim asks for, whatever they are. */
static int fill_claim(json_t *claim)
{
    json_t *modes = doc_at(claim, "spec.accessModes");
    json_t *asked = doc_at(claim, "spec.resources.requests");
    int r = 0;
    if (modes && !doc_at(claim, "status.accessModes")) {
        r = doc_set(claim, "status.accessModes", json_deep_copy(modes));
    }
    if (r == 0 && asked && !doc_at(claim, "status.capacity")) {
        r = doc_set(claim, "status.capacity", json_deep_copy(asked));
    }
    return r;
}

static int fill_ports(json_t *service)
{
    size_t i;
    json_t *port;
    int r = 0;
    json_array_foreach (doc_at(service, "spec.ports"), i, port) {
        json_t *number = json_object_get(port, "port");
        if (r == 0 && !doc_at(port, "protocol")) {
            r = doc_set_text(port, "protocol", "TCP");
        }
        if (r == 0 && number && !doc_at(port, "targetPort")) {
            r = doc_set(port, "targetPort", json_incref(number));
        }
    }
    return r;
}

int api_fill(const char *resource, json_t *object)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->resource, resource) != 0 || doc_at(object, row->path)) {
            continue;
        }
        int r = row->text ? doc_set_text(object, row->path, row->text)
                          : doc_set_int(object, row->path, row->number);
        if (r < 0) {
            return r;
        }
    }
    return strcmp(resource, "persistentvolumeclaims") == 0 ? fill_claim(object)
           : strcmp(resource, "services") == 0             ? fill_ports(object)
                                                           : 0;
}
