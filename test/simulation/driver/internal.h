/* What the files of the make-believe cluster share. */
#pragma once

#include "fake.h"

#include "base/doc.h"

#include <stdlib.h>
#include <string.h>

extern const struct cluster_backend fake_backend;

bool fake_chance(struct fake *fake, uint32_t percent);
/* Returns a time that is not far away: faults.lag_ms at most. */
int64_t fake_lag(struct fake *fake);

json_t *fake_create(struct fake *fake, const char *resource, const json_t *body); /* borrowed */
void fake_mark_deleted(struct fake *fake, json_t *pod);

int64_t fake_requests_next(const struct fake *fake);
void fake_requests_run(struct fake *fake);
void fake_forget_requests(struct fake *fake);

int64_t fake_watches_next(const struct fake *fake);
void fake_watches_run(struct fake *fake);
