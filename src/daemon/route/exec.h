/* POST /muster/v1/namespaces/NS/…: what goes on with a rank's supervisor after an upgrade of the
 * connection (HTTP/1.1 101), without the controller.
 *
 *     pods/NAME/exec       {"command": ["sh"], "container"?, "stdin"?, "tty"?, "rows"?, "columns"?,
 *                          "term"?}; then the frames of process/wire/frame.h
 *     jobs/NAME/stdin      then a byte from the supervisor, which says that it listens, and bytes
 *                          from the client: the standard input of the rank that the job's
 *                          annotation names (job/annotations.h)
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "base/home.h"
#include "http/http.h"
#include "store/store.h"

/* Answers the request, now or later. `rest` is what follows "namespaces/". */
void exec_routes_handle(const struct home *home, struct store *store, const char *rest,
                        const struct http_request *request, struct http_reply *reply);
