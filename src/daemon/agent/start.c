/* One container: builds what the supervisor starts, from the pod's objects and its job's
 * placement. See internal.h. */
#include "daemon/agent/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/machine/environments.h"
#include "daemon/machine/launch.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"
#include "job/job.h"

#include <string.h>
#include <sys/un.h>

/* Returns "POD-UID/CONTAINER/ATTEMPT". It has the uid since a pod that is made again has the same
 * name and another uid. */
char *agent_attempt_id(const struct agent_pod *pod, const struct pod_effect *effect)
{
    char *id = NULL;
    return asprintf(&id, "%s/%s/%d", pod->uid, pod_container_name(pod->machine, effect->container),
                    effect->attempt) < 0
               ? NULL
               : id;
}

static int find_object(void *data, const char *resource, const char *namespace, const char *name,
                       json_t **ret, struct muster_err *err)
{
    const struct agent *agent = data;
    return store_get(agent->options.store, (struct store_key){resource, namespace, name}, ret, err);
}

/* Lists all objects of one kind in the pod's namespace: {"name": object}. */
static int by_name(const struct agent_pod *pod, const char *resource, json_t **ret,
                   struct muster_err *err)
{
    struct store_page page = {0};
    const struct store_query query = {.resource = resource, .namespace = pod->namespace};
    int r = store_list(pod->agent->options.store, &query, &page, err);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *map = json_object();
    size_t i;
    json_t *object;
    json_array_foreach (page.items, i, object) {
        if (json_object_set(map, doc_text(object, "metadata.name", ""), object) != 0) {
            r = err_no_memory(err);
        }
    }
    store_page_done(&page);
    *ret = r == 0 ? muster_take(map) : NULL;
    return r;
}

static bool port_taken(void *data, int port)
{
    const struct agent *agent = data;
    for (const struct agent_job *job = agent->jobs; job; job = job->hh.next) {
        if (placement_holds(&job->placement, port)) {
            return true;
        }
    }
    return false;
}

/* Leases the job's ports. A job with a network of its own keeps the cluster's ports. */
static int local_addresses(struct agent_pod *pod, const struct job *job, struct address_map *ret,
                           struct muster_err *err)
{
    const char *network = jobs_annotation(job->object, JOB_ANNOTATION_NETWORK);
    *ret = (struct address_map){.job = job};
    if (network && strcmp(network, "private") == 0) {
        return 0;
    }
    struct placement *placement = &pod->job->placement;
    int r = 0;
    if (job->replica[JOB_MASTER].present) {
        r = placement_port(placement, "master", port_taken, pod->agent, &ret->master_port, err);
    }
    if (r == 0 && job->elastic.present) {
        r = placement_port(placement, "rdzv", port_taken, pod->agent, &ret->rdzv_port, err);
    }
    return r;
}

/* Returns the path of the coordinator's socket; NULL if the path is too long for a Unix socket, or
 * if the job runs in containers, which do not see our folders. */
static char *coordinator_socket(const struct agent_pod *pod, const struct job *job)
{
    const char *runtime = jobs_annotation(job->object, JOB_ANNOTATION_RUNTIME);
    char *path = NULL;
    if (!job->coordinated || (runtime && strcmp(runtime, "podman") == 0) ||
        asprintf(&path, "%s/coordinator.sock", pod->job->folder) < 0) {
        return NULL;
    }
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path) {
        free(path);
        return NULL;
    }
    return path;
}

/* `launch` has all but the addresses, which are found here; they are valid until this function
 * returns. */
static int make_local_spec(struct agent_pod *pod, struct launch *launch, json_t **ret,
                           struct muster_err *err)
{
    struct job job = {0};
    muster_auto(free) char *socket = NULL;
    int r = launch->job ? job_read(launch->job, &job, err) : 0;
    if (r == 0 && launch->job) {
        r = local_addresses(pod, &job, &launch->addresses, err);
        socket = coordinator_socket(pod, &job);
        launch->addresses.socket = socket;
    }
    r = r < 0 ? r : launch_spec(launch, ret, err);
    job_done(&job);
    launch->addresses = (struct address_map){0};
    return r;
}

static int make_spec(struct agent_pod *pod, const struct pod_effect *effect, json_t **ret,
                     struct muster_err *err)
{
    const struct agent_options *options = &pod->agent->options;
    muster_auto(doc) json_t *config_maps = NULL;
    muster_auto(doc) json_t *secrets = NULL;
    muster_auto(doc) json_t *owner = NULL;
    muster_auto(free) char *folder = NULL;
    int r = by_name(pod, "configmaps", &config_maps, err);
    r = r < 0 ? r : by_name(pod, "secrets", &secrets, err);
    r = r < 0 ? r : jobs_fetch_owner(options->store, pod->object, &owner, err);
    if (r < 0) {
        return r;
    }
    if (asprintf(&folder, "%s/pods/%s", pod->job->folder, pod->uid) < 0) {
        folder = NULL;
        return err_no_memory(err);
    }
    muster_auto(free) char *environment = environments_path(options->home, owner);
    struct launch launch = {
        .job = owner,
        .pod = pod->object,
        .container = pod_container(pod->machine, effect->container),
        .gpus = placement_gpus(&pod->job->placement, pod->uid),
        .hide_gpus = options->gpus->count > 0,
        .volumes = {options->home->path, folder, find_object, pod->agent, NULL},
        .config_maps = config_maps,
        .secrets = secrets,
        .node_name = options->node_name,
        .environment_file = environment,
    };
    return make_local_spec(pod, &launch, ret, err);
}

int agent_start_container(struct agent_pod *pod, const struct pod_effect *effect,
                          struct muster_err *err)
{
    muster_auto(doc) json_t *spec = NULL;
    muster_auto(free) char *id = agent_attempt_id(pod, effect);
    int r = id ? make_spec(pod, effect, &spec, err) : err_no_memory(err);
    return r < 0 ? r : process_job_start(pod->job->process, id, spec, err);
}
