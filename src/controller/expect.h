/* Remembers what a step has written and a cache has not shown yet. The next step of the job waits
 * for it, because its view would be older than what is known.
 *
 * Layer: pure. Ownership: expect_init/expect_done; texts are copied.
 */
#pragma once

#include "control/control.h"

struct expectation;

struct expectations {
    struct expectation *list;
    size_t count, room;
};

void expect_done(struct expectations *expectations);

/* A write of that object is sent now: what the watches show of it from here on counts. Returns the
 * expectation's number, or MUSTER_ENOMEM. */
int expect_sent(struct expectations *expectations, enum control_resource resource,
                const char *name);
/* The write succeeded and gave this version, so the watches must show it or a newer one.
 * expect_gone: they must show that the object `uid` is gone or being deleted. Both return
 * MUSTER_ENOMEM. */
int expect_version(struct expectations *expectations, int number, const char *version);
int expect_gone(struct expectations *expectations, int number, const char *uid, bool is_shown);
/* Nothing is expected of this write any more. */
void expect_nothing(struct expectations *expectations, int number);

/* A watch has shown this object. */
void expect_shown(struct expectations *expectations, enum control_resource resource,
                  const char *name, const char *uid, const char *version, bool gone);
/* A watch has shown a complete listing of this version: nothing older can follow. */
void expect_listed(struct expectations *expectations, enum control_resource resource,
                   const char *version);

bool expect_is_met(const struct expectations *expectations);
/* Forgets all expectations. */
void expect_clear(struct expectations *expectations);
