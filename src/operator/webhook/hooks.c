/* See hooks.h. */
#include "operator/webhook/hooks.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "operator/webhook/answers.h"
#include "operator/webhook/keeper.h"
#include "operator/webhook/keyring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS = 5000, /* for files; a mounted Secret or ConfigMap may change */
    FILE_BYTES_MAX = 1 << 20,
    CONNECTIONS_MAX = 2048, /* of which one API server may have an eighth */
    /* API servers wait for a webhook at most 30 s, and keep an idle connection for 90 s. */
    REQUEST_MS = 30000,
    IDLE_S = 120,
    NAME_BYTES = 320,
};

struct hooks {
    struct hooks_options options;
    struct http_server *server;
    struct answers *answers;
    struct keeper *keeper; /* NULL: certificates are in files */
    char *cert_pem;        /* the server's present certificate; NULL: none yet */
    char *images_text;     /* as last read */
    char *words;           /* the text of names[1] and so on */
    char name[NAME_BYTES];
    const char *names[KEYRING_NAMES_MAX + 1];
    uv_timer_t timer;
    char trouble[MUSTER_ERR_TEXT_BYTES]; /* with files; "": none */
};

/* ---- the certificate ---- */

static int use(void *arg, const struct certificate_pair *serving, struct muster_err *err)
{
    struct hooks *h = arg;
    if (h->cert_pem && strcmp(h->cert_pem, serving->cert_pem) == 0) {
        return 0;
    }
    char *copy = strdup(serving->cert_pem);
    int r = copy ? http_server_set_certificate(h->server, serving->key_pem, serving->cert_pem, err)
                 : err_no_memory(err);
    if (r < 0) {
        free(copy);
        return r;
    }
    free(h->cert_pem);
    h->cert_pem = copy;
    log_event(LOG_INFO, "webhook.certificate", "new connections get the certificate that was %s",
              h->keeper ? "made" : "read");
    return 0;
}

static int read_certificate(struct hooks *h, struct muster_err *err)
{
    struct certificate_pair pair = {0};
    muster_auto(free) char *cert = file_join(h->options.flags->cert_path, "tls.crt");
    muster_auto(free) char *key = file_join(h->options.flags->cert_path, "tls.key");
    int r = cert && key ? 0 : err_no_memory(err);
    r = r < 0 ? r : file_read(cert, FILE_BYTES_MAX, &pair.cert_pem, NULL, err);
    r = r < 0 ? r : file_read(key, FILE_BYTES_MAX, &pair.key_pem, NULL, err);
    r = r < 0 ? r : use(h, &pair, err);
    certificate_pair_done(&pair);
    return r < 0 ? muster_wrap(err, "--webhook-cert-path") : 0;
}

/* ---- the list of images ---- */

static int read_images(struct hooks *h, struct muster_err *err)
{
    struct images images = {0};
    muster_auto(free) char *text = NULL;
    int r = file_read(h->options.flags->images_path, FILE_BYTES_MAX, &text, NULL, err);
    if (r == 0 && h->images_text && strcmp(h->images_text, text) == 0) {
        return 0;
    }
    r = r < 0 ? r : images_read(&images, text, err);
    if (r == 0) {
        log_event(LOG_INFO, "webhook.images", "%zu patterns of images from %s", images.count,
                  h->options.flags->images_path);
        r = answers_set_images(h->answers, &images, err);
    }
    if (r < 0) {
        images_done(&images);
        return muster_wrap(err, "--image-allow-list");
    }
    free(h->images_text);
    h->images_text = muster_take(text);
    return 0;
}

/* If a file cannot be read now, the previous content stays in use; this is reported once. */
static void look_at_files(uv_timer_t *timer)
{
    struct hooks *h = timer->data;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = h->options.flags->images_path ? read_images(h, &err) : 0;
    r = r < 0 || !h->options.flags->cert_path ? r : read_certificate(h, &err);
    if (r < 0 && strcmp(h->trouble, err.text) != 0) {
        log_event(LOG_WARN, "webhook.files", "%s", err.text);
    }
    (void)snprintf(h->trouble, sizeof h->trouble, "%s", r < 0 ? err.text : "");
}

