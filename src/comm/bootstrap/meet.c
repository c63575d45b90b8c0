/* Lets ranks that know only their number find each other: through a store, or at rank 0's port
 * (meet_port.c). They exchange the list of members; form.c does the rest.
 *
 * Layer: comm. Memory: the caller's. Thread: the caller's.
 */
#include "comm/bootstrap/meet.h"

#include "comm/bootstrap/form.h"
#include "comm/endpoint/endpoint.h"
#include "comm/system/deadline.h"
#include "comm/system/sized.h"

#include <stdio.h>
#include <stdlib.h>

static int meet_in_store(struct meeting *m, struct muster_err *err)
{
    const struct muster_comm_options *o = m->options;
    const struct muster_store *store = o->store;
    for (int turn = 0; turn < o->size; turn++) {
        char key[160];
        int peer = (o->rank + turn) % o->size; /* this rank's own member first */
        (void)snprintf(key, sizeof key, "muster/%.64s/%llu/%d", m->name,
                       (unsigned long long)o->generation, peer);
        size_t bytes = 0;
        int r = turn == 0
                    ? store->set(store->context, key, &m->members[peer], sizeof m->members[peer])
                    : store->get(store->context, key, &m->members[peer], sizeof m->members[peer],
                                 &bytes, (m->deadline_ns - deadline_now_ns()) / 1000000);
        if (r < 0) {
            return muster_fail(err, r, "the store has nothing from rank %d: %s", peer,
                               muster_code_text(r));
        }
        if (turn > 0 && bytes != sizeof m->members[peer]) {
            return muster_fail(err, MUSTER_EPROTO, "the store has %zu bytes under %s", bytes, key);
        }
    }
    return 0;
}

static int check_options(const struct muster_comm_options *o, struct muster_err *err)
{
    if (o->size < 1 || o->size > MUSTER_MAX_RANKS) {
        return muster_fail(err, MUSTER_EINVAL, "rank %d of %d: a world has 1 to %d ranks", o->rank,
                           o->size, MUSTER_MAX_RANKS);
    }
    if (o->rank < 0 || o->rank >= o->size) {
        return muster_fail(err, MUSTER_EINVAL, "rank %d of %d: ranks are 0 to %d", o->rank, o->size,
                           o->size - 1);
    }
    if (o->store && (!o->store->set || !o->store->get)) {
        return muster_fail(err, MUSTER_EINVAL, "the store needs both set and get");
    }
    if (o->size > 1 && !o->store && (!o->host || o->port < 1 || o->port > 65535)) {
        return muster_fail(err, MUSTER_EINVAL,
                           "the options need a store, or a host and a port from 1 to 65535");
    }
    return 0;
}

static int create(const struct muster_comm_options *options, struct muster_comm **ret,
                  struct muster_err *err)
{
    struct muster_endpoint *endpoint;
    int r = endpoint_open(NULL, options->host, options->transport, &endpoint, err);
    if (r < 0) {
        return r;
    }
    struct meeting m = {.options = options,
                        .name = options->name ? options->name : "world",
                        .deadline_ns = deadline_after_ms(options->timeout_ms),
                        .members = calloc((size_t)options->size, sizeof *m.members)};
    if (!m.members) {
        muster_endpoint_close(endpoint);
        return muster_fail(err, MUSTER_ENOMEM, "no memory for %d members", options->size);
    }
    muster_endpoint_member(endpoint, &m.members[options->rank]);
    if (options->size > 1) {
        r = options->store ? meet_in_store(&m, err) : meet_at_port(&m, err);
    }
    if (r == 0) {
        r = form_comm(endpoint, m.members, options->size, options->rank, options->generation,
                      m.deadline_ns, options, NULL, ret, err);
    }
    free(m.members);
    muster_endpoint_close(endpoint);
    return r;
}

int muster_comm_create(const struct muster_comm_options *options, struct muster_comm **ret,
                       struct muster_err *err)
{
    struct muster_comm_options own = MUSTER_COMM_OPTIONS_INIT;
    struct muster_store store = MUSTER_STORE_INIT;
    int r = sized_check_err(err);
    r = r < 0 ? r : sized_read(&sized_options, &own, options, err);
    if (r == 0 && own.store) {
        r = sized_read(&sized_store, &store, own.store, err);
        own.store = &store;
    }
    r = r < 0 ? r : check_options(&own, err);
    return r < 0 ? r : create(&own, ret, err);
}

/* Returns the name of the first of these variables that is set. */
static const char *first_set(const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value) {
            return *names;
        }
    }
    return NULL;
}

static const char *first_of(const char *const *names)
{
    const char *name = first_set(names);
    return name ? getenv(name) : NULL;
}

static int read_number(const char *const *names, int fallback, int *ret, struct muster_err *err)
{
    const char *text = first_of(names);
    char *end;
    long value = text ? strtol(text, &end, 10) : fallback;
    if (text && (*end || value < 0 || value > 65535)) {
        return muster_fail(err, MUSTER_ECONFIG, "%s is %s, which is not a valid rank, size or port",
                           first_set(names), text);
    }
    *ret = (int)value;
    return 0;
}

int muster_comm_from_env(struct muster_comm **ret, struct muster_err *err)
{
    static const char *const rank[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", NULL};
    static const char *const size[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    static const char *const port[] = {"MASTER_PORT", NULL};
    static const char *const address[] = {"MASTER_ADDR", NULL};
    static const char *const job[] = {"PMIX_NAMESPACE", "PMI_JOBID", NULL};
    struct muster_comm_options o = MUSTER_COMM_OPTIONS_INIT;
    int r = sized_check_err(err);
    r = r < 0 ? r : read_number(rank, 0, &o.rank, err);
    r = r < 0 ? r : read_number(size, 1, &o.size, err);
    r = r < 0 ? r : read_number(port, 29500, &o.port, err);
    o.host = first_of(address) ? first_of(address) : "127.0.0.1";
    o.name = first_of(job); /* two mpiruns that run at the same time must not mix, even if they
                               use one port */
    return r < 0 ? r : muster_comm_create(&o, ret, err);
}
