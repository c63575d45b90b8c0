/* See autoscaler.h. */
#include "control/content/autoscaler.h"

#include "base/build.h"

bool control_wants_autoscaler(const struct job *job)
{
    return job->elastic.metrics && !job->suspend;
}

json_t *control_autoscaler_spec(const struct job *job)
{
    struct build b = {0};
    const struct job_elastic *elastic = &job->elastic;
    json_t *spec = build_value(&b, json_object());
    build_set(&b, spec, "scaleTargetRef",
              json_pack("{s:s, s:s, s:s}", "apiVersion", "kubeflow.org/v1", "kind", "PyTorchJob",
                        "name", job->name));
    build_int(&b, spec, "minReplicas", elastic->min_replicas);
    build_int(&b, spec, "maxReplicas", elastic->max_replicas);
    if (json_array_size(elastic->metrics) > 0) { /* an empty list becomes the server's default */
        build_set(&b, spec, "metrics", json_deep_copy(elastic->metrics));
    }
    return build_end(&b, spec);
}
