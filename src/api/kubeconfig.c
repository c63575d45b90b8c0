/* See kubeconfig.h. */
#include "api/kubeconfig.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"

#include <string.h>

enum { FILE_BYTES_MAX = 65536, TEXT_BYTES_MAX = 4 * FILE_BYTES_MAX };

/* RFC 4648. */
static void add_base64(struct buf *out, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t count = strlen(text);
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        unsigned group = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0u) |
                         (left > 2 ? bytes[i + 2] : 0u);
        char four[4] = {digits[group >> 18 & 63], digits[group >> 12 & 63],
                        left > 1 ? digits[group >> 6 & 63] : '=',
                        left > 2 ? digits[group & 63] : '='};
        buf_add(out, four, sizeof four);
    }
}

static int read_part(const char *home_path, const char *name, char **ret, struct muster_err *err)
{
    muster_auto(free) char *path = file_join(home_path, name);
    if (!path) {
        return muster_fail(err, MUSTER_ENOMEM, "out of memory");
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
    if (r < 0 || (r = doc_parse(text, strlen(text), &doc, err)) < 0) {
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
    add_base64(out, cert_pem);
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
    if (r < 0 || (r = read_part(home_path, "tls/cert.pem", &cert_pem, err)) < 0 ||
        (r = read_part(home_path, "token", &token, err)) < 0) {
        return r;
    }
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    print(&text, server, cert_pem, token, namespace ? namespace : "default");
    *ret = buf_steal(&text);
    return *ret ? 0 : muster_fail(err, MUSTER_ENOMEM, "out of memory");
}
