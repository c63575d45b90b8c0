/* Faults between hosts, each of which is a network namespace: a killed rank is named however much
 * memory it has, a cut cable causes a suspicion, and a slow or lossy network causes neither. */
#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "conformance/world.h"
#include "network.h"
#include "scene.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

enum { MIB = 1024 * 1024 };

static void a_killed_rank_is_named(void **state)
{
    (void)state;
    static const size_t memory[] = {0, 512 * (size_t)MIB}, counts[] = {2, 100000};
    for (int i = 0; i < 4; i++) {
        struct scene scene = {.size = 3,
                              .networks = true,
                              .count = counts[i % 2],
                              .memory_bytes = memory[i / 2],
                              .fault = SCENE_KILL};
        assert_int_equal(scene_run(&scene), 0);
        assert_true(scene_is_consistent(&scene));
        for (int r = 0; r < 2; r++) {
            const struct scene_note *note = scene_note(r);
            if (note->about != 2 || note->victim != MUSTER_PEER_DEAD || note->wrong) {
                fail_msg("rank %d: %d about %d, state %d: %s", r, note->code, note->about,
                         (int)note->victim, note->text);
            }
        }
    }
}

static void suspected(enum scene_fault fault)
{
    struct scene scene = {
        .size = 3, .networks = true, .count = 1000, .fault = fault, .heartbeat_timeout_ms = 500};
    assert_int_equal(scene_run(&scene), 0);
    assert_true(scene_is_consistent(&scene));
    for (int r = 0; r < 2; r++) {
        const struct scene_note *note = scene_note(r);
        if (note->about != 2 || note->victim != MUSTER_PEER_SUSPECTED || note->wrong ||
            note->disturbed) {
            fail_msg("rank %d: %d about %d, state %d, disturbed %d: %s", r, note->code, note->about,
                     (int)note->victim, note->disturbed, note->text);
        }
    }
    /* A rank that is cut off from the others comes to the same conclusion. */
    assert_int_not_equal(scene_note(2)->code, 0);
}

static void a_cut_cable_is_a_suspicion(void **state)
{
    (void)state;
    suspected(SCENE_CUT);
}

static void a_stopped_rank_is_evicted(void **state)
{
    (void)state;
    suspected(SCENE_STOP);
}

static void results_stay_right(const struct scene *scene)
{
    assert_int_equal(scene_run(scene), 0);
    for (int r = 0; r < scene->size; r++) {
        const struct scene_note *note = scene_note(r);
        if (note->code != 0 || note->wrong || note->rounds == 0) {
            fail_msg("rank %d: %d after %llu rounds, wrong %d: %s", r, note->code,
                     (unsigned long long)note->rounds, note->wrong, note->text);
        }
    }
}

static void a_slow_network_is_no_fault(void **state)
{
    (void)state;
    const struct scene scene = {.size = 3,
                                .networks = true,
                                .count = 50000,
                                .for_ms = 4000,
                                .rate = "20mbit",
                                .latency = "400ms"};
    results_stay_right(&scene);
}

static void a_lossy_network_is_no_fault(void **state)
{
    (void)state;
    const struct scene scene = {
        .size = 3, .networks = true, .count = 5000, .for_ms = 4000, .loss = 0.1};
    results_stay_right(&scene);
}

enum { GIFT = 30000 };

static struct shared {
    _Atomic int entered; /* ranks that have entered their networks */
    _Atomic bool slow;
} * shared;

static int enter_network(int rank, void *context)
{
    (void)context;
    bool entered = network_enter(rank);
    atomic_fetch_add(&shared->entered, 1);
    return entered ? 0 : 1;
}

static void slow_down(const pid_t *pids, int size, void *context)
{
    (void)pids;
    (void)context;
    while (atomic_load(&shared->entered) < size) {
        (void)sched_yield();
    }
    for (int r = 0; r < size; r++) {
        (void)network_slow(r, "2mbit", "2s");
    }
    atomic_store(&shared->slow, true);
}

/* Rank 0 gives its kernel data that takes half a second on the wire, and leaves. */
static int take_what_it_left(struct muster_comm *comm, void *context)
{
    bool message = context != NULL;
    static float gift[GIFT];
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm);
    while (!atomic_load(&shared->slow)) {
        (void)sched_yield();
    }
    gift[GIFT - 1] = rank == 0 ? 7 : 0;
    int rc = !message ? muster_broadcast(comm, gift, GIFT, MUSTER_F32, 0, &err)
             : rank == 0
                 ? muster_send(comm, gift, GIFT, MUSTER_F32, 1, 0, &err)
                 : muster_recv(comm, gift, GIFT, MUSTER_F32, MUSTER_ANY_SOURCE, 0, NULL, &err);
    WORLD_CHECK(rc == 0 && gift[GIFT - 1] == 7, "rank %d: %d %s", rank, rc, err.text);
    if (rank == 1) { /* nothing else arrives */
        rc = message ? muster_recv(comm, gift, 1, MUSTER_F32, 0, 0, NULL, &err)
                     : muster_barrier(comm, &err);
        WORLD_CHECK(rc == MUSTER_EABORTED && err.rank == 0, "%d %s", rc, err.text);
    }
    return 0;
}

