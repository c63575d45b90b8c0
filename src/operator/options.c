/* See options.h. */
#include "operator/options.h"

#include "base/text.h"
#include "base/time/duration.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_MAX = 65535, NUMBER_MAX = 1000000, NAME_BYTES = 64 };

static const int64_t LIFE_MS_MIN = 10000;
static const int64_t LIFE_MS_MAX = INT64_C(3650) * 24 * 3600 * 1000;

enum use { USED, UNUSED, REFUSED };

struct flag {
    enum use use;
    const char *name;
    const char *argument; /* NULL: a switch */
    const char *fallback;
    const char *help; /* or why it is not used */
};

#define OPTION(name, letter, argument, fallback, help) {USED, name, argument, fallback, help},
#define UNUSED(name, argument, why) {UNUSED, name, argument, NULL, why},
#define REFUSED(name, argument, why) {REFUSED, name, argument, NULL, why},
static const struct flag flags[] = {
#include "kube/config/operator_flags.def"
#include "kube/config/upstream_flags.def"
};
#undef OPTION
#undef UNUSED
#undef REFUSED

enum { FLAGS = sizeof flags / sizeof flags[0] };

/* ---- words to values ---- */

static int unknown_flag(const char *name, int length, struct muster_err *err)
{
    const char *known[FLAGS];
    char given[NAME_BYTES];
    snprintf(given, sizeof given, "%.*s", length, name);
    for (int i = 0; i < FLAGS; i++) {
        known[i] = flags[i].name;
    }
    const char *near = text_nearest(given, known, FLAGS);
    return muster_fail(err, MUSTER_EINVAL, "there is no flag --%s%s%s%s (muster operator --help)",
                       given, near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

static int find(const char *name, size_t length, struct muster_err *err)
{
    for (int i = 0; i < FLAGS; i++) {
        if (strlen(flags[i].name) == length && strncmp(flags[i].name, name, length) == 0) {
            return i;
        }
    }
    return unknown_flag(name, (int)length, err);
}

static int read_word(int argc, char **argv, int *at, const char **values, struct muster_err *err)
{
    const char *word = argv[*at];
    if (word[0] != '-' || word[1] == '\0') {
        return muster_fail(err, MUSTER_EINVAL, "a flag is expected: \"%.100s\"", word);
    }
    const char *name = word + (word[1] == '-' ? 2 : 1);
    size_t length = strcspn(name, "=");
    int i = find(name, length, err);
    if (i < 0) {
        return i;
    }
    if (name[length] == '=') {
        values[i] = name + length + 1;
    } else if (!flags[i].argument) {
        values[i] = "true";
    } else if (++*at < argc) {
        values[i] = argv[*at];
    } else {
        return muster_fail(err, MUSTER_EINVAL, "--%s needs a value", flags[i].name);
    }
    return 0;
}

static const char *value_of(const char *const *values, const char *name)
{
    int i = find(name, strlen(name), NULL);
    return values[i];
}

static int read_number(const char *const *values, const char *name, int least, int *ret,
                       struct muster_err *err)
{
    const char *text = value_of(values, name);
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < least || number > NUMBER_MAX) {
        return muster_fail(err, MUSTER_EINVAL,
                           "--%s: a number from %d to %d is expected: \"%.40s\"", name, least,
                           NUMBER_MAX, text);
    }
    *ret = (int)number;
    return 0;
}

static int read_choice(const char *const *values, const char *name, const char *const *choices,
                       const char **ret, struct muster_err *err)
{
    const char *text = value_of(values, name);
    for (size_t i = 0; choices[i]; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *ret = choices[i];
            return 0;
        }
    }
    const char *argument = flags[find(name, strlen(name), NULL)].argument;
    return muster_fail(err, MUSTER_EINVAL, "--%s: %s is expected: \"%.40s\"", name, argument, text);
}

