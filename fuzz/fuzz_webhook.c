/* Requests to a webhook, of an API server or of anybody who found the port. Input: JSON, which is
 * taken as a job and as a review of each kind; its text is taken as a list of images and as the
 * name of an image. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "invariant.h"
#include "webhook/admission.h"
#include "webhook/conversion.h"

#include <string.h>

/* Converts a job to an old version and back; then again, which changes nothing more. */
static void convert_there_and_back(const json_t *job, const char *version)
{
    muster_auto(doc) json_t *before = json_deep_copy(job);
    muster_auto(doc) json_t *current = json_incref(before);
    json_t *seen = NULL;
    for (int round = 0; round < 2; round++) {
        muster_auto(doc) json_t *old = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        int r = webhook_convert(current, version, &old, &err);
        json_t *next = NULL;
        r = r < 0 ? r : webhook_convert(old, "kubeflow.org/v1", &next, &err);
        invariant(r == 0 || *err.text, "a refusal says why", version);
        if (r < 0) {
            break;
        }
        invariant(!seen || json_equal(next, seen), "a second round changes nothing", version);
        json_decref(seen);
        seen = json_incref(next);
        json_decref(current);
        current = next;
    }
    invariant(json_equal(job, before), "what was passed in stays", version);
    json_decref(seen);
}

static void review_it(const json_t *review, const struct images *images)
{
    muster_auto(doc) json_t *admission = webhook_answer_admission(review, images);
    muster_auto(doc) json_t *conversion = webhook_answer_conversion(review);
    invariant(json_is_boolean(doc_at(admission, "response.allowed")), "a review is decided", "");
    invariant(json_is_string(doc_at(conversion, "response.result.status")), "a review is answered",
              "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muster_auto(free) char *text = strndup((const char *)data, size);
    muster_auto(doc) json_t *doc = NULL;
    struct images images = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    if (!text) {
        return 0;
    }
    int r = images_read(&images, text, &err);
    invariant(r == 0 || *err.text, "a refusal says why", "");
    images_allow(&images, text);
    if (doc_parse(text, strlen(text), &doc, NULL) == 0) {
        review_it(doc, &images);
        convert_there_and_back(doc, "kubeflow.org/v1beta1");
        convert_there_and_back(doc, "kubeflow.org/v1beta2");
    }
    images_done(&images);
    return 0;
}
