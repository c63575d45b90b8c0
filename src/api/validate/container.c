/* Containers of a pod. See validate.h. */
#include "api/validate/pod.h"
#include "api/validate/say.h"

#include "base/doc.h"
#include "base/quantity.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { HOST_PORT_BYTES = 128 };

/* ---- ports ---- */

static void check_host_port(struct check *c, const json_t *pod, const json_t *port,
                            json_t *host_ports)
{
    char key[HOST_PORT_BYTES];
    int64_t number = doc_int(port, "hostPort", 0);
    if (number == 0) {
        return;
    }
    (void)snprintf(key, sizeof key, "%.20s/%.60s/%lld", doc_text(port, "protocol", "TCP"),
                   doc_text(port, "hostIP", ""), (long long)number);
    if (json_object_get(host_ports, key)) {
        say_duplicate(c, "hostPort", key);
    }
    json_object_set_new(host_ports, key, json_true());
    if (doc_bool(pod, "hostNetwork", false) && number != doc_int(port, "containerPort", 0)) {
        say_invalid(c, "hostPort", doc_at(port, "hostPort"),
                    "must match `containerPort` when `hostNetwork` is true");
    }
}

static void check_ports(struct check *c, const json_t *pod, const json_t *container,
                        json_t *host_ports)
{
    size_t i;
    json_t *port;
    size_t top = check_enter(c, "ports");
    json_array_foreach (doc_at(container, "ports"), i, port) {
        size_t mark = check_enter_index(c, i);
        check_host_port(c, pod, port, host_ports);
        check_leave(c, mark);
    }
    check_leave(c, top);
}

/* ---- variables ---- */

static void check_variable(struct check *c, const json_t *variable)
{
    size_t mark = check_enter(c, "valueFrom");
    check_enter(c, "resourceFieldRef");
    say_unless_one_of(c, doc_at(variable, "valueFrom.resourceFieldRef"), "resource",
                      "limits.cpu limits.ephemeral-storage limits.memory requests.cpu "
                      "requests.ephemeral-storage requests.memory");
    check_leave(c, mark);
}

static void check_environment(struct check *c, const json_t *container)
{
    size_t i;
    json_t *each;
    size_t top = check_enter(c, "env");
    json_array_foreach (doc_at(container, "env"), i, each) {
        size_t mark = check_enter_index(c, i);
        check_variable(c, each);
        check_leave(c, mark);
    }
    check_leave(c, top);
    json_array_foreach (doc_at(container, "envFrom"), i, each) {
        if (!doc_at(each, "configMapRef") && !doc_at(each, "secretRef")) {
            say_invalid_text(c, "envFrom", "",
                             "must specify one of: `configMapRef` or `secretRef`");
        }
    }
}

/* ---- resources ---- */

static double amount_of(const json_t *value)
{
    double amount = json_number_value(value);
    return json_is_string(value) && !quantity_read(json_string_value(value), &amount) ? -1 : amount;
}

/* Devices cannot be overcommitted: a container needs a limit for them, equal to its request. */
static void check_devices(struct check *c, const json_t *container)
{
    json_t *limits = doc_at(container, "resources.limits");
    const char *name;
    json_t *asked;
    char must[HOST_PORT_BYTES];
    size_t mark = check_enter(c, "resources");
    json_object_foreach (doc_at(container, "resources.requests"), name, asked) {
        json_t *limit = json_object_get(limits, name);
        if (!strchr(name, '/')) {
            continue;
        }
        (void)snprintf(must, sizeof must, "must be equal to %.90s limit", name);
        if (!limit) {
            say_required(c, "limits", "Limit must be set for non overcommitable resources");
        } else if (amount_of(limit) > amount_of(asked)) { /* a higher one was reported before */
            say_invalid(c, "requests", asked, must);
        }
    }
    check_leave(c, mark);
}

/* ---- the whole ---- */

static void check_image(struct check *c, const json_t *container)
{
    const char *image = doc_text(container, "image", "");
    size_t length = strlen(image);
    if (length > 0 &&
        (isspace((unsigned char)image[0]) || isspace((unsigned char)image[length - 1]))) {
        say_invalid_text(c, "image", image, "must not have leading or trailing whitespace");
    }
}

static void check_rights(struct check *c, const json_t *container)
{
    const json_t *context = doc_at(container, "securityContext");
    if (doc_bool(context, "privileged", false) &&
        !doc_bool(context, "allowPrivilegeEscalation", true)) {
        say_invalid(c, "securityContext", context,
                    "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
}

void validate_container(struct check *c, const json_t *pod, const json_t *container, bool init,
                        json_t *host_ports)
{
    bool lasts = !init || strcmp(doc_text(container, "restartPolicy", ""), "Always") == 0;
    check_image(c, container);
    check_ports(c, pod, container, host_ports);
    check_environment(c, container);
    check_devices(c, container);
    check_rights(c, container);
    validate_probes(c, container, lasts);
    say_unless_one_of(c, container, "restartPolicy", "Always Never OnFailure");
}
