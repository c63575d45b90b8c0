/* Random faults among the members of a crowd (crowd.h): 500 in CI, 10,000 by hand.
 *
 * `crowd_test MEMBERS`; MUSTER_SEED=n runs that seed alone. */
#include "base/testing/test_seeds.h"
#include "crowd.h"

enum { FAULTY_ROUNDS = 300, ROUNDS_MAX = 3000, ROUND_MS = 50 };

static uint32_t members = 500;

static void add_fault(struct crowd *c)
{
    struct worker *w = &c->workers[test_draw(&c->random, (uint32_t)c->worker_count)];
    switch (test_draw(&c->random, 12)) {
    case 0:
    case 1:
        if (w->lives) {
            crowd_die(c, w);
            c->killed++;
        }
        break;
    case 2:
        crowd_launch(c);
        c->joined++;
        break;
    case 3:
        if (w->lives && w->core.stage != COMMIT_OVER && !w->core.leaving) {
            c->left++;
            crowd_tell(c, w, (struct commit_event){.kind = COMMIT_LEAVE});
        }
        break;
    case 4:
        if (test_draw(&c->random, 8) == 0) {
            size_t open = c->journal_count - c->durable;
            crowd_restart(c, c->durable + test_draw(&c->random, (uint32_t)open + 1));
        }
        break;
    default: break;
    }
}

static void bury(struct crowd *c, struct worker *w)
{
    w->buried = true;
    if (w->known) {
        crowd_feed(c, (struct arbiter_event){.kind = ARBITER_DEAD,
                                             .incarnation = crowd_incarnation(c, w),
                                             .cause = w->finished ? ARBITER_CAUSE_ENDED
                                                                  : ARBITER_CAUSE_OUTSIDE});
    }
}

static void take_round(struct crowd *c)
{
    uint32_t begin_at = test_draw(&c->random, (uint32_t)c->worker_count);
    size_t count = c->worker_count;
    c->now_ms += ROUND_MS;
    for (size_t i = 0; i < count && !c->over; i++) {
        struct worker *w = &c->workers[(begin_at + i) % count];
        if (!w->lives) {
            if (!w->buried && test_draw(&c->random, 2) == 0) {
                bury(c, w);
            }
        } else if (test_draw(&c->random, 8) > 0) {
            crowd_take_turn(c, w);
        }
    }
    if (c->sync_due) {
        crowd_sync(c);
    }
    crowd_feed(c, (struct arbiter_event){.kind = ARBITER_TICK});
    assert_null(arbiter_check(c->arbiter));
}

static struct crowd *new_crowd(uint64_t seed)
{
    struct crowd *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->random = (seed + 1) * 0x9e3779b97f4a7c15u;
    c->now_ms = 1;
    c->members = members;
    c->plan = (struct plan){
        .records = (uint64_t)STEPS * members, .epochs = 1, .batch = 1, .micro_batches = members};
    c->worker_room = 4 * members + ROUNDS_MAX;
    c->workers = calloc(c->worker_room, sizeof *c->workers);
    assert_non_null(c->workers);
    for (uint32_t i = 0; i < members; i++) {
        crowd_launch(c);
    }
    crowd_begin(c);
    return c;
}

static void run_seed(uint64_t seed)
{
    struct crowd *c = new_crowd(seed);
    uint32_t rounds = 0, faulty = 0;
    for (; !c->over && rounds < ROUNDS_MAX; rounds++) {
        bool faults = arbiter_generation(c->arbiter) > 0 && faulty < FAULTY_ROUNDS;
        faulty += faults;
        for (uint32_t i = 0; faults && i <= members / 1000; i++) {
            add_fault(c);
        }
        take_round(c);
    }
    print_message("seed %llu: %u members, %u rounds, %llu generations, %u killed, %u joined, "
                  "%u left, %u restarts, %u finished\n",
                  (unsigned long long)seed, members, rounds,
                  (unsigned long long)arbiter_generation(c->arbiter), c->killed, c->joined, c->left,
                  c->restarts, c->finished);
    assert_true(c->over && c->finished > 0);
    crowd_done(c);
}

static void thousands_and_faults(void **state)
{
    (void)state;
    test_each_seed(members > 1000 ? 1 : 4, run_seed);
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(thousands_and_faults)};
    members = count > 1 ? (uint32_t)strtoul(words[1], NULL, 10) : members;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
