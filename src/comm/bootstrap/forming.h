/* A communicator while it forms: how it waits, and what ends the wait early (a timeout, the user,
 * a member that is gone).
 *
 * To see that a member is gone, a rank connects to its endpoint: the host refuses the connection,
 * or ends it when the member ends later. Every member is watched in this way, not only the one
 * that is waited for, because that one may itself wait for another. This begins only after some
 * milliseconds; in most cases all members have come by then.
 *
 * Layer: comm. Memory: the caller's, who frees the communicator. Thread: the caller's.
 */
#pragma once

#include "comm/endpoint/endpoint.h"
#include "comm/state/state.h"
#include "comm/system/fork.h"

enum {
    FORMING_FIRST_MS = 5,  /* time before the first member is watched */
    FORMING_SLICE_MS = 20, /* time between two checks whether forming must end */
};

/* For callers that learn in another way that a member has ended. check is called every few
 * milliseconds until all have come, and the endpoints are not watched. It returns 0, or a negative
 * code and err. */
struct forming_watch {
    int (*check)(void *context, struct muster_err *err);
    void *context;
};

struct forming {
    struct muster_endpoint *endpoint;
    struct muster_comm *comm;
    const struct muster_member *members;
    uint64_t digest;
    int64_t deadline_ns;
    const struct muster_comm_options *options;
    const struct forming_watch *watch;
    int hosts[MUSTER_MAX_RANKS];   /* lowest rank on each rank's host */
    int under_way;                 /* a connection that is not a link yet; -1: none */
    int watches[MUSTER_MAX_RANKS]; /* connections to the members' endpoints; -1: none */
    bool patient;                  /* a wait has ended without success */
    int gone;                      /* the rank that is gone; -1: none is known */
    struct fork_watch fork;
};

/* The caller has filled in `hosts` and the fields above it. forming_close closes what is open. */
void forming_open(struct forming *f);
void forming_close(struct forming *f);
/* Called when all have come. */
void forming_unwatch(struct forming *f);

/* Waits, because this rank has not come, until the descriptor (-1: none) is ready, at most most_ms
 * (0: the caller has waited). Returns a negative code if forming must end. */
int forming_wait(struct forming *f, int fd, short events, int most_ms, int rank,
                 struct muster_err *err);
/* Returns the descriptor of a connection that has said hello; the caller owns it. */
int forming_connect(struct forming *f, int rank, int channel, struct muster_err *err);

/* Called when this rank gave up, with the reason in r and err. If it finds a member that is gone,
 * it returns and describes that instead. */
int forming_blame(struct forming *f, int rank, int r, struct muster_err *err);

bool forming_is_cancelled(const struct forming *f);
int forming_fail_cancelled(struct muster_err *err);
