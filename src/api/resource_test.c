/* Checks which resource, namespace, name and subresource a path names, and which paths name none.
 */
#include "api/resource.h"
#include "base/testing/test.h"

#include <stdio.h>

static void paths_name_resources(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *route; /* "plural namespace name subresource"; NULL: none */
    } table[] = {
        {"/api/v1/pods", "pods   "},
        {"/api/v1/namespaces/a/pods", "pods a  "},
        {"/api/v1/namespaces/a/pods/b/", "pods a b "},
        {"/api/v1/namespaces/a/pods/b/log", "pods a b log"},
        {"/api/v1/namespaces", "namespaces   "},
        {"/api/v1/namespaces/a", "namespaces  a "},
        {"/api/v1/namespaces/a/status", "namespaces  a status"},
        {"/api/v1/nodes/n", "nodes  n "},
        {"/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/b/scale", "pytorchjobs a b scale"},
        {"/api/v1/namespaces/a/pods/b/scale", NULL},
        {"/api/v1/namespaces/a/nodes/n", NULL},
        {"/api/v1/pods/b", NULL},
        {"/api/v2/pods", NULL},
        {"/apis/v1/pods", NULL},
        {"/apis/kubeflow.org/v1/pods", NULL},
        {"/api/v1/namespaces/a/pods/b/log/c", NULL},
        {"", NULL},
        {"/", NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct route route;
        char text[1024];
        bool found = route_parse(table[i].path, &route);
        assert_int_equal(found, table[i].route != NULL);
        if (found) {
            (void)snprintf(text, sizeof text, "%s %s %s %s", route.resource->plural,
                           route.namespace, route.name, route.subresource);
            assert_string_equal(text, table[i].route);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_name_resources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
