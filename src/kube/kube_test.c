/* Names, paths and refusals. */
#include "kube/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"

#include <stdlib.h>

static void kinds_have_many_names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"job", "PyTorchJob"},
        {"pytorchjob", "PyTorchJob"},
        {"PyTorchJob", "PyTorchJob"},
        {"jobs", "PyTorchJob"},
        {"pytorchjobs.kubeflow.org", "PyTorchJob"},
        {"po", "Pod"},
        {"pvc", "PersistentVolumeClaim"},
        {"svc", "Service"},
        {"ns", "Namespace"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(kube_resource_find(cases[i][0])->kind, cases[i][1]);
    }
    assert_null(kube_resource_find("jo"));
    assert_null(kube_resource_find(""));
    assert_null(kube_resource_find("deployment"));
}

/* Two groups have events: the core group's are meant, unless the object says otherwise. */
static void a_kind_of_two_groups_is_told_apart(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"v1", "v1"}, {"events.k8s.io/v1", "events.k8s.io/v1"}, {"events.k8s.io/v1beta1", "v1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        muster_auto(doc) json_t *event =
            json_pack("{s:s, s:s}", "apiVersion", cases[i][0], "kind", "Event");
        assert_string_equal(kube_resource_of(event)->api_version, cases[i][1]);
    }
    assert_string_equal(kube_resource_find("events")->api_version, "v1");
    assert_string_equal(kube_resource_find("events.events.k8s.io")->api_version,
                        "events.k8s.io/v1");
}

static void check_path(const struct kube_ref *ref, const struct kube_query *query,
                       const char *expected)
{
    char *path = kube_path(ref, query);
    assert_string_equal(path, expected);
    free(path);
}

static void paths_are_those_of_kubernetes(void **state)
{
    (void)state;
    const struct kube_resource *jobs = kube_resource_find("jobs");
    const struct kube_resource *pods = kube_resource_find("pods");
    check_path(&(struct kube_ref){jobs, "a", "b", "scale"}, NULL,
               "/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/b/scale");
    check_path(&(struct kube_ref){pods, NULL, NULL, NULL}, NULL, "/api/v1/pods");
    check_path(&(struct kube_ref){kube_resource_find("ns"), "a", "b", NULL}, NULL,
               "/api/v1/namespaces/b");
    check_path(&(struct kube_ref){pods, "a", NULL, NULL},
               &(struct kube_query){.labels = "x in (y,z)", .fields = "k=v", .more = "watch=true"},
               "/api/v1/namespaces/a/pods?labelSelector=x%20in%20%28y%2Cz%29&fieldSelector=k%3Dv"
               "&watch=true");
}

/* A name that a user types does not leave its part of the path. */
static void names_are_encoded(void **state)
{
    (void)state;
    char *ours = kube_muster_path("namespaces", "../a", "pods", "b/c?d#e %", "log", NULL);
    assert_string_equal(ours, "/muster/v1/namespaces/..%2Fa/pods/b%2Fc%3Fd%23e%20%25/log");
    free(ours);
    check_path(&(struct kube_ref){kube_resource_find("pods"), "../a", "b/c?d#e %", NULL}, NULL,
               "/api/v1/namespaces/..%2Fa/pods/b%2Fc%3Fd%23e%20%25");
}

static int refuse(struct kube *kube, long http_status, const char *body, struct muster_err *err)
{
    return kube_refuse(kube, http_status, body, strlen(body), err);
}

static void refusals_become_errors(void **state)
{
    (void)state;
    struct kube kube = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    const char *exists = "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"there\"}";
    assert_int_equal(refuse(&kube, 409, exists, &err), MUSTER_EEXIST);
    assert_string_equal(err.text, "there");
    assert_string_equal(doc_text(kube_status(&kube), "reason", ""), "AlreadyExists");
    const char *conflict = "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"changed\"}";
    assert_int_equal(refuse(&kube, 409, conflict, &err), MUSTER_ECONFLICT);
    assert_int_equal(refuse(&kube, 404, "{\"kind\":\"Status\"}", &err), MUSTER_ENOENT);
    assert_string_equal(err.text, "not found");
    const char *empty = "{\"kind\":\"Status\",\"message\":\"\"}";
    assert_int_equal(refuse(&kube, 403, empty, &err), MUSTER_EPERM);
    assert_string_equal(err.text, muster_code_text(MUSTER_EPERM));
    json_decref(kube.status);
}

static void strange_answers_are_told(void **state)
{
    (void)state;
    struct kube kube = {.peer = (char[]){"the controller"}};
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(refuse(&kube, 502, "<html>", &err), MUSTER_ENOHOST);
    assert_string_equal(err.text, "the controller answered 502: <html>");
    assert_null(kube_status(&kube));
    assert_int_equal(refuse(&kube, 404, "404 page not found\n", &err), MUSTER_ENOENT);
    assert_non_null(strstr(err.text, "'muster deploy --print | kubectl apply"));
    assert_int_equal(refuse(&kube, 599, "", &err), MUSTER_EINTERNAL);
    assert_int_equal(refuse(&kube, 418, "[]", &err), MUSTER_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_of_two_groups_is_told_apart),
        cmocka_unit_test(kinds_have_many_names),
        cmocka_unit_test(paths_are_those_of_kubernetes),
        cmocka_unit_test(names_are_encoded),
        cmocka_unit_test(refusals_become_errors),
        cmocka_unit_test(strange_answers_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
