/* See kubelet.h. */
#include "kubelet.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/time/timestamp.h"

#include <signal.h>
#include <stdio.h>

static void feed(struct sim_kubelet *k, struct sim_slot *slot, struct pod_event event, int64_t now);

void sim_kubelet_init(struct sim_kubelet *k, struct sim_store *store, const json_t *script)
{
    memset(k, 0, sizeof *k);
    k->store = store;
    k->script = script;
    k->attempts = json_object();
}

void sim_kubelet_done(struct sim_kubelet *k)
{
    for (size_t i = 0; i < SIM_PODS_MAX; i++) {
        k->slots[i].machine = pod_free(k->slots[i].machine);
    }
    json_decref(k->attempts);
}

/* Returns "worker-0" of "mnist-worker-0". */
static const char *replica_of(const char *pod_name)
{
    const char *at = strrchr(pod_name, '-');
    while (at > pod_name && at[-1] != '-') {
        at--;
    }
    return at ? at : pod_name;
}

static const json_t *next_act(struct sim_kubelet *k, const char *pod_name)
{
    const char *replica = replica_of(pod_name);
    const json_t *acts = json_object_get(k->script, replica);
    size_t done = (size_t)json_integer_value(json_object_get(k->attempts, replica));
    size_t last = json_array_size(acts) ? json_array_size(acts) - 1 : 0;
    json_object_set_new(k->attempts, replica, json_integer((json_int_t)done + 1));
    return json_array_get(acts, done < last ? done : last);
}

static void keep_record(struct sim_slot *slot, struct pod_event event, int64_t now)
{
    assert_true(slot->record_count < SIM_RECORDS_MAX);
    event.at_unix_ms = now;
    slot->records[slot->record_count++] = event;
}

/* Checks the most important invariant: an index has one process. */
static void check_alone(struct sim_kubelet *k, const struct sim_slot *slot)
{
    for (size_t i = 0; i < SIM_PODS_MAX; i++) {
        const struct sim_slot *other = &k->slots[i];
        if (other != slot && other->machine && strcmp(other->name, slot->name) == 0 &&
            other->processes[0].live) {
            k->broken = "two live pods for one index";
        }
    }
}

static void start_process(struct sim_kubelet *k, struct sim_slot *slot,
                          const struct pod_effect *effect, int64_t now)
{
    const struct pod_event started = {
        .kind = POD_STARTED, .container = effect->container, .attempt = effect->attempt};
    for (size_t i = 0; i < slot->record_count; i++) {
        if (slot->records[i].kind == POD_STARTED && slot->records[i].attempt == effect->attempt) {
            k->broken = "an attempt was started twice";
        }
    }
    check_alone(k, slot);
    const json_t *act = next_act(k, slot->name);
    const json_t *run = json_object_get(act, "run");
    int64_t ms = (int64_t)(json_number_value(run) * 1000);
    slot->processes[effect->container] = (struct sim_process){
        .live = true,
        .attempt = effect->attempt,
        .ends_unix_ms = json_is_number(run) ? now + ms : INT64_MAX,
        .code = (int)doc_int(act, "exit", 0),
        .oom = doc_bool(act, "oom", false),
        .ignores_term = doc_bool(act, "ignoresTerm", false),
    };
    keep_record(slot, started, now);
    feed(k, slot, started, now);
}

static void end_process(struct sim_kubelet *k, struct sim_slot *slot, size_t container, int code,
                        int64_t now)
{
    struct sim_process *p = &slot->processes[container];
    struct pod_event exited = {.kind = POD_EXITED,
                               .container = container,
                               .attempt = p->attempt,
                               .code = code,
                               .oom = p->oom && code == p->code};
    p->live = false;
    keep_record(slot, exited, now);
    feed(k, slot, exited, now);
}

static void signal_process(struct sim_kubelet *k, struct sim_slot *slot,
                           const struct pod_effect *effect, int64_t now)
{
    struct sim_process *p = &slot->processes[effect->container];
    if (p->live && (effect->signal == SIGKILL || !p->ignores_term)) {
        end_process(k, slot, effect->container, 128 + effect->signal, now);
    }
}

static void carry_out(struct sim_kubelet *k, struct sim_slot *slot, const struct pod_effects *fx,
                      int64_t now)
{
    slot->wake_unix_ms = INT64_MAX;
    for (size_t i = 0; i < fx->count && slot->machine; i++) {
        const struct pod_effect *e = &fx->list[i];
        switch (e->kind) {
        case POD_STATUS:
            if (!k->drop_status) {
                sim_store_set_status(k->store, slot->uid, pod_status(slot->machine));
            }
            break;
        case POD_WAKE_AT: slot->wake_unix_ms = e->at_unix_ms; break;
        case POD_GONE:
            sim_store_remove_pod(k->store, slot->uid);
            slot->machine = pod_free(slot->machine);
            break;
        case POD_START: start_process(k, slot, e, now); break;
        case POD_SIGNAL: signal_process(k, slot, e, now); break;
        }
    }
}

static void feed(struct sim_kubelet *k, struct sim_slot *slot, struct pod_event event, int64_t now)
{
    struct pod_effects fx;
    event.now_unix_ms = now;
    pod_step(slot->machine, &event, &fx);
    const char *broken = pod_check_invariants(slot->machine, &fx);
    k->broken = k->broken ? k->broken : broken;
    carry_out(k, slot, &fx, now);
}

