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
    FORMING_FIRST_MS = 5,  /* nobody is watched before */
    FORMING_SLICE_MS = 20, /* between two looks at what may end forming */
};

/* For callers that have another way to learn of a member's end: asked every few milliseconds until
 * all have come, and the endpoints are not watched. 0, or a negative code and err. */
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
    int under_way;                 /* a connection that is not yet a link; -1: none */
    int watches[MUSTER_MAX_RANKS]; /* connections to the members' endpoints; -1: none */
    bool patient;                  /* a wait has been in vain */
    int gone;                      /* the rank that is; -1: none is known */
    struct fork_watch fork;
};

/* The caller has filled in the fields above hosts, and hosts. forming_close closes what is open. */
void forming_open(struct forming *f);
void forming_close(struct forming *f);
/* All have come. */
void forming_unwatch(struct forming *f);

/* Waits until the descriptor (-1: none) is ready, at most most_ms (0: the caller has waited),
 * because this rank has not come. Negative once forming must end. */
int forming_wait(struct forming *f, int fd, short events, int most_ms, int rank,
                 struct muster_err *err);
/* The descriptor of a connection that has said hello: the caller's. */
int forming_connect(struct forming *f, int rank, int channel, struct muster_err *err);

/* This rank gave up, and r and err say so; whom it found to be gone they say instead, if that is
 * found here, too. */
int forming_blame(struct forming *f, int rank, int r, struct muster_err *err);

bool forming_is_cancelled(const struct forming *f);
int forming_fail_cancelled(struct muster_err *err);
