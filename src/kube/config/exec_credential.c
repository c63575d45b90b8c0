/* Reads what an exec plugin prints. See config/exec_plugin.h. */
#include "base/doc.h"
#include "base/err.h"
#include "base/time/timestamp.h"
#include "kube/config/exec_plugin.h"

#include <stdlib.h>
#include <string.h>

static int take(char **ret, const json_t *status, const char *field, struct muster_err *err)
{
    const char *value = doc_text(status, field, "");
    *ret = *value ? strdup(value) : NULL;
    return *value && !*ret ? err_no_memory(err) : 0;
}

static int take_expiry(struct exec_credential *c, const json_t *status, struct muster_err *err)
{
    const char *text = doc_text(status, "expirationTimestamp", NULL);
    c->expires_unix_ms = text ? timestamp_read(text) : INT64_MAX;
    return c->expires_unix_ms == TIMESTAMP_NONE
               ? muster_fail(err, MUSTER_EUNAUTH, "its expirationTimestamp is no time")
               : 0;
}

static int take_status(struct exec_credential *c, const json_t *status, struct muster_err *err)
{
    int r = take(&c->token, status, "token", err);
    r = r < 0 ? r : take(&c->cert_pem, status, "clientCertificateData", err);
    r = r < 0 ? r : take(&c->key_pem, status, "clientKeyData", err);
    r = r < 0 ? r : take_expiry(c, status, err);
    if (r == 0 && !c->cert_pem != !c->key_pem) {
        r = muster_fail(err, MUSTER_EUNAUTH,
                        "it gave a certificate without its key, or a key "
                        "without its certificate");
    }
    if (r == 0 && !c->token && !c->cert_pem) {
        r = muster_fail(err, MUSTER_EUNAUTH, "it gave neither a token nor a certificate");
    }
    return r;
}

/* If the output is wrong in any way, the error does not quote it. */
int exec_credential_read(const char *text, size_t bytes, const char *api_version,
                         struct exec_credential *ret, struct muster_err *err)
{
    struct exec_credential c = {0};
    json_t *doc = NULL;
    int r = 0;
    if (doc_parse(text, bytes, &doc, NULL) < 0) {
        return muster_fail(err, MUSTER_EUNAUTH, "it printed no JSON");
    }
    if (strcmp(doc_text(doc, "kind", ""), "ExecCredential") != 0 ||
        strcmp(doc_text(doc, "apiVersion", ""), api_version) != 0) {
        r = muster_fail(err, MUSTER_EUNAUTH, "it printed no ExecCredential of %s", api_version);
    }
    r = r < 0 ? r : take_status(&c, doc_at(doc, "status"), err);
    json_decref(doc);
    if (r < 0) {
        exec_credential_done(&c);
        return r;
    }
    *ret = c;
    return 0;
}

void exec_credential_done(struct exec_credential *credential)
{
    target_wipe(&credential->token);
    target_wipe(&credential->cert_pem);
    target_wipe(&credential->key_pem);
    credential->expires_unix_ms = 0;
}
