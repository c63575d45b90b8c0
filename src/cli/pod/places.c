/* See places.h. */
#include "cli/pod/places.h"

#include "cli/pod/ranks.h"

static bool has_started(const json_t *pod, const char *container)
{
    const json_t *status = ranks_container_status(pod, container);
    return doc_at(status, "state.running") || doc_at(status, "state.terminated");
}

static bool learn_list(struct cli *cli, const json_t *pod, const char *list, json_t *known)
{
    bool some = false;
    size_t i;
    json_t *container;
    json_array_foreach (doc_at(pod, list), i, container) {
        const char *called = doc_text(container, "name", "");
        json_t *place = NULL;
        if (has_started(pod, called) && !json_object_get(known, called) &&
            place_get(cli, pod, called, &place) == 0) {
            some = json_object_set_new(known, called, place) == 0 || some;
        }
    }
    return some;
}

bool places_learn(struct cli *cli, const json_t *pod, json_t *places)
{
    const char *name = doc_text(pod, "metadata.name", "");
    json_t *known = json_object_get(places, name);
    if (!known) {
        known = json_object();
        json_object_set_new(places, name, known);
    }
    bool init = learn_list(cli, pod, "spec.initContainers", known);
    return learn_list(cli, pod, "spec.containers", known) || init;
}

void places_refresh(struct cli *cli, json_t *pods, json_t *places)
{
    const char *name;
    json_t *pod;
    json_object_foreach (pods, name, pod) {
        const char *container = ranks_main_container(pod);
        json_t *known = json_object_get(places, name);
        json_t *place = NULL;
        if (json_object_get(known, container) && place_get(cli, pod, container, &place) == 0) {
            json_object_set_new(known, container, place);
        }
    }
}

const json_t *places_of(const json_t *places, const char *pod, const char *container)
{
    return json_object_get(json_object_get(places, pod), container);
}
