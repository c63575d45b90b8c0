/* Services. See validate.h. */
#include "api/validate/validate.h"

#include "api/validate/say.h"
#include "base/doc.h"
#include "job/text.h"

#include <stdio.h>
#include <string.h>

enum { PORT_KEY_BYTES = 64 };

/* ---- ports ---- */

/* Names and numbers that only one port of a service may have. */
struct taken {
    json_t *names;
    json_t *numbers;
};

static void check_port_name(struct check *c, const json_t *port, bool several, struct taken *taken)
{
    const char *name = doc_text(port, "name", "");
    if (!*name && several) {
        say_required(c, "name", NULL);
    } else if (*name && json_object_get(taken->names, name)) {
        say_duplicate(c, "name", name);
    } else if (*name) {
        json_object_set_new(taken->names, name, json_true());
    }
    say_unless_formed(c, port, "name", SCHEMA_LABEL);
}

static void check_port_number(struct check *c, const json_t *port, struct taken *taken)
{
    char key[PORT_KEY_BYTES];
    (void)snprintf(key, sizeof key, "%.20s/%lld", doc_text(port, "protocol", "TCP"),
                   (long long)doc_int(port, "port", 0));
    if (json_object_get(taken->numbers, key)) {
        say_duplicate(c, NULL, key);
    }
    json_object_set_new(taken->numbers, key, json_true());
}

static void check_port(struct check *c, const json_t *spec, const json_t *port, bool several,
                       struct taken *taken)
{
    const json_t *target = doc_at(port, "targetPort");
    check_port_name(c, port, several, taken);
    check_port_number(c, port, taken);
    say_unless_port(c, port, "port");
    say_unless_one_of(c, port, "protocol", "SCTP TCP UDP");
    say_unless_number_or_name_of_port(c, "targetPort", target ? target : doc_at(port, "port"));
    if (doc_int(port, "nodePort", 0) != 0 &&
        strcmp(doc_text(spec, "type", "ClusterIP"), "ClusterIP") == 0) {
        say_forbidden(c, "nodePort", "may not be used when `type` is 'ClusterIP'");
    }
}

static void check_ports(struct check *c, const json_t *spec)
{
    const json_t *ports = doc_at(spec, "ports");
    struct taken taken = {json_object(), json_object()};
    size_t i;
    json_t *port;
    size_t top = check_enter(c, "ports");
    json_array_foreach (ports, i, port) {
        size_t mark = check_enter_index(c, i);
        check_port(c, spec, port, json_array_size(ports) > 1, &taken);
        check_leave(c, mark);
    }
    check_leave(c, top);
    json_decref(taken.names);
    json_decref(taken.numbers);
}

/* ---- addresses ---- */

static const char *cluster_address(const json_t *spec)
{
    const char *first = doc_text(spec, "clusterIPs.0", "");
    return doc_text(spec, "clusterIP", first);
}

static bool is_headless(const json_t *spec)
{
    return strcmp(cluster_address(spec), "None") == 0;
}

/* Called for new services only: this machine filled in the address of a stored service, whatever
 * its type. */
static void check_address(struct check *c, const json_t *spec, const char *type)
{
    const char *address = cluster_address(spec);
    char why[64];
    size_t mark = c->path.used;
    if (strcmp(type, "ExternalName") == 0) {
        if (*address) {
            say_forbidden(c, "clusterIPs", "may not be set for ExternalName services");
        }
        return;
    }
    check_enter(c, "clusterIPs");
    check_enter_index(c, 0);
    if (is_headless(spec)) {
        (void)snprintf(why, sizeof why, "may not be set to 'None' for %.20s services", type);
        if (strcmp(type, "NodePort") == 0 || strcmp(type, "LoadBalancer") == 0) {
            say_invalid_text(c, NULL, address, why);
        }
    } else if (*address) {
        say_unless_address(c, NULL, address);
    }
    check_leave(c, mark);
}

static void check_external(struct check *c, const json_t *spec, const char *type)
{
    size_t i;
    json_t *address;
    size_t top = check_enter(c, "externalIPs");
    json_array_foreach (doc_at(spec, "externalIPs"), i, address) {
        size_t mark = check_enter_index(c, i);
        say_unless_address(c, NULL, json_is_string(address) ? json_string_value(address) : "");
        check_leave(c, mark);
    }
    check_leave(c, top);
    if (strcmp(type, "ExternalName") != 0) {
        return;
    }
    if (!*doc_text(spec, "externalName", "")) {
        say_required(c, "externalName", NULL);
    }
    say_unless_formed(c, spec, "externalName", SCHEMA_SUBDOMAIN);
}

static void check_families(struct check *c, const json_t *spec)
{
    size_t i;
    json_t *family;
    size_t top = check_enter(c, "ipFamilies");
    json_array_foreach (doc_at(spec, "ipFamilies"), i, family) {
        const char *text = json_is_string(family) ? json_string_value(family) : "";
        if (strcmp(text, "IPv4") != 0 && strcmp(text, "IPv6") != 0) {
            size_t mark = check_enter_index(c, i);
            check_say(c, JOB_ERROR, NULL, NULL,
                      "Unsupported value: \"%.100s\": supported values: \"IPv4\", \"IPv6\"", text);
            check_reason(c, "FieldValueNotSupported");
            check_leave(c, mark);
        }
    }
    check_leave(c, top);
    say_unless_one_of(c, spec, "ipFamilyPolicy", "PreferDualStack RequireDualStack SingleStack");
}

/* ---- the whole ---- */

static void check_spec(struct check *c, const json_t *before, const json_t *spec)
{
    const char *type = doc_text(spec, "type", "ClusterIP");
    bool needs_ports = !is_headless(spec) && strcmp(type, "ExternalName") != 0;
    size_t mark = check_enter(c, "spec");
    if (needs_ports && json_array_size(doc_at(spec, "ports")) == 0) {
        say_required(c, "ports", NULL);
    }
    check_ports(c, spec);
    say_unless_labels(c, "selector", doc_at(spec, "selector"));
    say_unless_one_of(c, spec, "sessionAffinity", "ClientIP None");
    say_unless_one_of(c, spec, "type", "ClusterIP ExternalName LoadBalancer NodePort");
    say_unless_one_of(c, spec, "internalTrafficPolicy", "Cluster Local");
    check_external(c, spec, type);
    check_families(c, spec);
    if (!before) {
        check_address(c, spec, type);
    }
    check_leave(c, mark);
}

/* A service's name is a DNS label: it has no dots. Faults that a name of any kind can have were
 * reported before. */
static void check_name(struct check *c, const json_t *service)
{
    const char *name = doc_text(service, "metadata.name", "");
    const char *fault = job_text_fault(SCHEMA_LABEL, name);
    if (fault && !job_text_fault(SCHEMA_SUBDOMAIN, name)) {
        size_t mark = check_enter(c, "metadata");
        say_invalid_text(c, "name", name, fault);
        check_leave(c, mark);
    }
}

void validate_service(const json_t *before, const json_t *object, struct job_problems *problems)
{
    struct check c;
    check_init(&c, NULL, problems);
    check_name(&c, object);
    check_spec(&c, before, doc_at(object, "spec"));
    check_done(&c);
}
