/* Pods. See validate.h. */
#include "api/validate/pod.h"
#include "api/validate/validate.h"

#include "api/validate/say.h"
#include "base/doc.h"
#include "job/text.h"

#include <string.h>

/* ---- volumes ---- */

static void check_items(struct check *c, const json_t *source)
{
    size_t i;
    json_t *item;
    size_t top = check_enter(c, "items");
    json_array_foreach (doc_at(source, "items"), i, item) {
        size_t mark = check_enter_index(c, i);
        say_unless_formed(c, item, "path", SCHEMA_INSIDE);
        check_leave(c, mark);
    }
    check_leave(c, top);
}

static bool goes_up(const char *path)
{
    const char *fault = job_text_fault(SCHEMA_INSIDE, path + strspn(path, "/"));
    return fault && strstr(fault, "'..'");
}

static void check_volume(struct check *c, const json_t *volume)
{
    static const char *const of_items[] = {"configMap", "secret"};
    const json_t *folder = doc_at(volume, "hostPath");
    size_t mark = check_enter(c, "hostPath");
    if (goes_up(doc_text(folder, "path", ""))) {
        say_invalid_text(c, "path", doc_text(folder, "path", ""), "must not contain '..'");
    }
    say_unless_one_of(c, folder, "type",
                      "BlockDevice CharDevice Directory DirectoryOrCreate File FileOrCreate "
                      "Socket");
    check_leave(c, mark);
    for (size_t i = 0; i < sizeof of_items / sizeof of_items[0]; i++) {
        check_enter(c, of_items[i]);
        check_items(c, doc_at(volume, of_items[i]));
        check_leave(c, mark);
    }
}

/* ---- where it runs ---- */

static void check_toleration(struct check *c, const json_t *toleration)
{
    const char *operator= doc_text(toleration, "operator", "");
    bool exists = strcmp(operator, "Exists") == 0;
    say_unless_one_of(c, toleration, "operator", "Equal Exists");
    say_unless_one_of(c, toleration, "effect", "NoSchedule PreferNoSchedule NoExecute");
    say_unless_formed(c, toleration, "key", SCHEMA_QUALIFIED);
    if (!*doc_text(toleration, "key", "") && !exists) {
        say_invalid_text(c, "operator", operator,
                         "operator must be Exists when `key` is empty, which means \"match all "
                         "values and all keys\"");
    }
    if (exists && *doc_text(toleration, "value", "")) {
        say_invalid_text(c, "operator", operator,
                         "value must be empty when `operator` is 'Exists'");
    }
}

static void check_gate(struct check *c, const json_t *gate, json_t *seen)
{
    const char *name = doc_text(gate, "name", "");
    if (!*name) {
        say_required(c, "name", NULL);
    } else if (json_object_get(seen, name)) {
        say_duplicate(c, NULL, name);
    }
    json_object_set_new(seen, name, json_true());
}

static void check_spread(struct check *c, const json_t *spread)
{
    if (doc_int(spread, "maxSkew", 0) <= 0) {
        say_invalid(c, "maxSkew", doc_at(spread, "maxSkew"), "must be greater than zero");
    }
    if (!*doc_text(spread, "topologyKey", "")) {
        say_required(c, "topologyKey", "can not be empty");
    }
    say_unless_one_of(c, spread, "whenUnsatisfiable", "DoNotSchedule ScheduleAnyway");
}

static void check_alias(struct check *c, const json_t *alias)
{
    say_unless_address(c, "ip", doc_text(alias, "ip", ""));
}

static void check_names(struct check *c, const json_t *spec)
{
    say_unless_formed(c, spec, "nodeName", SCHEMA_SUBDOMAIN);
    say_unless_formed(c, spec, "hostname", SCHEMA_LABEL);
    say_unless_formed(c, spec, "subdomain", SCHEMA_LABEL);
    say_unless_formed(c, spec, "serviceAccountName", SCHEMA_SUBDOMAIN);
    say_unless_labels(c, "nodeSelector", doc_at(spec, "nodeSelector"));
    say_unless_one_of(c, spec, "dnsPolicy", "ClusterFirstWithHostNet ClusterFirst Default None");
    if (strcmp(doc_text(spec, "dnsPolicy", ""), "None") == 0 && !doc_at(spec, "dnsConfig")) {
        say_required(c, "dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None");
    }
    const char *system = doc_text(spec, "os.name", "");
    if (*system && strcmp(system, "linux") != 0 && strcmp(system, "windows") != 0) {
        check_say(c, JOB_ERROR, "os", NULL,
                  "Unsupported value: \"%.100s\": supported values: \"linux\", \"windows\"",
                  system);
        check_reason(c, "FieldValueNotSupported");
    }
}

/* ---- the whole ---- */

static void check_each(struct check *c, const json_t *spec, const char *key,
                       void (*check_one)(struct check *c, const json_t *item))
{
    size_t i;
    json_t *item;
    size_t top = check_enter(c, key);
    json_array_foreach (doc_at(spec, key), i, item) {
        size_t mark = check_enter_index(c, i);
        check_one(c, item);
        check_leave(c, mark);
    }
    check_leave(c, top);
}

static void check_gates(struct check *c, const json_t *spec)
{
    json_t *seen = json_object();
    size_t i;
    json_t *gate;
    size_t top = check_enter(c, "schedulingGates");
    json_array_foreach (doc_at(spec, "schedulingGates"), i, gate) {
        size_t mark = check_enter_index(c, i);
        check_gate(c, gate, seen);
        check_leave(c, mark);
    }
    check_leave(c, top);
    json_decref(seen);
}

static void check_containers(struct check *c, const json_t *spec, const char *key, bool init,
                             json_t *host_ports)
{
    size_t i;
    json_t *container;
    size_t top = check_enter(c, key);
    json_array_foreach (doc_at(spec, key), i, container) {
        size_t mark = check_enter_index(c, i);
        validate_container(c, spec, container, init, host_ports);
        check_leave(c, mark);
    }
    check_leave(c, top);
}

/* Checks only new pods. A pod that a job made must not be refused later because of its template,
 * and the changes that are allowed in a pod are not checked here. */
void validate_pod(const json_t *before, const json_t *object, struct job_problems *problems)
{
    const json_t *spec = doc_at(object, "spec");
    struct check c;
    if (before) {
        return;
    }
    check_init(&c, NULL, problems);
    check_enter(&c, "spec");
    json_t *host_ports = json_object();
    check_containers(&c, spec, "containers", false, host_ports);
    check_containers(&c, spec, "initContainers", true, NULL); /* they run one by one */
    json_decref(host_ports);
    check_each(&c, spec, "volumes", check_volume);
    check_each(&c, spec, "tolerations", check_toleration);
    check_each(&c, spec, "topologySpreadConstraints", check_spread);
    check_each(&c, spec, "hostAliases", check_alias);
    check_gates(&c, spec);
    check_names(&c, spec);
    check_done(&c);
}