static void what_a_rank_sent_arrives_after_it_has_left(void **state)
{
    struct world world = {
        .kind = WORLD_PROCESSES, .size = 2, .enter = enter_network, .meanwhile = slow_down};
    static char message[] = "message";
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++) {
        *shared = (struct shared){0};
        network_renew();
        assert_int_equal(world_run(&world, take_what_it_left, i ? message : NULL), 0);
    }
    (void)munmap(shared, sizeof *shared);
}

/* The data that rank 0 sent before it left is lost three times; its kernel needs 1.4 s or more to
 * repeat it, much longer than a rank may be silent. */
static int wait_for_its_kernel(struct muster_comm *comm, void *context)
{
    enum { HELD_MS = 800, SMALL = 2000 }; /* the kernel takes 8 KB, though nothing gets through */
    static float gift[SMALL];
    struct muster_comm *late;
    struct muster_err err = MUSTER_ERR_INIT;
    (void)context;
    int rank = muster_comm_rank(comm);
    WORLD_CHECK(muster_comm_split(comm, 0, 0, &late, &err) == 0, "%s", err.text);
    WORLD_CHECK(muster_barrier(late, &err) == 0, "%s", err.text);
    WORLD_CHECK(rank == 1 || network_hold_back(true), "no iptables");
    gift[SMALL - 1] = rank == 0 ? 7 : 0;
    int rc = muster_broadcast(late, gift, SMALL, MUSTER_F32, 0, &err);
    WORLD_CHECK(rc == 0 && gift[SMALL - 1] == 7, "rank %d: %d %s", rank, rc, err.text);
    muster_comm_free(late);
    if (rank == 0) {
        test_let_pass(HELD_MS);
        WORLD_CHECK(network_hold_back(false), "no iptables");
    }
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "rank %d: %s", rank, err.text);
    return 0;
}

static void what_the_network_lost_arrives_after_its_rank_has_left(void **state)
{
    struct world world = {
        .kind = WORLD_PROCESSES, .size = 2, .enter = enter_network, .heartbeat_timeout_ms = 500};
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    network_renew();
    assert_int_equal(world_run(&world, wait_for_its_kernel, NULL), 0);
    (void)munmap(shared, sizeof *shared);
}

enum { FAREWELLS = 8 };

/* Rank 1 ends one communicator after the other while three of ten packets are lost: it lives, and
 * rank 0 must report that it lives, however late its messages arrive. */
static int part_in_a_storm(struct muster_comm *comm, void *context)
{
    struct muster_comm *comms[FAREWELLS];
    struct muster_err err = MUSTER_ERR_INIT;
    (void)context;
    int rank = muster_comm_rank(comm);
    for (int i = 0; i < FAREWELLS; i++) {
        WORLD_CHECK(muster_comm_split(comm, 0, 0, &comms[i], &err) == 0, "%s", err.text);
    }
    WORLD_CHECK(muster_barrier(comm, &err) == 0 && network_lose(0.3), "%s", err.text);
    for (int i = 0; i < FAREWELLS; i++) {
        enum muster_peer_state peers[2] = {MUSTER_PEER_ALIVE, MUSTER_PEER_CLOSED};
        struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
        int rc = rank == 0 ? muster_barrier(comms[i], &err) : MUSTER_EABORTED;
        if (rank == 0) {
            muster_comm_query(comms[i], &state, peers, NULL);
        } else if (i % 2) {
            muster_comm_abort(comms[i]);
        }
        muster_comm_free(comms[i]);
        WORLD_CHECK(rc == MUSTER_EABORTED && peers[1] == MUSTER_PEER_CLOSED, "%d: %d, state %d: %s",
                    i, rc, (int)peers[1], err.text);
    }
    return 0;
}

static void who_leaves_a_lossy_network_has_closed(void **state)
{
    struct world world = {.kind = WORLD_PROCESSES, .size = 2, .enter = enter_network};
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    network_renew();
    assert_int_equal(world_run(&world, part_in_a_storm, NULL), 0);
    (void)munmap(shared, sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_named),
        cmocka_unit_test(a_cut_cable_is_a_suspicion),
        cmocka_unit_test(a_stopped_rank_is_evicted),
        cmocka_unit_test(a_slow_network_is_no_fault),
        cmocka_unit_test(a_lossy_network_is_no_fault),
        cmocka_unit_test(what_a_rank_sent_arrives_after_it_has_left),
        cmocka_unit_test(what_the_network_lost_arrives_after_its_rank_has_left),
        cmocka_unit_test(who_leaves_a_lossy_network_has_closed),
    };
    if (!network_open()) {
        (void)puts("skipped: network namespaces need root and ip(8)");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