static int read_lost_nodes(const char *const *values, struct operator_options *o,
                           struct muster_err *err)
{
    const char *text = value_of(values, "lost-nodes");
    char *end;
    long seconds = strtol(text, &end, 10);
    bool is_number = end != text && *end == '\0' && 1 <= seconds && seconds <= NUMBER_MAX;
    o->watch_nodes = is_number || strcmp(text, "tainted") == 0;
    o->lost_after_ms = is_number ? seconds * 1000 : 0;
    return o->watch_nodes || strcmp(text, "ignore") == 0
               ? 0
               : muster_fail(err, MUSTER_EINVAL,
                             "--lost-nodes: ignore, tainted or a number of seconds from 1 to %d is "
                             "expected: \"%.40s\"",
                             NUMBER_MAX, text);
}

/* Any name but Volcano's is the name of a scheduler with scheduler-plugins, as in upstream. */
static struct control_gang read_gang(const char *const *values)
{
    const char *name = value_of(values, "gang-scheduler-name");
    bool none = !*name || strcasecmp(name, "none") == 0;
    bool volcano = strcmp(name, "volcano") == 0;
    return (struct control_gang){.kind = none      ? CONTROL_GANG_NONE
                                         : volcano ? CONTROL_GANG_VOLCANO
                                                   : CONTROL_GANG_PLUGINS,
                                 .scheduler = name};
}

static int read_switch(const char *const *values, const char *name, bool *ret,
                       struct muster_err *err)
{
    const char *text = value_of(values, name);
    *ret = text && strcmp(text, "true") == 0;
    if (text && !*ret && strcmp(text, "false") != 0) {
        return muster_fail(err, MUSTER_EINVAL, "--%s: true or false is expected: \"%.40s\"", name,
                           text);
    }
    return 0;
}

/* Refuses the other kinds of the training-operator. */
static int check_scheme(const char *kind, struct muster_err *err)
{
    if (kind && strcasecmp(kind, "pytorchjob") != 0) {
        return muster_fail(err, MUSTER_EINVAL,
                           "--enable-scheme=%.40s: this operator runs PyTorchJobs only; keep the "
                           "training-operator for %.40s, with its --enable-scheme",
                           kind, kind);
    }
    return 0;
}

/* Reads controller-runtime's log level: a name, or a number; a larger number logs more. */
static int read_level(const char **values, const char **ret, struct muster_err *err)
{
    static const char *const levels[] = {"debug", "info", "error", NULL};
    const char **value = &values[find("zap-log-level", strlen("zap-log-level"), NULL)];
    bool number =
        **value >= '1' && **value <= '9' && strspn(*value, "0123456789") == strlen(*value);
    *value = number ? "debug" : strcmp(*value, "panic") == 0 ? "error" : *value;
    return read_choice((const char *const *)values, "zap-log-level", levels, ret, err);
}

/* Keeps the last value of each flag; lists the flags that have no use here. */
static int read_words(int argc, char **argv, const char **values, struct operator_options *o,
                      struct muster_err *err)
{
    int r = 0;
    for (int at = 1; at < argc && r == 0; at++) {
        r = read_word(argc, argv, &at, values, err);
        r = r < 0 ? r : check_scheme(value_of(values, "enable-scheme"), err);
    }
    for (int i = 0; i < FLAGS && r == 0; i++) {
        const struct flag *f = &flags[i];
        if (f->use == REFUSED && values[i] && *values[i] && strcasecmp(values[i], "none") != 0) {
            r = muster_fail(err, MUSTER_EINVAL, "--%s=%.40s: %s", f->name, values[i], f->help);
        } else if (f->use == UNUSED && values[i]) {
            assert(o->unused_count < OPERATOR_UNUSED_MAX);
            o->unused[o->unused_count].flag = f->name;
            o->unused[o->unused_count++].why = f->help;
        }
        values[i] = values[i] ? values[i] : f->fallback;
    }
    return r;
}

