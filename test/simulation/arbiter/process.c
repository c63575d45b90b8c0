/* What all processes of the job have: a life, and a connection to the coordinator. See job.h. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

bool process_lives(const struct process *p)
{
    return p->life == LIFE_RUNNING || p->life == LIFE_STOPPED;
}

struct process *job_process(struct job *job, uint64_t incarnation)
{
    bool known = incarnation > 0 && incarnation <= job->life_count;
    return known ? &job->lives[incarnation - 1] : NULL;
}

struct process *job_launch(struct job *job, uint8_t place)
{
    struct process *p = &job->lives[job->life_count++];
    *p = (struct process){.life = LIFE_RUNNING,
                          .leases = place >= job->config.trainers + job->config.joiners,
                          .place = place,
                          .incarnation = job->life_count};
    if (p->leases) {
        leaser_begin(job, p);
    } else {
        trainer_begin(job, p);
    }
    return p;
}

void process_say(struct job *job, struct process *p, struct wire_message *message)
{
    uint8_t bytes[1 << 13];
    message->term = p->term;
    int64_t count = wire_write(message, bytes, sizeof bytes, NULL);
    if (count <= 0 || count > (int64_t)sizeof bytes) {
        job_break(job, "what a worker says has an encoding");
    } else if (p->link.up) {
        frames_put(job, &p->link.up_frames, bytes, (size_t)count);
    }
}

void process_connect(struct job *job, struct process *p)
{
    coordinator_welcome(job, p);
    p->term = arbiter_term(job->coordinator.arbiter);
    if (p->leases) {
        leaser_enroll(job, p);
    } else {
        trainer_declare(job, p);
    }
}

void process_hear(struct job *job, struct process *p)
{
    uint8_t memory[1 << 14] __attribute__((aligned(16)));
    struct wire_room room = {memory, sizeof memory, 0};
    struct frames *frames = &p->link.down_frames;
    struct wire_message m;
    uint8_t *bytes = frames->list[0].bytes;
    size_t count = frames->list[0].count;
    frames->count--;
    memmove(frames->list, frames->list + 1, frames->count * sizeof *frames->list);
    if (wire_read(bytes, count, &room, &m, NULL) < 0) {
        job_break(job, "what the coordinator writes can be read");
    } else if (p->leases) {
        leaser_hear(job, p, &m);
    } else {
        trainer_hear(job, p, &m);
    }
    free(bytes);
}

void process_hang_up(struct job *job, struct process *p)
{
    bool was_up = p->link.up;
    frames_drop(&p->link.down_frames);
    p->link.up = p->link.declared = false;
    if (was_up && process_lives(p) && !p->leases) {
        trainer_tell(job, p, (struct commit_event){.kind = COMMIT_DISCONNECTED}, NULL);
    }
}

void process_die(struct job *job, struct process *p, enum arbiter_cause cause)
{
    if (!p->leases && cause == ARBITER_CAUSE_OWN) {
        const struct shard_range at_hand[] = {p->trainer.at_hand, p->trainer.told};
        for (size_t i = 0; i < 2; i++) {
            for (uint32_t at = 0; at < at_hand[i].count; at++) {
                job->crashes[at_hand[i].first + at][at_hand[i].epoch]++;
            }
        }
    }
    frames_drop(&p->link.down_frames);
    if (p->leases) {
        job->leased_crashes += cause == ARBITER_CAUSE_OWN;
        holdings_done(&p->leaser.holdings);
    }
    p->life = LIFE_DEAD;
    p->cause = cause;
    p->link.up = false;
}
