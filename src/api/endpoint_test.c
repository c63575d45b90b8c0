/* Checks the API's port and socket: which port is chosen and saved, and what a kubeconfig
 * contains. */
#include "api/fixture.h"
#include "api/kubeconfig.h"
#include "base/testing/test_port.h"

static int open_endpoint(struct fixture *f, struct api_endpoint **ret, struct muster_err *tls_err)
{
    muster_auto(free) char *socket_path = file_join(f->folder, "api.sock");
    return api_endpoint_open(&f->loop, f->api, f->folder, socket_path, ret, tls_err, &f->err);
}

static void close_endpoint(struct fixture *f, struct api_endpoint *endpoint)
{
    api_endpoint_close(endpoint);
    uv_run(&f->loop, UV_RUN_DEFAULT);
}

static void save_port(struct fixture *f, int port)
{
    char text[64];
    int n = snprintf(text, sizeof text, "{\"server\":\"https://127.0.0.1:%d\"}", port);
    muster_auto(free) char *path = file_join(f->folder, "server.json");
    assert_int_equal(file_write(path, text, (size_t)n, 0600, &f->err), 0);
}

static void a_port_is_chosen_and_remembered(void **state)
{
    (void)state;
    struct fixture f;
    struct api_endpoint *endpoint = NULL;
    struct muster_err tls_err = MUSTER_ERR_INIT;
    fixture_init(&f, NULL);
    char *text = NULL;
    assert_int_equal(api_kubeconfig(f.folder, NULL, &text, &f.err), MUSTER_EUNAVAIL);
    assert_non_null(strstr(f.err.text, "muster up"));

    assert_int_equal(open_endpoint(&f, &endpoint, &tls_err), 0);
    assert_int_equal(tls_err.code, 0);
    muster_auto(free) char *path = file_join(f.folder, "server.json");
    muster_auto(free) char *remembered = NULL;
    assert_int_equal(file_read(path, 4096, &remembered, NULL, &f.err), 0);
    assert_non_null(strstr(remembered, api_endpoint_server(endpoint)));
    close_endpoint(&f, endpoint);
    fixture_done(&f);
}

static void port_and_certificate_stay(void **state)
{
    (void)state;
    struct fixture f;
    struct api_endpoint *endpoint = NULL;
    struct muster_err tls_err = MUSTER_ERR_INIT;
    fixture_init(&f, NULL);
    save_port(&f, test_held_port());

    assert_int_equal(open_endpoint(&f, &endpoint, &tls_err), 0);
    assert_int_equal(tls_err.code, 0);
    muster_auto(free) char *server = strdup(api_endpoint_server(endpoint));
    muster_auto(free) char *first = NULL;
    muster_auto(free) char *second = NULL;
    assert_int_equal(api_kubeconfig(f.folder, "team", &first, &f.err), 0);
    assert_non_null(strstr(first, server));
    assert_non_null(strstr(first, "namespace: team\n"));
    close_endpoint(&f, endpoint);

    assert_int_equal(open_endpoint(&f, &endpoint, &tls_err), 0);
    assert_string_equal(api_endpoint_server(endpoint), server);
    assert_int_equal(api_kubeconfig(f.folder, "team", &second, &f.err), 0);
    assert_string_equal(first, second);
    close_endpoint(&f, endpoint);
    fixture_done(&f);
}

static void a_taken_port_leaves_the_socket(void **state)
{
    (void)state;
    struct fixture f;
    struct api_endpoint *endpoint = NULL;
    struct http_server *other = NULL;
    struct muster_err tls_err = MUSTER_ERR_INIT;
    fixture_init(&f, NULL);
    const struct http_options any = {.port = 0};
    assert_int_equal(http_server_start(&f.loop, &any, api_handle, f.api, &other, &f.err), 0);
    save_port(&f, http_server_port(other));

    assert_int_equal(open_endpoint(&f, &endpoint, &tls_err), 0);
    assert_int_equal(tls_err.code, MUSTER_EUNAVAIL);
    assert_non_null(strstr(tls_err.text, "remove server.json"));
    assert_null(api_endpoint_server(endpoint));
    assert_int_equal(api_endpoint_connections(endpoint), 0);
    http_server_stop(other);
    close_endpoint(&f, endpoint);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_is_chosen_and_remembered),
        cmocka_unit_test(port_and_certificate_stay),
        cmocka_unit_test(a_taken_port_leaves_the_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
