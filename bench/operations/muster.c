/* libmuster as a runner: loaded by its path, so that two builds of it can run side by side in one
 * process. */
#include "operations.h"

#include <muster/muster.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

struct library {
    struct muster_comm *comm;
    struct muster_err err; /* made once, as in a program that loops over calls */
    int (*run)(struct muster_comm *, const struct muster_call *, struct muster_err *);
    int (*start)(struct muster_comm *, const struct muster_call *, struct muster_request **,
                 struct muster_err *);
    int (*wait)(struct muster_request *, int64_t, struct muster_err *);
    void (*free_request)(struct muster_request *);
    void (*free_comm)(struct muster_comm *);
};

static const enum muster_collective kinds[OPERATIONS] = {
    [ALL_REDUCE] = MUSTER_ALL_REDUCE, [ALL_REDUCE_STARTED] = MUSTER_ALL_REDUCE,
    [REDUCE] = MUSTER_REDUCE,         [REDUCE_SCATTER] = MUSTER_REDUCE_SCATTER,
    [ALL_GATHER] = MUSTER_ALL_GATHER, [BROADCAST] = MUSTER_BROADCAST,
    [GATHER] = MUSTER_GATHER,         [SCATTER] = MUSTER_SCATTER,
    [ALL_TO_ALL] = MUSTER_ALL_TO_ALL, [BARRIER] = MUSTER_BARRIER,
};

static void check(int rc, const struct muster_err *err)
{
    if (rc < 0) {
        die(err->text);
    }
}

static void there_and_back(struct library *l, const struct arguments *a)
{
    struct muster_call send = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_SEND,
                               .type = MUSTER_F32,
                               .peer = a->neighbour,
                               .in = a->in,
                               .count = a->count};
    struct muster_call receive = {.struct_size = sizeof(struct muster_call),
                                  .kind = MUSTER_RECV,
                                  .type = MUSTER_F32,
                                  .peer = a->neighbour,
                                  .out = a->out,
                                  .count = a->count};
    bool first = a->rank < a->neighbour;
    check(l->run(l->comm, first ? &send : &receive, &l->err), &l->err);
    check(l->run(l->comm, first ? &receive : &send, &l->err), &l->err);
}

static void window(struct library *l, const struct arguments *a)
{
    struct muster_request *requests[2 * MAX_WINDOW];
    for (int i = 0; i < 2 * a->window; i++) {
        bool receives = i < a->window;
        size_t at = (size_t)(i % a->window) * a->count;
        struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                   .kind = receives ? MUSTER_RECV : MUSTER_SEND,
                                   .type = MUSTER_F32,
                                   .peer = a->neighbour,
                                   .in = a->in + at,
                                   .out = a->out + at,
                                   .count = a->count};
        check(l->start(l->comm, &call, &requests[i], &l->err), &l->err);
    }
    for (int i = 0; i < 2 * a->window; i++) {
        check(l->wait(requests[i], -1, &l->err), &l->err);
        l->free_request(requests[i]);
    }
}

static void run(void *state, const struct arguments *a)
{
    struct library *l = state;
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = kinds[a->operation],
                               .type = MUSTER_F32,
                               .op = MUSTER_SUM,
                               .in = a->in,
                               .out = a->out,
                               .count = a->count};
    if (a->operation == THERE_AND_BACK) {
        there_and_back(l, a);
    } else if (a->operation == WINDOW) {
        window(l, a);
    } else if (a->operation == ALL_REDUCE_STARTED) {
        struct muster_request *request;
        check(l->start(l->comm, &call, &request, &l->err), &l->err);
        check(l->wait(request, -1, &l->err), &l->err);
        l->free_request(request);
    } else {
        check(l->run(l->comm, &call, &l->err), &l->err);
    }
}

static void close_library(void *state)
{
    struct library *l = state;
    l->free_comm(l->comm);
    free(l);
}

static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    if (!found) {
        die(dlerror());
    }
    return found;
}

struct runner muster_runner(const char *path, const char *name, const char *port, int rank,
                            int size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    struct library *l = calloc(1, sizeof *l);
    if (!handle || !l) {
        die(handle ? "no memory" : dlerror());
    }
    *(void **)&l->run = symbol(handle, "muster_run");
    *(void **)&l->start = symbol(handle, "muster_start");
    *(void **)&l->wait = symbol(handle, "muster_request_wait");
    *(void **)&l->free_request = symbol(handle, "muster_request_free");
    *(void **)&l->free_comm = symbol(handle, "muster_comm_free");
    int (*create)(const struct muster_comm_options *, struct muster_comm **, struct muster_err *);
    *(void **)&create = symbol(handle, "muster_comm_create");
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    l->err = (struct muster_err)MUSTER_ERR_INIT;
    options.rank = rank;
    options.size = size;
    options.host = getenv("MASTER_ADDR"); /* for ranks on several hosts (bench/network) */
    options.host = options.host ? options.host : "127.0.0.1";
    options.port = (int)strtol(port, NULL, 10);
    check(create(&options, &l->comm, &l->err), &l->err);
    return (struct runner){name, l, run, close_library};
}
