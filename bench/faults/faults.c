/* How soon survivors learn of a fault, and how long forming takes.
 *
 *     faults kill|stop|cut TRIALS MEMORY_MIB LOAD NETWORKS     microseconds of each survivor
 *     faults quiet SECONDS MEMORY_MIB LOAD NETWORKS PAUSE_MS LOSS RATE    false alarms and errors
 *     faults form TRIALS RANKS                                  microseconds of each rank
 *     faults form-dead TRIALS RANKS                             the same, the last of them is dead
 *
 * LOAD: busy processes beside the two ranks. NETWORKS 1: each rank in a network namespace (root).
 * Prints one JSON line.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "faults/network.h"
#include "faults/scene.h"

enum { MAX_RANKS = 16, MAX_TRIALS = 2000, MIB = 1 << 20, FORM_MS = 10000 };

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static const char *argument(int argc, char **argv, int index, const char *fallback)
{
    return index < argc ? argv[index] : fallback;
}

static long number(int argc, char **argv, int index)
{
    return strtol(argument(argc, argv, index, "0"), NULL, 10);
}

/* ---- faults ---- */

static int strike(enum scene_fault fault, int argc, char **argv)
{
    struct scene scene = {.size = 2,
                          .count = 1000,
                          .fault = fault,
                          .memory_bytes = (size_t)number(argc, argv, 3) * MIB,
                          .networks = number(argc, argv, 5) != 0};
    enum muster_peer_state expected =
        fault == SCENE_KILL || (fault == SCENE_STOP && !scene.networks) ? MUSTER_PEER_DEAD
                                                                        : MUSTER_PEER_SUSPECTED;
    int wrong = 0;
    (void)printf("{\"us\": [");
    for (long trial = 0; trial < number(argc, argv, 2); trial++) {
        scene.for_ms = trial * 7 % 23; /* at any point of the loop, and of a heartbeat's interval */
        wrong += scene_run(&scene) != 0;
        const struct scene_note *note = scene_note(0);
        wrong += note->about != 1 || note->victim != expected || note->wrong || note->disturbed;
        (void)printf("%s%.1f", trial > 0 ? ", " : "", (double)note->after_ns / 1000);
    }
    (void)printf("], \"wrong\": %d}\n", wrong);
    return 0;
}

static int be_quiet(int argc, char **argv)
{
    const char *rate = argument(argc, argv, 8, "");
    struct scene scene = {.size = 2,
                          .count = 1000,
                          .for_ms = number(argc, argv, 2) * 1000,
                          .memory_bytes = (size_t)number(argc, argv, 3) * MIB,
                          .load = (int)number(argc, argv, 4),
                          .networks = number(argc, argv, 5) != 0,
                          .pause_ms = number(argc, argv, 6),
                          .loss = strtod(argument(argc, argv, 7, "0"), NULL),
                          .rate = *rate ? rate : NULL,
                          .latency = "400ms",
                          .call_timeout_s = 90}; /* touching much memory takes some time */
    int failed = scene_run(&scene);
    int alarms = (scene_note(0)->code != 0) + (scene_note(1)->code != 0);
    int wrong = scene_note(0)->wrong + scene_note(1)->wrong;
    (void)printf("{\"rounds\": %llu, \"alarms\": %d, \"wrong\": %d, \"said\": \"%s\"}\n",
                 (unsigned long long)scene_note(0)->rounds, alarms, wrong + (failed && !alarms),
                 scene_note(0)->text);
    return 0;
}

/* ---- forming ---- */

static struct meeting {
    pthread_barrier_t barrier;
    struct muster_member members[MAX_RANKS];
    int64_t took_ns[MAX_RANKS][MAX_TRIALS];
} * meeting;

/* Whether forming has ended as it must if rank `dead` is dead; -1 if no rank is. */
static bool is_expected(int rc, const struct muster_err *err, int dead)
{
    return dead < 0 ? rc == 0 : rc == MUSTER_EUNAVAIL && err->rank == dead;
}

static int form_again_and_again(int rank, int ranks, long trials, int dead)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *endpoint;
    if (muster_endpoint_open("127.0.0.1", &endpoint, &err) < 0) {
        return 1;
    }
    muster_endpoint_member(endpoint, &meeting->members[rank]);
    int wrong = 0;
    for (long trial = 0; trial < trials; trial++) {
        struct muster_comm *comm;
        (void)pthread_barrier_wait(&meeting->barrier);
        int64_t start = now_ns();
        int rc = muster_comm_form(endpoint, meeting->members, ranks, rank, (uint64_t)trial, FORM_MS,
                                  NULL, &comm, &err);
        meeting->took_ns[rank][trial] = now_ns() - start;
        if (!is_expected(rc, &err, dead)) {
            (void)fprintf(stderr, "rank %d: %s\n", rank, err.text);
            wrong = 1;
        }
        (void)pthread_barrier_wait(&meeting->barrier);
        if (rc == 0) {
            muster_comm_free(comm);
        }
    }
    return wrong;
}

/* Writes a member whose process has ended. */
static void leave_dead(int rank)
{
    if (fork() == 0) {
        struct muster_endpoint *endpoint;
        if (muster_endpoint_open("127.0.0.1", &endpoint, NULL) == 0) {
            muster_endpoint_member(endpoint, &meeting->members[rank]);
        }
        _exit(0);
    }
    (void)wait(NULL);
}

static int form(int argc, char **argv, bool one_is_dead)
{
    long trials = number(argc, argv, 2);
    int ranks = (int)number(argc, argv, 3), failed = 0;
    if (trials < 1 || trials > MAX_TRIALS || ranks <= one_is_dead || ranks > MAX_RANKS) {
        return 64;
    }
    meeting =
        mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int alive = ranks - one_is_dead, dead = one_is_dead ? alive : -1;
    if (one_is_dead) {
        leave_dead(dead);
    }
    pthread_barrierattr_t shared;
    (void)pthread_barrierattr_init(&shared);
    (void)pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    (void)pthread_barrier_init(&meeting->barrier, &shared, (unsigned)alive);
    for (int r = 0; r < alive; r++) {
        if (fork() == 0) {
            (void)alarm(120);
            _exit(form_again_and_again(r, ranks, trials, dead));
        }
    }
    for (int status; wait(&status) > 0;) {
        failed += status != 0;
    }
    (void)printf("{\"us\": [");
    for (long i = 0; i < alive * trials; i++) {
        (void)printf("%s%.1f", i > 0 ? ", " : "",
                     (double)meeting->took_ns[i / trials][i % trials] / 1000);
    }
    (void)printf("], \"wrong\": %d}\n", failed);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argument(argc, argv, 1, "");
    (void)setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    if (number(argc, argv, 5) && !network_open()) {
        (void)puts("{\"skipped\": \"network namespaces need root and ip(8)\"}");
        return 0;
    }
    if (strcmp(what, "form") == 0 || strcmp(what, "form-dead") == 0) {
        return form(argc, argv, strcmp(what, "form-dead") == 0);
    }
    if (strcmp(what, "quiet") == 0) {
        return be_quiet(argc, argv);
    }
    scene_load_start((int)number(argc, argv, 4));
    int rc = strcmp(what, "kill") == 0   ? strike(SCENE_KILL, argc, argv)
             : strcmp(what, "stop") == 0 ? strike(SCENE_STOP, argc, argv)
             : strcmp(what, "cut") == 0  ? strike(SCENE_CUT, argc, argv)
                                         : 64;
    scene_load_stop();
    return rc;
}
