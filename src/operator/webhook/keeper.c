/* See keeper.h. */
#include "operator/webhook/keeper.h"

#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "operator/webhook/keyring.h"
#include "operator/webhook/publish.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKS_PER_MARGIN = 4, /* so that a change spreads well within the margin */
    LOOK_MS_MAX = 60000,
    LOOK_MS_MIN = 200,
    SOON_MS = 1000, /* after an error */
    TROUBLE_BYTES = 600,
};

static const struct cluster_resource secrets = {"", "v1", "secrets", "Secret", true};

struct keeper {
    struct keeper_options options;
    struct rotation_lives lives;
    uv_timer_t timer; /* the next look */
    struct cluster_call *call;
    bool busy;
    struct keyring keyring; /* as read from the Secret, or as being written to it */
    enum rotation_do what;  /* the change that is being written */
    bool published;
    int64_t good_until_unix_ms; /* of the certificate in use, once its list was published */
    struct publish *publish;
    char trouble[TROUBLE_BYTES]; /* "": none */
};

static void look(uv_timer_t *timer);

static int64_t pause_ms(const struct keeper *k)
{
    int64_t every_ms = k->lives.margin_ms / LOOKS_PER_MARGIN;
    every_ms = k->trouble[0] && every_ms > SOON_MS ? SOON_MS : every_ms;
    return every_ms < LOOK_MS_MIN ? LOOK_MS_MIN : every_ms > LOOK_MS_MAX ? LOOK_MS_MAX : every_ms;
}

/* Reports trouble when it begins, and when it ends; then waits for the next look. */
static void rest(struct keeper *k, const char *trouble)
{
    const char *now = trouble ? trouble : "";
    if (strcmp(k->trouble, now) != 0) {
        log_event(*now ? LOG_WARN : LOG_INFO, "webhook.certificates", "%s",
                  *now ? now : "API servers can rely on the webhooks");
        (void)snprintf(k->trouble, sizeof k->trouble, "%s", now);
    }
    uv_timer_start(&k->timer, look, (uint64_t)pause_ms(k), 0);
}

static void fail(struct keeper *k, const char *sentence)
{
    char trouble[TROUBLE_BYTES];
    (void)snprintf(trouble, sizeof trouble, "Secret %s/%s: %s", k->options.namespace,
                   k->options.secret, sentence);
    rest(k, trouble);
}

/* ---- using the keyring of the Secret ---- */

static void on_published(void *arg, const char *sentence)
{
    struct keeper *k = arg;
    struct certificate_span span;
    k->published = sentence == NULL;
    if (k->published && certificate_span(k->keyring.serving.cert_pem, &span, NULL) == 0) {
        k->good_until_unix_ms = span.until_unix_ms;
    }
    rest(k, sentence);
}

static void use(struct keeper *k)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (k->options.use(k->options.arg, &k->keyring.serving, &err) < 0) {
        fail(k, err.text);
    } else {
        publish_begin(k->publish, k->keyring.authorities);
    }
}

/* ---- the Secret ---- */

static void ask(struct keeper *k, enum cluster_verb verb, json_t *body, cluster_done_fn *done)
{
    struct muster_err err = MUSTER_ERR_INIT;
    const struct cluster_request request = {.verb = verb,
                                            .lane = CLUSTER_LANE_JOBS,
                                            .resource = &secrets,
                                            .namespace = k->options.namespace,
                                            .name = k->options.secret,
                                            .body = body};
    k->busy = k->options.cluster->backend->send(k->options.cluster, &request, done, k, &k->call,
                                                &err) == 0;
    if (!k->busy) {
        fail(k, err.text);
    }
}

static void say_change(const struct keeper *k)
{
    static const char *const words[] = {
        [ROTATION_NOTHING] = "nothing",
        [ROTATION_ANEW] = "a new authority and a certificate of it",
        [ROTATION_AUTHORITY] = "a new authority beside the one before",
        [ROTATION_SERVING] = "a new certificate",
        [ROTATION_FORGET] = "the authority before is forgotten",
    };
    log_event(LOG_INFO, "webhook.rotation", "Secret %s/%s: %s", k->options.namespace,
              k->options.secret, words[k->what]);
}

