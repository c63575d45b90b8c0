/* Answers questions about a pod from what is known of it: which containers live, which are
 * restarted, and the phase and conditions that follow. It changes nothing. See pod.h.
 */
#include "pod/machine.h"

#include "base/doc.h"

#include <assert.h>
#include <string.h>

bool pod_is_live(const struct container *c)
{
    return c->state == CONTAINER_STARTING || c->state == CONTAINER_RUNNING;
}

bool pod_any_live(const struct pod *pod)
{
    for (size_t i = 0; i < pod->count; i++) {
        if (pod_is_live(&pod->containers[i])) {
            return true;
        }
    }
    return false;
}

bool pod_init_done(const struct pod *pod)
{
    for (size_t i = 0; i < pod->init_count; i++) {
        const struct container *c = &pod->containers[i];
        if (c->state != CONTAINER_TERMINATED || c->end.code != 0) {
            return false;
        }
    }
    return true;
}

static bool names_code(const json_t *codes, int code)
{
    size_t index;
    json_t *each;
    bool in = false;
    json_array_foreach (doc_at(codes, "values"), index, each) {
        in = in || json_integer_value(each) == code;
    }
    return in == (strcmp(doc_text(codes, "operator", "In"), "In") == 0);
}

/* Whether a rule restarts the container: this is the only action of a rule. */
static bool rules_restart(const json_t *container, int code)
{
    size_t index;
    json_t *rule;
    json_array_foreach (doc_at(container, "restartPolicyRules"), index, rule) {
        const json_t *codes = doc_at(rule, "exitCodes");
        if (codes && strcmp(doc_text(rule, "action", ""), "Restart") == 0 &&
            names_code(codes, code)) {
            return true;
        }
    }
    return false;
}

/* An init container that succeeded is never run again; a failed one is, unless the policy is
 * Never. */
bool pod_restarts(const struct pod *pod, const struct container *c, int code)
{
    assert(c >= pod->containers && c < pod->containers + pod->count);
    if (pod->ending) {
        return false;
    }
    if (!c->init && rules_restart(c->spec, code)) {
        return true;
    }
    switch (c->restart) {
    case POD_RESTART_ALWAYS: return !c->init || code != 0;
    case POD_RESTART_ON_FAILURE: return code != 0;
    case POD_RESTART_NEVER: return false;
    }
    return false;
}

static enum pod_phase phase_of_ended(const struct pod *pod)
{
    bool live = false;
    bool ran = false;
    bool failed = false;
    for (size_t i = 0; i < pod->count; i++) {
        const struct container *c = &pod->containers[i];
        live |= pod_is_live(c);
        ran |= c->state == CONTAINER_RUNNING || c->attempt > 0 || c->end.known;
        failed |= c->state != CONTAINER_TERMINATED || c->end.code != 0;
    }
    if (live) {
        return ran ? POD_PHASE_RUNNING : POD_PHASE_PENDING;
    }
    return failed || pod->reason[0] ? POD_PHASE_FAILED : POD_PHASE_SUCCEEDED;
}

static bool init_failed_for_good(const struct pod *pod)
{
    for (size_t i = 0; i < pod->init_count; i++) {
        const struct container *c = &pod->containers[i];
        if (c->state == CONTAINER_TERMINATED && c->end.code != 0 &&
            !pod_restarts(pod, c, c->end.code)) {
            return true;
        }
    }
    return false;
}

/* An ending pod becomes Failed or Succeeded only when no process is left, since the controller may
 * then create its successor at once. */
enum pod_phase pod_phase(const struct pod *pod)
{
    if (pod->ending && pod->scheduled) {
        return phase_of_ended(pod);
    }
    if (pod->ending && pod->reason[0]) {
        return POD_PHASE_FAILED;
    }
    if (init_failed_for_good(pod)) {
        return POD_PHASE_FAILED;
    }
    size_t never_ran = 0;
    size_t ended = 0;
    size_t failed = 0;
    for (size_t i = pod->init_count; i < pod->count; i++) {
        const struct container *c = &pod->containers[i];
        bool started = c->state == CONTAINER_RUNNING || c->state == CONTAINER_TERMINATED;
        never_ran += !started && !c->crashed && c->attempt == 0;
        bool over = c->state == CONTAINER_TERMINATED && !pod_restarts(pod, c, c->end.code);
        ended += over;
        failed += over && c->end.code != 0;
    }
    if (never_ran > 0 || !pod_init_done(pod)) {
        return POD_PHASE_PENDING;
    }
    if (ended < pod->count - pod->init_count) {
        return POD_PHASE_RUNNING;
    }
    return failed ? POD_PHASE_FAILED : POD_PHASE_SUCCEEDED;
}

static bool all_running(const struct pod *pod)
{
    for (size_t i = pod->init_count; i < pod->count; i++) {
        if (pod->containers[i].state != CONTAINER_RUNNING) {
            return false;
        }
    }
    return true;
}

bool pod_condition_now(const struct pod *pod, enum pod_condition condition)
{
    switch (condition) {
    case POD_INITIALIZED: return pod->scheduled && pod_init_done(pod);
    case POD_READY: return all_running(pod) && !pod->ending;
    case POD_CONTAINERS_READY: return all_running(pod);
    case POD_HAS_NODE: return pod->scheduled;
    case POD_CONDITIONS: break;
    }
    return false;
}

bool pod_is_finished(const struct pod *pod)
{
    enum pod_phase phase = pod_phase(pod);
    return (phase == POD_PHASE_SUCCEEDED || phase == POD_PHASE_FAILED) && !pod_any_live(pod);
}
