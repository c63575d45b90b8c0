/* A worker that trains a ledger: weight i of its model grows by one each time record i is trained.
 *
 * Memory: the caller's struct. Thread: trainee_start makes one; trainee_run is the caller's.
 */
#pragma once

#include <muster/muster.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TRAINEE_RECORDS_MAX = 1024 };

struct trainee {
    struct muster_elastic_options options;
    /* Called with each pass before its step; may be NULL. */
    void (*at_pass)(struct trainee *trainee, const struct muster_elastic_pass *pass);
    void *user;
    bool sums; /* each step makes two sums, and is undone if it does not commit */

    struct muster_elastic *_Atomic job; /* NULL: not open */
    _Atomic uint64_t version;           /* committed here */
    _Atomic int size;                   /* of the generation */
    double weights[TRAINEE_RECORDS_MAX];
    uint64_t passes; /* computed here */
    int result;      /* of the call that ended it */
    struct muster_err err;
    struct muster_elastic_info info;
    pthread_t thread;
};

/* Options for `records` records at that coordinator; the rest is as in MUSTER_ELASTIC_OPTIONS_INIT.
 */
void trainee_init(struct trainee *trainee, const char *coordinator, uint64_t records,
                  uint32_t epochs, uint32_t batch, uint32_t micro_batches);
/* Trains until the job, or this worker's part in it, ends. */
void trainee_run(struct trainee *trainee);
void trainee_start(struct trainee *trainee);
void trainee_join(struct trainee *trainee);

/* Returns the number of records that do not have the weight that `version` steps give them. */
uint64_t trainee_count_wrong(const struct trainee *trainee, uint64_t version);
