/* /muster/v1/namespaces/NS/pods…: pods of jobs with those that were deleted, their logs, and where
 * their files lie.
 *
 *     GET …/pods?labelSelector=…       {"live": [pods], "gone": [pods, oldest first]}
 *     GET …/pods/NAME/log?uid=UID&…        as the API's log; NAME may be deleted, and `previous`
 *                                          goes on to the pod that had the name before
 *     GET …/pods/NAME/container/C?uid=UID  {"cwd","mounts","logs"}
 *     GET …/pods/NAME/stacks?uid=UID       {"attempts": […]}: the stacks of the processes of the
 *                                          pod's job (process/stack/stacks.h)
 *
 * Without a uid NAME is the pod that has it now, else the last one that had it.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "api/api.h"
#include "base/home.h"
#include "daemon/agent/agent.h"
#include "http/http.h"
#include "store/store.h"

struct pod_routes {
    uv_loop_t *loop;
    const struct home *home;
    struct store *store;
    struct agent *agent;
};

/* Answers the request, now or later. `rest` is what follows "namespaces/". */
void pod_routes_handle(const struct pod_routes *routes, const char *rest,
                       const struct http_request *request, struct http_reply *reply);

/* Reads the query for a pod's log, with the parameters that only muster has. */
int pod_log_query_read(const struct http_request *request, const json_t *pod,
                       struct api_log_query *ret, struct muster_err *err);
