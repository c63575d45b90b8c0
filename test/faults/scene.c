/* Faults in a world of processes: see scene.h. What the ranks and the test share is in one page
 * that all inherit. */
#include "scene.h"

#include "base/testing/test_wait.h"
#include "conformance/world.h"
#include "network.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LOAD = 64, WARM_ROUNDS = 10 };

static struct shared {
    _Atomic int64_t fault_ns;
    _Atomic bool enough;  /* ranks agree to end */
    _Atomic bool settled; /* nothing more can happen to the survivors */
    struct scene_note notes[SCENE_MAX_RANKS];
} * shared;

static pid_t load[MAX_LOAD];
static int num_load;

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- a rank ---- */

static void touch(size_t bytes)
{
    char *memory =
        bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
              : MAP_FAILED;
    if (memory != MAP_FAILED) {
        (void)madvise(memory, bytes, MADV_NOHUGEPAGE); /* small pages are slow to free */
        memset(memory, 1, bytes);
    }
}

static int enter(int rank, void *context)
{
    const struct scene *scene = context;
    if (scene->networks &&
        (!network_enter(rank) || (scene->loss > 0 && !network_lose(scene->loss)))) {
        return 1;
    }
    touch(rank == scene->size - 1 ? scene->memory_bytes : 0);
    return 0;
}

static float input(int rank, size_t i)
{
    return (float)(rank + 1 + (int)(i % 7));
}

static bool is_right(const struct scene *scene, const float *sum)
{
    float ranks = (float)(scene->size * (scene->size + 1) / 2);
    for (size_t i = 1; i < scene->count; i += i < 16 ? 1 : scene->count / 61 + 1) {
        if (sum[i] != ranks + (float)(scene->size * (int)(i % 7))) {
            return false;
        }
    }
    return true;
}

static void learn(struct muster_comm *comm, const struct scene *scene, int code,
                  const struct muster_err *err)
{
    struct scene_note *note = &shared->notes[muster_comm_rank(comm)];
    note->after_ns = now_ns() - atomic_load(&shared->fault_ns);
    enum muster_peer_state peers[SCENE_MAX_RANKS];
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    muster_comm_query(comm, &state, peers, NULL);
    note->victim = peers[scene->size - 1];
    note->about = err->rank;
    (void)snprintf(note->text, sizeof note->text, "%s", err->text);
    atomic_store(&note->code, code);
}

/* Checks that nobody else writes into a survivor's memory any more. */
static void guard(float *memory, const struct scene *scene, struct scene_note *note)
{
    for (size_t i = 0; i < scene->count; i++) {
        memory[i] = (float)i;
    }
    for (int64_t end = 0; !atomic_load(&shared->settled) && test_turn(&end);) {
    }
    for (size_t i = 0; i < scene->count; i++) {
        note->disturbed |= memory[i] != (float)i;
    }
}

static int reduce_without_end(struct muster_comm *comm, void *context)
{
    const struct scene *scene = context;
    int rank = muster_comm_rank(comm), rc = 0;
    struct scene_note *note = &shared->notes[rank];
    struct muster_err err = MUSTER_ERR_INIT;
    void *in = NULL, *out = NULL;
    size_t bytes = scene->count * sizeof(float);
    if (scene->direct) {
        rc = muster_comm_alloc(comm, bytes, &in, &err);
        rc = rc < 0 ? rc : muster_comm_alloc(comm, bytes, &out, &err);
    } else {
        in = malloc(bytes);
        out = malloc(bytes);
    }
    for (bool going = true; rc == 0 && going;) {
        for (size_t i = 0; i < scene->count; i++) {
            ((float *)in)[i] = input(rank, i);
        }
        ((float *)in)[0] = atomic_load(&shared->enough);
        atomic_fetch_add(&note->entered, 1);
        rc = muster_all_reduce(comm, in, out, scene->count, MUSTER_F32, MUSTER_SUM, &err);
        going = rc == 0 && ((float *)out)[0] == 0;
        note->wrong |= rc == 0 && !is_right(scene, out);
        atomic_fetch_add(&note->rounds, rc == 0);
    }
    if (rc < 0) {
        learn(comm, scene, rc, &err);
        if (rank != scene->size - 1) {
            guard(out, scene, note);
        }
    }
    return 0;
}

