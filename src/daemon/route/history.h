/* /muster/v1/history…: the runs that are kept, and those that jobs are now.
 *
 *     GET    history?namespace=NS&job=JOB&limit=N       {"runs": [summary, newest first]}
 *     GET    history/NS/JOB/RUN                         {"summary", "job", "pods", "events"}
 *     GET    history/NS/JOB/RUN/pods/POD/log?uid=UID…   as the API's log; uid= chooses among pods
 *                                                       that had the name one after the other
 *     DELETE history?namespace=NS&job=JOB&run=RUN       {"removed": N}; a job's own run stays
 *
 * A summary is summary.h's, with "current": whether it is of a job that is there.
 * Parameters may be left out: any.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "daemon/machine/disk.h"
#include "daemon/route/runs.h"
#include "http/http.h"

struct history_routes {
    uv_loop_t *loop;
    struct run_places places;
    struct disk *disk; /* removes runs */
};

/* Answers the request; a removal is answered when it is done. `rest` is what follows "history": ""
 * or "/NS/JOB/RUN…". */
void history_routes_handle(const struct history_routes *routes, const char *rest,
                           const struct http_request *request, struct http_reply *reply);