static int read_hooks(const char *const *values, struct hooks_flags *ret, struct muster_err *err)
{
    const char *life = value_of(values, "webhook-certificate-life");
    ret->on = value_of(values, "webhook-server-port") != NULL;
    ret->host = value_of(values, "webhook-server-host");
    ret->service = value_of(values, "webhook-service-name");
    ret->secret = value_of(values, "webhook-secret-name");
    ret->names = value_of(values, "webhook-names");
    ret->cert_path = value_of(values, "webhook-cert-path");
    ret->images_path = value_of(values, "image-allow-list");
    if (duration_read(life, &ret->life_ms) < 0 || ret->life_ms < LIFE_MS_MIN ||
        ret->life_ms > LIFE_MS_MAX) {
        return muster_fail(err, MUSTER_EINVAL,
                           "--webhook-certificate-life: 10s to 3650d is expected: \"%.40s\"", life);
    }
    return ret->on ? read_number(values, "webhook-server-port", 0, &ret->port, err) : 0;
}

int operator_options_read(int argc, char **argv, struct operator_options *ret,
                          struct muster_err *err)
{
    static const char *const encoders[] = {"json", "console", NULL};
    const char *values[FLAGS] = {0};
    const char *encoder = encoders[0];
    const char *namespace = getenv("KUBEFLOW_NAMESPACE");
    struct operator_options o = {0};
    int r = read_words(argc, argv, values, &o, err);
    r = r < 0 ? r : read_number(values, "kube-api-qps", 1, &o.qps, err);
    r = r < 0 ? r : read_number(values, "kube-api-burst", 1, &o.burst, err);
    r = r < 0 ? r : read_number(values, "controller-threads", 1, &o.side_by_side, err);
    r = r < 0 ? r : read_lost_nodes(values, &o, err);
    r = r < 0 ? r : read_level(values, &o.log_level, err);
    r = r < 0 ? r : read_switch(values, "leader-elect", &o.leader_elect, err);
    r = r < 0 ? r : read_choice(values, "zap-encoder", encoders, &encoder, err);
    r = r < 0 ? r : read_hooks(values, &o.hooks, err);
    if (r < 0) {
        return r;
    }
    o.gang = read_gang(values);
    o.kubeconfig = value_of(values, "kubeconfig");
    o.context = value_of(values, "context");
    o.namespace = value_of(values, "namespace");
    o.namespace = o.namespace ? o.namespace : namespace ? namespace : "";
    o.lease = value_of(values, "leader-election-id");
    o.metrics_address = value_of(values, "metrics-bind-address");
    o.health_address = value_of(values, "health-probe-bind-address");
    o.logs_json = encoder == encoders[0];
    *ret = o;
    return 0;
}

/* ---- addresses ---- */

int operator_address_read(const char *flag, const char *text, char host[OPERATOR_HOST_BYTES],
                          int *ret_port, struct muster_err *err)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    size_t length = colon ? (size_t)(colon - text) : 0;
    if (strcmp(text, "0") == 0) {
        host[0] = '\0';
        return 0;
    }
    if (!colon || end == colon + 1 || *end || port < 0 || port > PORT_MAX ||
        length >= OPERATOR_HOST_BYTES) {
        return muster_fail(
            err, MUSTER_EINVAL,
            "--%s: HOST:PORT with an IPv4 address, :PORT or 0 is expected: \"%.60s\"", flag, text);
    }
    (void)snprintf(host, OPERATOR_HOST_BYTES, "%.*s", length ? (int)length : 7,
                   length ? text : "0.0.0.0");
    *ret_port = (int)port;
    return 0;
}

void operator_options_help(const char *program)
{
    printf("usage: %s [FLAG…]\n\nThe controller of PyTorchJobs on a Kubernetes cluster.\n\n",
           program);
    for (int i = 0; i < FLAGS && flags[i].use == USED; i++) {
        const struct flag *f = &flags[i];
        printf("  --%s%s%s\n        %s%s%s%s\n", f->name, f->argument ? " " : "",
               f->argument ? f->argument : "", f->help, f->fallback ? " (default: " : "",
               f->fallback ? f->fallback : "", f->fallback ? ")" : "");
    }
    printf("\nOf the training-operator's other flags these are taken, and mean nothing here:\n");
    for (int i = 0; i < FLAGS; i++) {
        if (flags[i].use == UNUSED) {
            printf("  --%s\n        %s\n", flags[i].name, flags[i].help);
        }
    }
}
