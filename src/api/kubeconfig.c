/* See kubeconfig.h. */
#include "api/kubeconfig.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"

#include <string.h>

enum { FILE_BYTES_MAX = 65536, TEXT_BYTES_MAX = 4 * FILE_BYTES_MAX };

static int read_part(const char *home_path, const char *name, char **ret, struct muster_err *err)
{
    muster_auto(free) char *path = file_join(home_path, name);
    if (!path) {
        return err_no_memory(err);
    }
    int r = file_read(path, FILE_BYTES_MAX, ret, NULL, err);
    if (r == MUSTER_ENOENT) {
        return muster_fail(err, MUSTER_EUNAVAIL,
                           "%s is not there: no controller has served kubectl yet; run `muster up`",
                           path);
    }
    return r;
}

static int read_server(const char *home_path, char **ret, struct muster_err *err)
{
    muster_auto(free) char *text = NULL;
    muster_auto(doc) json_t *doc = NULL;
    int r = read_part(home_path, "server.json", &text, err);
    r = r < 0 ? r : doc_parse(text, strlen(text), &doc, err);
    if (r < 0) {
        return r;
    }
    const char *server = doc_text(doc, "server", NULL);
    char *copy = server ? strdup(server) : NULL;
    if (!copy) {
        return muster_fail(err, MUSTER_ECONFIG, "%s/server.json names no server", home_path);
    }
    *ret = copy;
    return 0;
}

static void print(struct buf *out, const char *server, const char *cert_pem, const char *token,
                  const char *namespace)
{
    buf_format(out,
               "apiVersion: v1\nkind: Config\ncurrent-context: muster\n"
               "clusters:\n- name: muster\n  cluster:\n    server: %s\n"
               "    certificate-authority-data: ",
               server);
    base64_encode(cert_pem, strlen(cert_pem), out);
    buf_format(out,
               "\ncontexts:\n- name: muster\n  context:\n    cluster: muster\n    user: muster\n"
               "    namespace: %s\n"
               "users:\n- name: muster\n  user:\n    token: %.*s\n",
               namespace, (int)strcspn(token, "\r\n"), token);
}

int api_kubeconfig(const char *home_path, const char *namespace, char **ret, struct muster_err *err)
{
    muster_auto(free) char *server = NULL;
    muster_auto(free) char *cert_pem = NULL;
    muster_auto(free) char *token = NULL;
    int r = read_server(home_path, &server, err);
    r = r < 0 ? r : read_part(home_path, "tls/cert.pem", &cert_pem, err);
    r = r < 0 ? r : read_part(home_path, "token", &token, err);
    if (r < 0) {
        return r;
    }
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    print(&text, server, cert_pem, token, namespace ? namespace : "default");
    *ret = buf_steal(&text);
    return *ret ? 0 : err_no_memory(err);
}
