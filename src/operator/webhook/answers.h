/* The webhooks' routes: answers the reviews of API servers as src/webhook decides.
 *
 * Reviews are read and answered in libuv's threads, so that the operator's loop, which renews a
 * lease, waits for none, however large; what is under way has a bound, and a request beyond it is
 * told to come again (API servers do, within the time limit of the webhook).
 *
 * Layer: program. Thread: the loop's. Ownership: new/free; free only when http_server_stop has
 * been called, and the loop must run once more.
 */
#pragma once

#include "http/http.h"
#include "webhook/images.h"

/* The path that upstream's training-operator serves for PyTorchJobs. */
#define ANSWERS_PATH_JOBS "/validate-kubeflow-org-v1-pytorchjob"
#define ANSWERS_PATH_PODS "/validate-pods"
#define ANSWERS_PATH_CONVERT "/convert"

enum { ANSWERS_BODY_BYTES_MAX = 8 << 20 }; /* a review may convert a list of jobs */

struct answers;

struct answers *answers_new(uv_loop_t *loop); /* NULL: out of memory */
void answers_free(struct answers *answers);   /* NULL is allowed */

/* Takes `images` over; the next review uses it. MUSTER_ENOMEM: nothing has changed. */
int answers_set_images(struct answers *answers, struct images *images, struct muster_err *err);

/* From the next review on, each answer is the last of its connection, so that the API server moves
 * to another replica. */
void answers_leave(struct answers *answers);

/* Is an http_handler. */
void answers_handle(void *answers, const struct http_request *request, struct http_reply *reply);
