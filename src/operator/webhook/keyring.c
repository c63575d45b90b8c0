/* See keyring.h. */
#include "operator/webhook/keyring.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <string.h>

#define END_OF_CERTIFICATE "-----END CERTIFICATE-----"

enum { TEXT_BYTES_MAX = 1 << 20 };

void keyring_done(struct keyring *keyring)
{
    free(keyring->authorities);
    certificate_pair_done(&keyring->newest);
    certificate_pair_done(&keyring->serving);
    *keyring = (struct keyring){0};
}

/* ---- the Secret ---- */

static int read_text(const json_t *secret, const char *name, char **ret, struct muster_err *err)
{
    const json_t *data = json_object_get(secret, "data");
    const char *text = json_string_value(json_object_get(data, name));
    size_t bytes;
    int r = base64_decode(text ? text : "", ret, &bytes, NULL);
    if (r == MUSTER_EDATA) {
        *ret = strdup("");
        r = *ret ? 0 : MUSTER_ENOMEM;
    }
    return r < 0 ? err_no_memory(err) : 0;
}

int keyring_read(const json_t *secret, struct keyring *ret, struct muster_err *err)
{
    struct keyring k = {0};
    int r = read_text(secret, "ca.crt", &k.authorities, err);
    r = r < 0 ? r : read_text(secret, "ca.key", &k.newest.key_pem, err);
    r = r < 0 ? r : read_text(secret, "tls.crt", &k.serving.cert_pem, err);
    r = r < 0 ? r : read_text(secret, "tls.key", &k.serving.key_pem, err);
    if (r == 0 && !(k.newest.cert_pem = strdup(k.authorities))) { /* the first in it */
        r = err_no_memory(err);
    }
    if (r < 0) {
        keyring_done(&k);
        return r;
    }
    *ret = k;
    return 0;
}

static void put_text(json_t *data, const char *name, const char *text, bool *failed)
{
    struct buf encoded;
    buf_init(&encoded, TEXT_BYTES_MAX);
    base64_encode(text, strlen(text), &encoded);
    *failed = *failed || buf_failed(&encoded) ||
              json_object_set_new(data, name, json_string(buf_str(&encoded))) != 0;
    buf_done(&encoded);
}

json_t *keyring_data(const struct keyring *keyring)
{
    json_t *data = json_object();
    bool failed = data == NULL;
    put_text(data, "ca.crt", keyring->authorities, &failed);
    put_text(data, "ca.key", keyring->newest.key_pem, &failed);
    put_text(data, "tls.crt", keyring->serving.cert_pem, &failed);
    put_text(data, "tls.key", keyring->serving.key_pem, &failed);
    if (failed) {
        json_decref(data);
        return NULL;
    }
    return data;
}

/* ---- its state ---- */

/* Returns the certificate after this one; NULL: there is none. */
static const char *next_certificate(const char *pem)
{
    const char *end = strstr(pem, END_OF_CERTIFICATE);
    return end && strstr(end, "-----BEGIN ") ? end + strlen(END_OF_CERTIFICATE) : NULL;
}

static bool is_trusted(const struct keyring *k)
{
    const char *at = k->authorities;
    while (at && !certificate_is_signed_by(k->serving.cert_pem, at)) {
        at = next_certificate(at);
    }
    return at != NULL;
}

static bool has_names(const char *cert_pem, const char *const *names)
{
    while (*names && certificate_names(cert_pem, *names)) {
        names++;
    }
    return *names == NULL;
}

static bool is_usable(const struct keyring *k, const char *const *names)
{
    return certificate_has_key(k->newest.cert_pem, k->newest.key_pem) &&
           certificate_has_key(k->serving.cert_pem, k->serving.key_pem) &&
           has_names(k->serving.cert_pem, names) && is_trusted(k);
}

