/* Probes and hooks of a container, which this machine does not run. See validate.h. */
#include "api/validate/pod.h"
#include "api/validate/say.h"

#include "base/doc.h"

#include <string.h>

static const char *const handlers[] = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"};

enum { HANDLERS = sizeof handlers / sizeof handlers[0] };

static void check_handler(struct check *c, const char *kind, const json_t *handler)
{
    const json_t *port = doc_at(handler, "port");
    size_t mark = check_enter(c, kind);
    if (strcmp(kind, "exec") == 0 && json_array_size(doc_at(handler, "command")) == 0) {
        say_required(c, "command", NULL);
    } else if (strcmp(kind, "httpGet") == 0 || strcmp(kind, "tcpSocket") == 0) {
        say_unless_number_or_name_of_port(c, "port", port);
    } else if (strcmp(kind, "grpc") == 0) {
        say_unless_port(c, handler, "port");
    }
    say_unless_one_of(c, handler, "scheme", "HTTP HTTPS");
    check_leave(c, mark);
}

/* A probe or hook must use exactly one way. */
static void check_ways(struct check *c, const json_t *holder)
{
    int count = 0;
    for (int i = 0; i < HANDLERS; i++) {
        const json_t *handler = doc_at(holder, handlers[i]);
        if (handler && count > 0) {
            say_forbidden(c, handlers[i], "may not specify more than 1 handler type");
        } else if (handler) {
            check_handler(c, handlers[i], handler);
        }
        count += handler != NULL;
    }
    if (count == 0) {
        say_required(c, NULL, "must specify a handler type");
    }
}

static void check_numbers(struct check *c, const json_t *probe, bool once)
{
    static const char *const numbers[] = {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                          "successThreshold", "failureThreshold"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const json_t *number = doc_at(probe, numbers[i]);
        if (json_integer_value(number) < 0) {
            say_invalid(c, numbers[i], number, "must be greater than or equal to 0");
        }
    }
    if (once && doc_int(probe, "successThreshold", 1) > 1) {
        say_invalid(c, "successThreshold", doc_at(probe, "successThreshold"), "must be 1");
    }
}

static void check_probe(struct check *c, const json_t *container, const char *key, bool lasts)
{
    const json_t *probe = doc_at(container, key);
    size_t mark = check_enter(c, key);
    if (probe && !lasts) {
        say_forbidden(c, NULL, "may not be set for init containers without restartPolicy=Always");
    } else if (probe) {
        check_ways(c, probe);
        check_numbers(c, probe, strcmp(key, "readinessProbe") != 0);
    }
    check_leave(c, mark);
}

static void check_hooks(struct check *c, const json_t *container, bool lasts)
{
    static const char *const hooks[] = {"postStart", "preStop"};
    const json_t *lifecycle = doc_at(container, "lifecycle");
    size_t top = check_enter(c, "lifecycle");
    if (lifecycle && !lasts) {
        say_forbidden(c, NULL, "may not be set for init containers without restartPolicy=Always");
    }
    for (size_t i = 0; lasts && i < sizeof hooks / sizeof hooks[0]; i++) {
        const json_t *hook = doc_at(lifecycle, hooks[i]);
        size_t mark = check_enter(c, hooks[i]);
        if (hook) {
            check_ways(c, hook);
        }
        check_leave(c, mark);
    }
    check_leave(c, top);
}

void validate_probes(struct check *c, const json_t *container, bool lasts)
{
    check_probe(c, container, "livenessProbe", lasts);
    check_probe(c, container, "readinessProbe", lasts);
    check_probe(c, container, "startupProbe", lasts);
    check_hooks(c, container, lasts);
}
