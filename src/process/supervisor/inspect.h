/* Looking into a job's running attempts, for its supervisor.
 *
 * Layer: services; private to the supervisor. Thread: the loop's.
 */
#pragma once

#include "process/supervisor/attempt.h"

#include <jansson.h>
#include <uv.h>

struct inspect {
    uv_loop_t *loop;
    struct attempt **attempts;
    const size_t *count;
    void (*tell)(void *data, const json_t *event);
    void *data;
};

/* {"op":"stacks","ticket":N,"id":"POD/" or "","sampleMs":200} is answered with
 * {"event":"stacks","ticket":N,"attempts":[…]} (process/stack/stacks.h). */
void inspect_stacks(const struct inspect *inspect, const json_t *message);
/* {"op":"explain","id":…,"signal":N}: writes where the processes of these attempts are into their
 * logs, once for each, within a second; then sends the signal, if there is one. */
void inspect_explain(const struct inspect *inspect, const json_t *message);
