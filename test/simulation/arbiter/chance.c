/* See chance.h. */
#include "chance.h"

#include "base/testing/test.h"

enum { STEPS_MAX = 6000 };

static struct job_config draw_config(struct job *job)
{
    struct job_config config = {
        .kinds = FAULT_ALL, .poison = POISON_NONE, .leased_poison = POISON_NONE};
    config.trainers = (uint8_t)job_draw(job, 4);
    config.joiners = config.trainers > 0 ? (uint8_t)job_draw(job, 3) : 0;
    config.leasers = config.trainers == 0 ? (uint8_t)(1 + job_draw(job, 3))
                                          : (uint8_t)(job_draw(job, 3) * job_draw(job, 2));
    config.records = (uint8_t)(1 + job_draw(job, 20));
    config.epochs = (uint8_t)(1 + job_draw(job, EPOCHS_MAX));
    config.batch = (uint8_t)(1 + job_draw(job, 4));
    config.micro_batches = (uint8_t)(1 + job_draw(job, 4));
    config.leased_records = (uint8_t)(1 + job_draw(job, 20));
    config.leased_epochs = (uint8_t)(1 + job_draw(job, 2));
    config.shard = (uint8_t)(1 + job_draw(job, 4));
    config.faults = (uint8_t)job_draw(job, 8);
    config.checkpoints = (uint8_t)job_draw(job, 4);
    config.relaunch = job_draw(job, 2) == 1;
    config.remote = job_draw(job, 4) == 0;
    config.forgets = job_draw(job, 4) == 0;
    config.long_steps = job_draw(job, 2) == 1;
    if (config.trainers > 0 && job_draw(job, 6) == 0) {
        config.poison = (int16_t)job_draw(job, config.records);
    }
    if (config.leasers > 0 && job_draw(job, 4) == 0) {
        config.leased_poison = (int16_t)job_draw(job, config.leased_records);
    }
    if (config.poison != POISON_NONE || config.leased_poison != POISON_NONE) {
        config.kinds = FAULT_ALL & ~FAULT_CRASH;
        config.set_aside = job_draw(job, 2) == 1;
        config.relaunch = true;
        config.remote = false;
    }
    return config;
}

/* Limits the steps of one job in four. The limit is not drawn, so that the other jobs run as they
 * did without it. A job with a poisonous record has no limit, as it must reach that record. */
static uint8_t limit_of(const struct job_config *config, uint64_t seed)
{
    return seed % 4 == 3 && config->poison == POISON_NONE ? (uint8_t)(1 + seed / 4 % 7) : 0;
}

/* Whether the batch follows the workers: in one job of three, which is not drawn either. */
static bool follows_workers(uint64_t seed)
{
    return seed / 16 % 3 == 1;
}

/* Chooses a fault only rarely, so that the faults that are permitted are spread over the run. */
static size_t choose(struct job *job, const struct action *actions, size_t count)
{
    size_t calm[ACTIONS_MAX], calm_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind < ACT_FAULTS) {
            calm[calm_count++] = i;
        }
    }
    if (calm_count == 0) {
        return count;
    }
    bool fault = calm_count < count && job_draw(job, 16) == 0;
    return fault ? job_draw(job, (uint32_t)count) : calm[job_draw(job, (uint32_t)calm_count)];
}

static bool step(struct job *job, bool tells)
{
    struct action actions[ACTIONS_MAX];
    size_t count = job_actions(job, actions), at = choose(job, actions, count);
    if (at == count) {
        return false;
    }
    if (tells) {
        print_message("%6lld ms  %u %s %u\n", (long long)job->now_ms, actions[at].who + 1u,
                      job_action_name(actions[at]), actions[at].what + 1u);
    }
    job_act(job, actions[at]);
    return true;
}

const char *chance_run(struct job *job, uint64_t seed, bool tells)
{
    size_t steps = 0;
    job->random = (seed + 1) * 0x9e3779b97f4a7c15u;
    struct job_config config = draw_config(job);
    config.max_steps = limit_of(&config, seed);
    config.per_worker = follows_workers(seed);
    job_init(job, &config, job->random);
    while (!job->broken && steps < STEPS_MAX && step(job, tells)) {
        steps++;
    }
    return job->broken          ? job->broken
           : steps == STEPS_MAX ? "each way comes to its end"
                                : job_end(job);
}