static struct sim_slot *slot_of(struct sim_kubelet *k, const char *uid)
{
    for (size_t i = 0; i < SIM_PODS_MAX; i++) {
        if (k->slots[i].machine && strcmp(k->slots[i].uid, uid) == 0) {
            return &k->slots[i];
        }
    }
    return NULL;
}

static struct pod *make_machine(const json_t *object)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct pod *machine =
        pod_new((json_t *)object, &(struct pod_place){"sim", "10.0.0.1", ""}, &err);
    if (!machine) {
        fail_msg("%s", err.text);
    }
    return machine;
}

static void admit(struct sim_kubelet *k, const json_t *object, int64_t now)
{
    struct sim_slot *slot = k->slots;
    while (slot->machine) {
        slot++;
        assert_true(slot < k->slots + SIM_PODS_MAX);
    }
    *slot = (struct sim_slot){.machine = make_machine(object), .wake_unix_ms = INT64_MAX};
    snprintf(slot->uid, sizeof slot->uid, "%s", doc_text(object, "metadata.uid", ""));
    snprintf(slot->name, sizeof slot->name, "%s", doc_text(object, "metadata.name", ""));
    feed(k, slot, (struct pod_event){.kind = POD_SCHEDULED}, now);
}

/* Admits new pods, and tells the machines of deleted ones. The list changes in the loop, so it is
 * read from the end. */
static bool look_at_store(struct sim_kubelet *k, int64_t now)
{
    bool any = false;
    for (size_t i = json_array_size(k->store->pods); i-- > 0;) {
        const json_t *object = json_array_get(k->store->pods, i);
        struct sim_slot *slot = slot_of(k, doc_text(object, "metadata.uid", ""));
        bool deleted = doc_at(object, "metadata.deletionTimestamp") != NULL;
        if (!slot) {
            admit(k, object, now);
            any = true;
        } else if (deleted && !slot->delete_told) {
            slot->delete_told = true;
            feed(k, slot,
                 (struct pod_event){.kind = POD_DELETE,
                                    .grace_s = -1,
                                    .at_unix_ms = timestamp_read(
                                        doc_text(object, "metadata.deletionTimestamp", ""))},
                 now);
            any = true;
        }
    }
    return any;
}

/* Whether the restart policy is Always: then each restart counts, whatever the code. */
static bool always_restarts(const struct sim_kubelet *k, const struct sim_slot *slot)
{
    const json_t *object = sim_store_pod(k->store, slot->uid);
    return strcmp(doc_text(object, "spec.restartPolicy", ""), "Always") == 0;
}

static bool run_slot(struct sim_kubelet *k, struct sim_slot *slot, int64_t now)
{
    bool any = false;
    for (size_t i = 0; i < POD_CONTAINERS_MAX && slot->machine; i++) {
        struct sim_process *p = &slot->processes[i];
        if (p->live && p->ends_unix_ms <= now) {
            k->failures += p->code != 0 || always_restarts(k, slot);
            end_process(k, slot, i, p->code, now);
            any = true;
        }
    }
    if (slot->machine && slot->wake_unix_ms <= now) {
        feed(k, slot, (struct pod_event){.kind = POD_TICK}, now);
        any = true;
    }
    return any;
}

bool sim_kubelet_run(struct sim_kubelet *k, int64_t now)
{
    bool any = look_at_store(k, now);
    for (size_t i = 0; i < SIM_PODS_MAX; i++) {
        if (k->slots[i].machine) {
            any |= run_slot(k, &k->slots[i], now);
        }
    }
    return any;
}

int64_t sim_kubelet_next(const struct sim_kubelet *k)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < SIM_PODS_MAX; i++) {
        const struct sim_slot *slot = &k->slots[i];
        if (!slot->machine) {
            continue;
        }
        next = slot->wake_unix_ms < next ? slot->wake_unix_ms : next;
        for (size_t c = 0; c < POD_CONTAINERS_MAX; c++) {
            const struct sim_process *p = &slot->processes[c];
            next = p->live && p->ends_unix_ms < next ? p->ends_unix_ms : next;
        }
    }
    return next;
}

void sim_kubelet_crash(struct sim_kubelet *k, int64_t now)
{
    for (size_t i = 0; i < SIM_PODS_MAX; i++) {
        struct sim_slot *slot = &k->slots[i];
        const json_t *object = slot->machine ? sim_store_pod(k->store, slot->uid) : NULL;
        if (!object) {
            continue;
        }
        pod_free(slot->machine);
        slot->machine = make_machine(object);
        slot->delete_told = false;
        size_t records = slot->record_count; /* attempts that start meanwhile add records */
        for (size_t r = 0; r < records && slot->machine; r++) {
            feed(k, slot, slot->records[r], now);
        }
        if (slot->machine) {
            feed(k, slot, (struct pod_event){.kind = POD_ADOPTED}, now);
        }
        if (slot->machine && !doc_at(object, "status.startTime")) {
            feed(k, slot, (struct pod_event){.kind = POD_SCHEDULED}, now);
        }
    }
}

bool sim_kubelet_idle(const struct sim_kubelet *k)
{
    for (size_t i = 0; i < SIM_PODS_MAX; i++) {
        if (k->slots[i].machine && !pod_is_finished(k->slots[i].machine)) {
            return false;
        }
    }
    return true;
}
