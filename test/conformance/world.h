/* Runs a function as every rank of a world: in processes, or in threads of this process, so that
 * the thread sanitizer sees what ranks share. Tests only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <muster/comm.h>

/* A rank's part of a test. Returns 0 if all is well; otherwise prints what is wrong to stderr. */
typedef int (*world_fn)(struct muster_comm *comm, void *context);

enum world_kind { WORLD_PROCESSES, WORLD_THREADS };

struct world {
    enum world_kind kind;
    int size;
    const char *transport;
    int64_t timeout_ms;           /* 0: 60 s */
    int64_t heartbeat_timeout_ms; /* 0: the default */
    /* Called in a rank's process, before it meets the others; the rank fails if it does not return
     * 0. May be NULL. */
    int (*enter)(int rank, void *context);
    /* Called in this process while the ranks run; pids in rank order. May be NULL. */
    void (*meanwhile)(const pid_t *pids, int size, void *context);
    bool process_spaces; /* each rank is the init of a PID namespace of its own (root) */
    /* Sets of ranks, made with WORLD_RANK: ranks that SIGKILL must end, and ranks that it may end.
     * If it ends another rank, that rank has failed. */
    uint64_t killed;
    uint64_t may_be_killed;
};

#define WORLD_RANK(rank) (UINT64_C(1) << (rank))

/* Returns how many ranks have failed: 0 if all returned 0 within their time, or were killed as
 * expected. */
int world_run(const struct world *world, world_fn fn, void *context);

/* Returns a rank's transport in a world of this transport. "mixed": the even ranks share a host,
 * each odd rank has its own. "hosts2", "hosts3": that many hosts, to which the ranks are given in
 * turn. */
const char *world_transport(const char *transport, int rank, char *ret_group, size_t size_bytes);

/* Makes the data of the tests: any element of any rank's input, from a seed. */
uint64_t world_hash(uint64_t seed, uint64_t rank, uint64_t index);

/* For use in a rank: if the condition is false, prints where and what failed, and makes the rank
 * return. */
#define WORLD_CHECK(condition, ...)                                                                \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            world_complain(__FILE__, __LINE__, __VA_ARGS__);                                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)
void world_complain(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
