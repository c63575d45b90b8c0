/* The cells, as kube-apiserver's printers make them (pkg/printers/internalversion); pods have a
 * file of their own. See columns.h.
 *
 * Layer: services, pure.
 */
#include "api/columns/columns.h"

#include "base/doc.h"
#include "base/time/age.h"
#include "base/time/timestamp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES_MAX = 4096 };

json_t *column_cell(const struct column *column, const json_t *object, int64_t now_unix_ms)
{
    if (column->path) {
        json_t *value = doc_at(object, column->path);
        return json_is_string(value) || json_is_integer(value) ? json_incref(value)
                                                               : json_string("");
    }
    struct buf text;
    buf_init(&text, CELL_BYTES_MAX);
    column->cell(object, now_unix_ms, &text);
    json_t *cell = strcmp(column->type, "integer") == 0
                       ? json_integer(strtoll(buf_str(&text), NULL, 10))
                       : json_string(buf_str(&text));
    buf_done(&text);
    return cell;
}

static void since(const char *stamp, int64_t now_unix_ms, struct buf *out)
{
    int64_t then = timestamp_read(stamp);
    if (then == TIMESTAMP_NONE) {
        buf_text(out, "<unknown>");
    } else {
        char age[AGE_BYTES];
        buf_text(out, age_text(now_unix_ms - then, age));
    }
}

void column_age(const json_t *object, int64_t now_unix_ms, struct buf *out)
{
    since(doc_text(object, "metadata.creationTimestamp", NULL), now_unix_ms, out);
}

/* ---- jobs: upstream's additionalPrinterColumns, and what users ask next ---- */

static void cell_job_state(const json_t *job, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    const json_t *conditions = doc_at(job, "status.conditions");
    size_t count = json_array_size(conditions);
    if (count > 0) {
        buf_text(out, doc_text(json_array_get(conditions, count - 1), "type", ""));
    }
}

const struct column columns_job[] = {
    {"Name", "string", 0, "metadata.name", NULL},
    {"State", "string", 0, NULL, cell_job_state},
    {"Age", "string", 0, NULL, column_age},
    {0},
};

/* ---- services ---- */

static void cell_ports(const json_t *service, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    const json_t *ports = doc_at(service, "spec.ports");
    size_t i;
    json_t *port;
    json_array_foreach (ports, i, port) {
        buf_format(out, "%s%" PRId64 "/%s", i ? "," : "", doc_int(port, "port", 0),
                   doc_text(port, "protocol", "TCP"));
    }
    if (json_array_size(ports) == 0) {
        buf_text(out, "<none>");
    }
}

static void cell_external_ip(const json_t *service, int64_t now_unix_ms, struct buf *out)
{
    (void)service;
    (void)now_unix_ms;
    buf_text(out, "<none>");
}

static void cell_service_type(const json_t *service, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    buf_text(out, doc_text(service, "spec.type", "ClusterIP"));
}

static void cell_selector(const json_t *service, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    const char *key;
    json_t *value;
    const char *comma = "";
    json_object_foreach (doc_at(service, "spec.selector"), key, value) {
        const char *text = json_string_value(value);
        buf_format(out, "%s%s=%s", comma, key, text ? text : "");
        comma = ",";
    }
    if (!*comma) {
        buf_text(out, "<none>");
    }
}

const struct column columns_service[] = {
    {"Name", "string", 0, "metadata.name", NULL},
    {"Type", "string", 0, NULL, cell_service_type},
    {"Cluster-IP", "string", 0, "spec.clusterIP", NULL},
    {"External-IP", "string", 0, NULL, cell_external_ip},
    {"Port(s)", "string", 0, NULL, cell_ports},
    {"Age", "string", 0, NULL, column_age},
    {"Selector", "string", 1, NULL, cell_selector},
    {0},
};

/* ---- events ---- */

static void cell_last_seen(const json_t *event, int64_t now_unix_ms, struct buf *out)
{
    const char *stamp = doc_text(event, "lastTimestamp", NULL);
    if (!stamp) {
        stamp = doc_text(event, "eventTime", doc_text(event, "metadata.creationTimestamp", NULL));
    }
    since(stamp, now_unix_ms, out);
}

static void cell_first_seen(const json_t *event, int64_t now_unix_ms, struct buf *out)
{
    since(doc_text(event, "firstTimestamp", doc_text(event, "metadata.creationTimestamp", NULL)),
          now_unix_ms, out);
}

static void cell_event_object(const json_t *event, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    const char *kind = doc_text(event, "involvedObject.kind", "");
    for (; *kind; kind++) {
        char lower = (char)(*kind >= 'A' && *kind <= 'Z' ? *kind - 'A' + 'a' : *kind);
        buf_add(out, &lower, 1);
    }
    buf_format(out, "/%s", doc_text(event, "involvedObject.name", ""));
}