static int open_files(struct hooks *h, struct muster_err *err)
{
    int r = h->options.flags->images_path ? read_images(h, err) : 0;
    if (r == 0) {
        uv_timer_start(&h->timer, look_at_files, 0, LOOK_MS);
    }
    return r;
}

/* ---- life ---- */

static int add_name(struct hooks *h, size_t *count, const char *name, struct muster_err *err)
{
    if (*count == KEYRING_NAMES_MAX) {
        return muster_fail(err, MUSTER_EINVAL, "--webhook-names: more than %d names",
                           KEYRING_NAMES_MAX - 1);
    }
    h->names[(*count)++] = name;
    return 0;
}

static int set_names(struct hooks *h, struct muster_err *err)
{
    const struct hooks_flags *flags = h->options.flags;
    size_t count = 0;
    char *rest = NULL;
    (void)snprintf(h->name, sizeof h->name, "%s.%s.svc", flags->service, h->options.namespace);
    h->words = strdup(flags->names ? flags->names : "");
    int r = h->words ? add_name(h, &count, h->name, err) : err_no_memory(err);
    for (char *word = r < 0 ? NULL : strtok_r(h->words, ",", &rest); word && r == 0;
         word = strtok_r(NULL, ",", &rest)) {
        r = add_name(h, &count, word, err);
    }
    return r;
}

static int listen_for_reviews(uv_loop_t *loop, struct hooks *h, struct muster_err *err)
{
    const struct hooks_flags *flags = h->options.flags;
    const char *host = flags->host ? flags->host : h->options.in_pod ? "0.0.0.0" : "127.0.0.1";
    const struct http_options options = {
        .address = host,
        .port = flags->port,
        .tls = true,
        .limits = {.connections_max = CONNECTIONS_MAX,
                   .body_bytes_max = ANSWERS_BODY_BYTES_MAX,
                   .head_timeout_ms = REQUEST_MS,
                   .body_timeout_ms = REQUEST_MS,
                   .idle_timeout_s = IDLE_S},
    };
    int r = http_server_start(loop, &options, answers_handle, h->answers, &h->server, err);
    if (r == 0) {
        log_event(LOG_INFO, "operator.listen", "webhook-server-port: %s:%d", host,
                  http_server_port(h->server));
    }
    return r < 0 ? muster_wrap(err, "--webhook-server-port") : 0;
}

static int open_keeper(uv_loop_t *loop, struct hooks *h, struct muster_err *err)
{
    const struct keeper_options options = {
        .cluster = h->options.cluster,
        .namespace = h->options.namespace,
        .secret = h->options.flags->secret,
        .service = h->options.flags->service,
        .names = h->names,
        .life_ms = h->options.flags->life_ms,
        .use = use,
        .arg = h,
    };
    return keeper_open(loop, &options, &h->keeper, err);
}

int hooks_open(uv_loop_t *loop, const struct hooks_options *options, struct hooks **ret,
               struct muster_err *err)
{
    struct hooks *h = calloc(1, sizeof *h);
    if (!h) {
        return err_no_memory(err);
    }
    h->options = *options;
    uv_timer_init(loop, &h->timer);
    h->timer.data = h;
    h->answers = answers_new(loop);
    int r = h->answers ? set_names(h, err) : err_no_memory(err);
    r = r < 0 ? r : listen_for_reviews(loop, h, err);
    r = r < 0 ? r : open_files(h, err);
    r = r < 0 || options->flags->cert_path ? r : open_keeper(loop, h, err);
    if (r < 0) {
        hooks_close(h);
        return r;
    }
    *ret = h;
    return 0;
}

static void free_self(uv_handle_t *handle)
{
    struct hooks *h = handle->data;
    free(h->cert_pem);
    free(h->images_text);
    free(h->words);
    free(h);
}

void hooks_close(struct hooks *h)
{
    if (h) {
        keeper_close(h->keeper);
        http_server_stop(h->server);
        answers_free(h->answers);
        uv_close((uv_handle_t *)&h->timer, free_self);
    }
}

void hooks_leave(struct hooks *h)
{
    if (h) {
        answers_leave(h->answers);
    }
}

const char *hooks_trouble(const struct hooks *h)
{
    if (!h) {
        return NULL;
    }
    return h->keeper ? keeper_trouble(h->keeper) : h->cert_pem ? NULL : "no certificate was read";
}
