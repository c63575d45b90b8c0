/* Faults on one host: a death is proven and named however much memory the rank has, a stopped rank
 * is evicted and harms nobody when it continues, a late rank hides neither fault, and neither
 * pauses nor load are taken for a fault. */
#include "scene.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "conformance/world.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * KIB };

static bool may_make_namespaces(int flags)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(unshare(flags) != 0);
    }
    int status = -1;
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static void all_name_the_victim(const struct scene *scene, enum muster_peer_state state)
{
    int victim = scene->size - 1;
    assert_true(scene_is_consistent(scene));
    for (int r = 0; r < victim; r++) {
        const struct scene_note *note = scene_note(r);
        if (note->about != victim || note->victim != state || note->wrong || note->disturbed) {
            fail_msg("rank %d says %d about %d (state %d, wrong %d, disturbed %d): %s", r,
                     (int)note->code, note->about, (int)note->victim, note->wrong, note->disturbed,
                     note->text);
        }
    }
}

static void nobody_complains(const struct scene *scene)
{
    for (int r = 0; r < scene->size; r++) {
        const struct scene_note *note = scene_note(r);
        if (note->code != 0 || note->wrong || note->rounds == 0) {
            fail_msg("rank %d says %d (wrong %d): %s", r, (int)note->code, note->wrong, note->text);
        }
    }
}

static void a_killed_rank_is_proven_dead(void **state)
{
    (void)state;
    static const size_t memory[] = {0, 256 * (size_t)MIB}, counts[] = {2, 100000};
    for (int i = 0; i < 4; i++) {
        struct scene scene = {.size = 3,
                              .count = counts[i % 2],
                              .memory_bytes = memory[i / 2],
                              .fault = SCENE_KILL,
                              .direct = i == 1};
        assert_int_equal(scene_run(&scene), 0);
        all_name_the_victim(&scene, MUSTER_PEER_DEAD);
    }
}

static void also_among_many_processes(void **state)
{
    (void)state;
    scene_load_start(6);
    struct scene scene = {.size = 2, .count = 1000, .fault = SCENE_KILL};
    int rc = scene_run(&scene);
    scene_load_stop();
    assert_int_equal(rc, 0);
    all_name_the_victim(&scene, MUSTER_PEER_DEAD);
}

/* Short, so that the test is short; longer on machines where live ranks may be silent for so long.
 */
static int64_t heartbeat_timeout_ms(void)
{
    return INT64_C(300) * test_limit_ms() / TEST_LIMIT_MS;
}

static void stop_and_continue(bool process_spaces, bool direct)
{
    struct scene scene = {.size = 3,
                          .count = 300000,
                          .fault = SCENE_STOP,
                          .heartbeat_timeout_ms = heartbeat_timeout_ms(),
                          .process_spaces = process_spaces,
                          .direct = direct};
    for (int i = 0; i < 3; i++) {
        scene.for_ms = 7 * i;
        assert_int_equal(scene_run(&scene), 0);
        all_name_the_victim(&scene, process_spaces ? MUSTER_PEER_SUSPECTED : MUSTER_PEER_DEAD);
    }
}

static void a_stopped_rank_is_killed(void **state)
{
    (void)state;
    stop_and_continue(false, false);
    stop_and_continue(false, true);
}

static void where_it_cannot_be_killed_it_is_cut_off(void **state)
{
    (void)state;
    if (!may_make_namespaces(CLONE_NEWPID)) {
        skip();
    }
    stop_and_continue(true, false);
    stop_and_continue(true, true);
}

static void pauses_and_load_are_no_faults(void **state)
{
    (void)state;
    scene_load_start(6);
    struct scene scene = {.size = 2,
                          .count = 1000,
                          .memory_bytes = 256 * (size_t)MIB,
                          .for_ms = 3000,
                          .pause_ms = 400};
    int rc = scene_run(&scene);
    scene_load_stop();
    assert_int_equal(rc, 0);
    nobody_complains(&scene);
}

/* ---- while another is late ---- */

static const struct absence {
    const char *transport;
    int size;
    int late;
    int dead;
} absences[] = {
    {"auto", 3, 1, 2},  {"auto", 3, 2, 1},   {"tcp", 3, 1, 2},    {"tcp", 3, 2, 1},
    {"mixed", 3, 2, 1}, {"hosts2", 4, 2, 1}, {"hosts2", 4, 2, 3},
};

static atomic_bool *learnt; /* rank 0 has noticed the death */

/* A rank that computes enters the call only when rank 0 knows that it cannot complete. */
static int dies_while_another_is_late(struct muster_comm *comm, void *context)
{
    const struct absence *absence = context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm);
    if (rank == absence->dead) {
        (void)raise(SIGKILL);
    }
    for (int64_t end = 0; rank == absence->late && !atomic_load(learnt);) {
        WORLD_CHECK(test_turn(&end), "rank 0 waits for who is late, and another is dead");
    }
    int rc = muster_barrier(comm, &err);
    WORLD_CHECK(rc == MUSTER_EPEERDEAD && err.rank == absence->dead, "%d %s", rc, err.text);
    if (rank == 0) {
        atomic_store(learnt, true);
    }
    return 0;
}

static void who_died_is_named_before_who_is_late_comes(void **state)
{
    (void)state;
    learnt = mmap(NULL, sizeof *learnt, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < sizeof absences / sizeof absences[0]; i++) {
        const struct absence *a = &absences[i];
        struct world w = {.kind = WORLD_PROCESSES,
                          .size = a->size,
                          .transport = a->transport,
                          .killed = WORLD_RANK(a->dead)};
        atomic_store(learnt, false);
        assert_int_equal(world_run(&w, dies_while_another_is_late, (void *)(uintptr_t)a), 0);
    }
    (void)munmap((void *)learnt, sizeof *learnt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_proven_dead),
        cmocka_unit_test(also_among_many_processes),
        cmocka_unit_test(who_died_is_named_before_who_is_late_comes),
        cmocka_unit_test(a_stopped_rank_is_killed),
        cmocka_unit_test(where_it_cannot_be_killed_it_is_cut_off),
        cmocka_unit_test(pauses_and_load_are_no_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
