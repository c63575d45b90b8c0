/* Checks that an image that cannot be pulled gives one line, whichever text reports it, and however
 * often. */
#include "cli/follow/image_waiting.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "cli/follow/progress.h"

#define REFUSED                                                                                    \
    "failed to pull and unpack image \"r.test:5000/a/b:1\": failed to resolve image: unexpected "  \
    "status from HEAD request to https://r.test:5000/v2/a/b/manifests/1: 401 Unauthorized"
#define REFUSED_LINE                                                                               \
    "the registry r.test:5000 does not give the image r.test:5000/a/b:1: it takes no password "    \
    "that is in imagePullSecrets: login"

static json_t *pod_of(const char *image, const char *secret, const char *reason,
                      const char *message)
{
    return json_pack(
        "{s:{s:s, s:s}, s:{s:[{s:s, s:s}], s:o*}, s:{s:s, s:[{s:s, s:{s:{s:s, s:s}}}]}}",
        "metadata", "name", "j-master-0", "namespace", "team", "spec", "containers", "name",
        "pytorch", "image", image, "imagePullSecrets",
        secret ? json_pack("[{s:s}]", "name", secret) : NULL, "status", "phase", "Pending",
        "containerStatuses", "name", "pytorch", "state", "waiting", "reason", reason, "message",
        message);
}

static void assert_why(json_t *pod, const char *why, const char *command, bool missing)
{
    struct image_waiting image;
    assert_true(image_waiting_of(pod, doc_at(pod, "status.containerStatuses.0"), &image));
    assert_string_equal(image.why, why);
    assert_string_equal(image.command, command);
    assert_int_equal(image.missing, missing);
    json_decref(pod);
}

static void a_password_that_is_refused_is_named(void **state)
{
    (void)state;
    assert_why(pod_of("r.test:5000/a/b:1", "login", "ErrImagePull", REFUSED), REFUSED_LINE,
               "kubectl create secret docker-registry login -n team --docker-server=r.test:5000 "
               "--docker-username=USER --docker-password=PASSWORD --dry-run=client -o yaml | "
               "kubectl apply -f -",
               true);
    assert_why(pod_of("team/private:2", NULL, "ErrImagePull",
                      "pull access denied, repository does not exist or may require authorization"),
               "the registry docker.io does not give the image team/private:2: it wants a "
               "password, and the pod has no imagePullSecrets",
               "kubectl create secret docker-registry SECRET -n team --docker-server=docker.io "
               "--docker-username=USER --docker-password=PASSWORD --dry-run=client -o yaml | "
               "kubectl apply -f -",
               true);
}

static void other_causes_are_said_as_they_are(void **state)
{
    (void)state;
    assert_why(pod_of("r.test/a:9", NULL, "ErrImagePull",
                      "failed to pull and unpack image \"r.test/a:9\": failed to resolve image: "
                      "r.test/a:9: not found"),
               "there is no image r.test/a:9 in its registry", "", true);
    assert_why(pod_of("r.test/a:9", NULL, "ImagePullBackOff",
                      "Back-off pulling image \"r.test/a:9\": ErrImagePull: failed to pull and "
                      "unpack image \"r.test/a:9\": failed to resolve image: failed to do request: "
                      "dial tcp: lookup r.test: no such host"),
               "the image r.test/a:9 cannot be pulled: failed to do request: dial tcp: lookup "
               "r.test: no such host",
               "", false);
}

static void what_is_no_image_is_left_alone(void **state)
{
    (void)state;
    struct image_waiting image;
    json_t *pod = pod_of("a", NULL, "CrashLoopBackOff", "back-off 10s: access denied");
    assert_false(image_waiting_of(pod, doc_at(pod, "status.containerStatuses.0"), &image));
    json_decref(pod);
    assert_false(image_waiting_of(NULL, NULL, &image));
}

/* A kubelet reports the two reasons in turn, for hours, and the line is printed once. */
static void it_is_said_once(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 16);
    json_t *now = pod_of("r.test:5000/a/b:1", "login", "ErrImagePull", REFUSED);
    json_t *later = pod_of("r.test:5000/a/b:1", "login", "ImagePullBackOff",
                           "Back-off pulling image \"r.test:5000/a/b:1\": ErrImagePull: " REFUSED);
    progress_pod(NULL, now, false, true, &out);
    assert_non_null(strstr(buf_str(&out), "waits: " REFUSED_LINE "\n  this makes it: kubectl"));
    size_t used = out.used;
    progress_pod(now, later, false, true, &out);
    progress_pod(later, now, false, true, &out);
    assert_int_equal(out.used, used);
    json_decref(now);
    json_decref(later);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_password_that_is_refused_is_named),
        cmocka_unit_test(other_causes_are_said_as_they_are),
        cmocka_unit_test(what_is_no_image_is_left_alone),
        cmocka_unit_test(it_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