static void on_written(void *arg, const struct cluster_answer *answer)
{
    struct keeper *k = arg;
    k->busy = false;
    if (answer->code == 0) {
        say_change(k);
        k->good_until_unix_ms = k->what == ROTATION_ANEW ? 0 : k->good_until_unix_ms;
        use(k);
    } else if (answer->code == MUSTER_ECONFLICT || answer->code == MUSTER_EEXIST) {
        uv_timer_start(&k->timer, look, 0, 0); /* another replica has written first */
    } else {
        fail(k, answer->message);
    }
}

/* Returns a new reference, NULL when out of memory. `secret` NULL: it does not exist yet. */
static json_t *with_keyring(const struct keeper *k, const json_t *secret)
{
    json_t *body = secret ? json_deep_copy(secret)
                          : json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1", "kind",
                                      "Secret", "metadata", "name", k->options.secret, "namespace",
                                      k->options.namespace);
    json_t *data = keyring_data(&k->keyring);
    if (!body || !data || json_object_set(body, "data", data) != 0) {
        json_decref(body);
        body = NULL;
    }
    json_decref(data);
    return body;
}

static void write_secret(struct keeper *k, const json_t *secret)
{
    json_t *body = with_keyring(k, secret);
    if (body) {
        ask(k, secret ? CLUSTER_REPLACE : CLUSTER_CREATE, body, on_written);
    } else {
        fail(k, "out of memory");
    }
    json_decref(body);
}

/* Decides about the Secret's keyring. `secret` NULL: it does not exist. */
static void go_on(struct keeper *k, const json_t *secret)
{
    struct rotation_facts facts;
    struct keyring read;
    struct muster_err err = MUSTER_ERR_INIT;
    int64_t now_ms = clock_unix_ms();
    if (keyring_read(secret, &read, &err) < 0) {
        fail(k, err.text);
        return;
    }
    bool same = k->keyring.authorities && strcmp(k->keyring.authorities, read.authorities) == 0;
    keyring_done(&k->keyring);
    k->keyring = read;
    keyring_look(&k->keyring, k->options.names, &facts);
    facts.published = same && k->published;
    k->what = rotation_step(&facts, &k->lives, now_ms);
    if (k->what == ROTATION_NOTHING) {
        use(k);
    } else if (keyring_change(&k->keyring, k->what, k->options.names, &k->lives, now_ms, &err) <
               0) {
        fail(k, err.text);
    } else {
        write_secret(k, secret);
    }
}

static void on_got(void *arg, const struct cluster_answer *answer)
{
    struct keeper *k = arg;
    k->busy = false;
    if (answer->code == 0 || answer->code == MUSTER_ENOENT) {
        go_on(k, answer->code == 0 ? answer->object : NULL);
    } else {
        fail(k, answer->message);
    }
}

static void look(uv_timer_t *timer)
{
    struct keeper *k = timer->data;
    assert(!k->busy);
    ask(k, CLUSTER_GET, NULL, on_got);
}

const char *keeper_trouble(const struct keeper *k)
{
    bool good = clock_unix_ms() < k->good_until_unix_ms;
    return good || !k->trouble[0] ? NULL : k->trouble;
}

/* ---- life ---- */

static void free_self(uv_handle_t *handle)
{
    struct keeper *k = handle->data;
    keyring_done(&k->keyring);
    free(k);
}

int keeper_open(uv_loop_t *loop, const struct keeper_options *options, struct keeper **ret,
                struct muster_err *err)
{
    struct keeper *k = calloc(1, sizeof *k);
    if (!k) {
        return err_no_memory(err);
    }
    *k = (struct keeper){.options = *options,
                         .lives = rotation_lives_of(options->life_ms),
                         .trouble = "the certificates were not read yet"};
    const struct publish_options publish = {.cluster = options->cluster,
                                            .service = options->service,
                                            .namespace = options->namespace,
                                            .names = options->names,
                                            .done = on_published,
                                            .arg = k};
    uv_timer_init(loop, &k->timer);
    k->timer.data = k;
    int r = publish_open(&publish, &k->publish, err);
    if (r < 0) {
        keeper_close(k);
        return r;
    }
    uv_timer_start(&k->timer, look, 0, 0);
    *ret = k;
    return 0;
}

void keeper_close(struct keeper *k)
{
    if (k) {
        if (k->busy) {
            k->options.cluster->backend->cancel(k->call);
        }
        publish_close(k->publish);
        uv_close((uv_handle_t *)&k->timer, free_self);
    }
}