void keyring_look(const struct keyring *k, const char *const *names, struct rotation_facts *ret)
{
    *ret = (struct rotation_facts){0};
    if (certificate_span(k->newest.cert_pem, &ret->newest, NULL) == 0 &&
        certificate_span(k->serving.cert_pem, &ret->serving, NULL) == 0) {
        ret->usable = is_usable(k, names);
        ret->serving_is_of_newest =
            certificate_is_signed_by(k->serving.cert_pem, k->newest.cert_pem);
        ret->has_older = next_certificate(k->authorities) != NULL;
    }
}

/* ---- changes ---- */

static int make_authority(struct keyring *k, const struct rotation_lives *lives, int64_t now_ms,
                          struct muster_err *err)
{
    const struct certificate_order order = {
        .subject = "muster-operator webhook authority",
        .authority = true,
        .from_unix_ms = now_ms - lives->margin_ms,
        .until_unix_ms = now_ms + lives->authority_ms,
    };
    struct certificate_pair made;
    int r = certificate_make(&order, &made, err);
    if (r == 0) {
        certificate_pair_done(&k->newest);
        k->newest = made;
    }
    return r;
}

static int make_serving(struct keyring *k, const char *const *names,
                        const struct rotation_lives *lives, int64_t now_ms, struct muster_err *err)
{
    const struct certificate_order order = {
        .subject = "muster-operator webhooks",
        .names = names,
        .from_unix_ms = now_ms - lives->margin_ms,
        .until_unix_ms = now_ms + lives->serving_ms,
        .issuer = &k->newest,
    };
    struct certificate_pair made;
    int r = certificate_make(&order, &made, err);
    if (r == 0) {
        certificate_pair_done(&k->serving);
        k->serving = made;
    }
    return r;
}

/* Lists the newest authority, and the older ones if they stay. */
static int list_authorities(struct keyring *k, bool with_older, struct muster_err *err)
{
    struct buf list;
    buf_init(&list, TEXT_BYTES_MAX);
    buf_format(&list, "%s%s", k->newest.cert_pem, with_older ? k->authorities : "");
    char *text = buf_steal(&list);
    buf_done(&list);
    if (!text) {
        return err_no_memory(err);
    }
    free(k->authorities);
    k->authorities = text;
    return 0;
}

/* Cuts the list to its first certificate, which is the newest authority's. */
static void cut_after_first(char *pem)
{
    char *end = strstr(pem, END_OF_CERTIFICATE);
    if (end) {
        end += strlen(END_OF_CERTIFICATE);
        end[*end == '\n'] = '\0';
    }
}

static int copy(const struct keyring *k, struct keyring *ret, struct muster_err *err)
{
    json_t *data = keyring_data(k);
    json_t *secret = json_pack("{s:o}", "data", data);
    int r = secret ? keyring_read(secret, ret, err) : err_no_memory(err);
    json_decref(secret);
    return r;
}

static int change(struct keyring *k, enum rotation_do what, const char *const *names,
                  const struct rotation_lives *lives, int64_t now_ms, struct muster_err *err)
{
    bool new_authority = what == ROTATION_ANEW || what == ROTATION_AUTHORITY;
    bool new_serving = what == ROTATION_ANEW || what == ROTATION_SERVING;
    bool new_list = new_authority || what == ROTATION_FORGET;
    cut_after_first(k->newest.cert_pem);
    int r = new_authority ? make_authority(k, lives, now_ms, err) : 0;
    r = r == 0 && new_list ? list_authorities(k, what == ROTATION_AUTHORITY, err) : r;
    return r == 0 && new_serving ? make_serving(k, names, lives, now_ms, err) : r;
}

int keyring_change(struct keyring *keyring, enum rotation_do what, const char *const *names,
                   const struct rotation_lives *lives, int64_t now_unix_ms, struct muster_err *err)
{
    struct keyring changed = {0};
    int r = copy(keyring, &changed, err);
    r = r < 0 ? r : change(&changed, what, names, lives, now_unix_ms, err);
    if (r < 0) {
        keyring_done(&changed);
        return r;
    }
    keyring_done(keyring);
    *keyring = changed;
    return 0;
}