static void cell_event_source(const json_t *event, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    const char *host = doc_text(event, "source.host", "");
    buf_format(out, "%s%s%s",
               doc_text(event, "source.component", doc_text(event, "reportingComponent", "")),
               *host ? ", " : "", host);
}

const struct column columns_event[] = {
    {"Last Seen", "string", 0, NULL, cell_last_seen},
    {"Type", "string", 0, "type", NULL},
    {"Reason", "string", 0, "reason", NULL},
    {"Object", "string", 0, NULL, cell_event_object},
    {"Subobject", "string", 1, "involvedObject.fieldPath", NULL},
    {"Source", "string", 1, NULL, cell_event_source},
    {"Message", "string", 0, "message", NULL},
    {"First Seen", "string", 1, NULL, cell_first_seen},
    {"Count", "integer", 1, "count", NULL},
    {"Name", "string", 1, "metadata.name", NULL},
    {0},
};

/* ---- claims, configuration, namespaces, nodes ---- */

static void cell_access_modes(const json_t *claim, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    static const char *const modes[][2] = {{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}};
    size_t i;
    json_t *mode;
    const char *comma = "";
    json_array_foreach (doc_at(claim, "spec.accessModes"), i, mode) {
        const char *text = json_string_value(mode);
        for (size_t m = 0; text && m < sizeof modes / sizeof modes[0]; m++) {
            if (strcmp(text, modes[m][0]) == 0) {
                buf_format(out, "%s%s", comma, modes[m][1]);
                comma = ",";
            }
        }
    }
}

const struct column columns_claim[] = {
    {"Name", "string", 0, "metadata.name", NULL},
    {"Status", "string", 0, "status.phase", NULL},
    {"Volume", "string", 0, "spec.volumeName", NULL},
    {"Capacity", "string", 0, "status.capacity.storage", NULL},
    {"Access Modes", "string", 0, NULL, cell_access_modes},
    {"StorageClass", "string", 0, "spec.storageClassName", NULL},
    {"Age", "string", 0, NULL, column_age},
    {"VolumeMode", "string", 1, "spec.volumeMode", NULL},
    {0},
};

static void cell_data_count(const json_t *object, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    buf_format(out, "%zu",
               json_object_size(doc_at(object, "data")) +
                   json_object_size(doc_at(object, "binaryData")));
}

const struct column columns_config_map[] = {
    {"Name", "string", 0, "metadata.name", NULL},
    {"Data", "integer", 0, NULL, cell_data_count},
    {"Age", "string", 0, NULL, column_age},
    {0},
};

const struct column columns_secret[] = {
    {"Name", "string", 0, "metadata.name", NULL},
    {"Type", "string", 0, "type", NULL},
    {"Data", "integer", 0, NULL, cell_data_count},
    {"Age", "string", 0, NULL, column_age},
    {0},
};

const struct column columns_absent[] = {
    {"Name", "string", 0, "metadata.name", NULL},
    {"Age", "string", 0, NULL, column_age},
    {0},
};

const struct column columns_namespace[] = {
    {"Name", "string", 0, "metadata.name", NULL},
    {"Status", "string", 0, "status.phase", NULL},
    {"Age", "string", 0, NULL, column_age},
    {0},
};

static void cell_node_status(const json_t *node, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    const json_t *ready = doc_find(doc_at(node, "status.conditions"), "type", "Ready");
    bool is_true = strcmp(doc_text(ready, "status", ""), "True") == 0;
    buf_text(out, !ready ? "Unknown" : is_true ? "Ready" : "NotReady");
    buf_text(out, json_is_true(doc_at(node, "spec.unschedulable")) ? ",SchedulingDisabled" : "");
}

static void cell_node_roles(const json_t *node, int64_t now_unix_ms, struct buf *out)
{
    (void)node;
    (void)now_unix_ms;
    buf_text(out, "<none>");
}

static void cell_node_ip(const json_t *node, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    const json_t *address = doc_find(doc_at(node, "status.addresses"), "type", "InternalIP");
    buf_text(out, doc_text(address, "address", address ? "" : "<none>"));
}

const struct column columns_node[] = {
    {"Name", "string", 0, "metadata.name", NULL},
    {"Status", "string", 0, NULL, cell_node_status},
    {"Roles", "string", 0, NULL, cell_node_roles},
    {"Age", "string", 0, NULL, column_age},
    {"Version", "string", 0, "status.nodeInfo.kubeletVersion", NULL},
    {"Internal-IP", "string", 1, NULL, cell_node_ip},
    {"OS-Image", "string", 1, "status.nodeInfo.osImage", NULL},
    {"Kernel-Version", "string", 1, "status.nodeInfo.kernelVersion", NULL},
    {"Container-Runtime", "string", 1, "status.nodeInfo.containerRuntimeVersion", NULL},
    {0},
};
