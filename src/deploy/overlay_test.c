/* Checks that each overlay of deploy/ is put together as it should be. test/kubernetes compares
 * them with those of kustomize. */
#include "deploy/overlay.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"

#include <string.h>

static json_t *objects_of(const char *overlay, const char *namespace, const char *image)
{
    json_t *objects = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct overlay_choice choice = {overlay, namespace, image, NULL};
    if (overlay_objects(&choice, &objects, &err) != 0) {
        fail_msg("%s: %s", overlay, err.text);
    }
    return objects;
}

static json_t *find(const json_t *objects, const char *kind, const char *name)
{
    size_t i;
    json_t *object;
    json_array_foreach (objects, i, object) {
        if (strcmp(doc_text(object, "kind", ""), kind) == 0 &&
            strcmp(doc_text(object, "metadata.name", ""), name) == 0) {
            return object;
        }
    }
    return NULL;
}

static bool has_argument(const json_t *objects, const char *argument)
{
    json_t *operator= find(objects, "Deployment", "muster-operator");
    return doc_has_text(doc_at(operator, "spec.template.spec.containers.0.args"), argument);
}

static void an_overlay_is_its_base_and_what_it_adds(void **state)
{
    (void)state;
    muster_auto(doc) json_t *objects = objects_of("cluster", NULL, NULL);
    assert_non_null(find(objects, "CustomResourceDefinition", "pytorchjobs.kubeflow.org"));
    assert_non_null(find(objects, "Namespace", "muster-system"));
    assert_non_null(find(objects, "ClusterRoleBinding", "muster-operator"));
    assert_false(has_argument(objects, "--namespace=$(MY_POD_NAMESPACE)"));
}

static void an_image_may_be_chosen(void **state)
{
    (void)state;
    muster_auto(doc) json_t *objects = objects_of("cluster", NULL, "registry.test/muster:2");
    json_t *operator= find(objects, "Deployment", "muster-operator");
    assert_string_equal(doc_text(operator, "spec.template.spec.containers.0.image", ""),
                        "registry.test/muster:2");
}

static void a_pull_secret_is_put_into_the_pod(void **state)
{
    (void)state;
    muster_auto(doc) json_t *objects = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct overlay_choice choice = {.overlay = "ha", .pull_secret = "login"};
    assert_int_equal(overlay_objects(&choice, &objects, &err), 0);
    json_t *pod = doc_at(find(objects, "Deployment", "muster-operator"), "spec.template.spec");
    assert_string_equal(doc_text(pod, "imagePullSecrets.0.name", ""), "login");
    assert_string_equal(doc_text(pod, "containers.0.image", ""), "muster-operator:0.1.0");
}

static void patches_change_what_they_name(void **state)
{
    (void)state;
    muster_auto(doc) json_t *objects = objects_of("ha", NULL, NULL);
    json_t *operator= find(objects, "Deployment", "muster-operator");
    assert_int_equal(doc_int(operator, "spec.replicas", 0), 2);
    assert_true(has_argument(objects, "--leader-elect"));
    assert_non_null(find(objects, "Role", "muster-operator-lease"));
    assert_non_null(find(objects, "ClusterRoleBinding", "muster-operator"));
}

static void one_namespace_has_no_right_outside_of_it(void **state)
{
    (void)state;
    muster_auto(doc) json_t *objects = objects_of("namespaced", "team-a", NULL);
    size_t i;
    json_t *object;
    json_array_foreach (objects, i, object) {
        const char *kind = doc_text(object, "kind", "");
        assert_string_not_equal(kind, "ClusterRoleBinding");
        assert_string_not_equal(kind, "Namespace");
        const char *namespace = doc_text(object, "metadata.namespace", "team-a");
        assert_string_equal(namespace, "team-a");
    }
    json_t *binding = find(objects, "RoleBinding", "muster-operator");
    assert_string_equal(doc_text(binding, "subjects.0.namespace", ""), "team-a");
    assert_true(has_argument(objects, "--namespace=$(MY_POD_NAMESPACE)"));
}

static void what_cannot_be_chosen_is_said(void **state)
{
    (void)state;
    json_t *objects = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(overlay_objects(&(struct overlay_choice){.overlay = "none"}, &objects, &err),
                     MUSTER_ENOENT);
    assert_non_null(strstr(err.text, "there is no overlay none"));
    assert_int_equal(
        overlay_objects(&(struct overlay_choice){.overlay = "cluster", .namespace = "team-a"},
                        &objects, &err),
        MUSTER_EINVAL);
    static const struct overlay_choice refused[] = {
        {"namespaced", "Team_A", NULL, NULL}, {"namespaced", "", NULL, NULL},
        {"cluster", NULL, "", NULL},          {"cluster", NULL, "a b", NULL},
        {"cluster", NULL, "a\n", NULL},       {"cluster", NULL, "a\xff", NULL},
        {"cluster", NULL, NULL, ""},          {"cluster", NULL, NULL, "Log_in"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const char *option = refused[i].image       ? "--image must"
                             : refused[i].namespace ? "--namespace must"
                                                    : "--image-pull-secret must";
        assert_int_equal(overlay_objects(&refused[i], &objects, &err), MUSTER_EINVAL);
        assert_non_null(strstr(err.text, option));
    }
    assert_null(objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overlay_is_its_base_and_what_it_adds),
        cmocka_unit_test(an_image_may_be_chosen),
        cmocka_unit_test(a_pull_secret_is_put_into_the_pod),
        cmocka_unit_test(patches_change_what_they_name),
        cmocka_unit_test(one_namespace_has_no_right_outside_of_it),
        cmocka_unit_test(what_cannot_be_chosen_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
