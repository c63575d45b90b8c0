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

/* A write of that object is sent now: what is shown of it from here on counts. Its number, or
 * MUSTER_ENOMEM. */
int expect_sent(struct expectations *expectations, enum control_resource resource,
                const char *name);
/* The write succeeded, and gave this version, which must be shown (or a newer one); `gone`: that
 * the object `uid` is gone, or going, must be. MUSTER_ENOMEM. */
int expect_version(struct expectations *expectations, int number, const char *version);
int expect_gone(struct expectations *expectations, int number, const char *uid, bool is_shown);
/* Nothing is expected of it any more. */
void expect_nothing(struct expectations *expectations, int number);

/* Shown by a watch. */
void expect_shown(struct expectations *expectations, enum control_resource resource,
                  const char *name, const char *uid, const char *version, bool gone);
/* A listing was shown whole, of this version: nothing older is to come. */
void expect_listed(struct expectations *expectations, enum control_resource resource,
                   const char *version);

bool expect_is_met(const struct expectations *expectations);
/* Forgets all. */
void expect_clear(struct expectations *expectations);