/* ---- the test ---- */

static bool all_have_warmed(int size)
{
    for (int r = 0; r < size; r++) {
        if (atomic_load(&shared->notes[r].rounds) < WARM_ROUNDS &&
            atomic_load(&shared->notes[r].code) == 0) {
            return false;
        }
    }
    return true;
}

static bool survivors_know(int size)
{
    for (int r = 0; r < size - 1; r++) {
        if (atomic_load(&shared->notes[r].code) == 0) {
            return false;
        }
    }
    return true;
}

static void wait_until(bool (*condition)(int size), int size)
{
    for (int64_t end = 0; !condition(size) && test_turn(&end);) {
    }
}

static void wait_for_end(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    (void)poll(&p, fd >= 0, test_limit_ms());
    (void)close(fd);
}

static void pause_again_and_again(pid_t pid, const struct scene *scene)
{
    for (int64_t end = now_ns() + scene->for_ms * 1000000; now_ns() < end;) {
        (void)kill(pid, SIGSTOP);
        test_let_pass(scene->pause_ms);
        (void)kill(pid, SIGCONT);
        test_let_pass(scene->pause_ms / 4 + 1);
    }
}

static void strike(pid_t victim, const struct scene *scene)
{
    atomic_store(&shared->fault_ns, now_ns());
    switch (scene->fault) {
    case SCENE_NOTHING: atomic_store(&shared->enough, true); return;
    case SCENE_KILL: (void)kill(victim, SIGKILL); break;
    case SCENE_STOP: (void)kill(victim, SIGSTOP); break;
    case SCENE_CUT: network_cut(scene->size - 1); break;
    }
    wait_until(survivors_know, scene->size);
    if (scene->fault == SCENE_STOP) {
        (void)kill(victim, SIGCONT);
    }
    wait_for_end(victim);
}

static void meanwhile(const pid_t *pids, int size, void *context)
{
    const struct scene *scene = context;
    pid_t victim = pids[size - 1];
    wait_until(all_have_warmed, size);
    if (scene->load > 0) {
        scene_load_start(scene->load);
    }
    for (int r = 0; scene->rate && r < size; r++) {
        (void)network_slow(r, scene->rate, scene->latency);
    }
    if (scene->pause_ms > 0) {
        pause_again_and_again(victim, scene);
    } else {
        test_let_pass(scene->for_ms);
    }
    strike(victim, scene);
    if (scene->load > 0) {
        scene_load_stop();
    }
    atomic_store(&shared->settled, true);
}

int scene_run(const struct scene *scene)
{
    if (!shared) {
        shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    memset(shared, 0, sizeof *shared);
    network_renew();
    uint64_t victim = WORLD_RANK(scene->size - 1);
    struct world world = {.kind = WORLD_PROCESSES,
                          .size = scene->size,
                          .transport = scene->transport,
                          .heartbeat_timeout_ms = scene->heartbeat_timeout_ms,
                          .timeout_ms = scene->call_timeout_s * 1000,
                          .enter = enter,
                          .meanwhile = meanwhile,
                          .process_spaces = scene->process_spaces,
                          .killed = scene->fault == SCENE_KILL ? victim : 0,
                          .may_be_killed = scene->fault == SCENE_STOP ? victim : 0};
    return world_run(&world, reduce_without_end, (void *)(uintptr_t)scene);
}

const struct scene_note *scene_note(int rank)
{
    return &shared->notes[rank];
}

bool scene_is_consistent(const struct scene *scene)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (int r = 0; r < scene->size; r++) {
        uint64_t entered = atomic_load(&shared->notes[r].entered);
        uint64_t rounds = atomic_load(&shared->notes[r].rounds);
        least = entered < least ? entered : least;
        most = rounds > most ? rounds : most;
    }
    return most <= least;
}

void scene_load_start(int processes)
{
    for (num_load = 0; num_load < processes && num_load < MAX_LOAD; num_load++) {
        load[num_load] = fork();
        if (load[num_load] == 0) {
            for (volatile unsigned turns = 0;; turns++) {
            }
        }
    }
}

void scene_load_stop(void)
{
    while (num_load > 0) {
        (void)kill(load[--num_load], SIGKILL);
        (void)waitpid(load[num_load], NULL, 0);
    }
}
