/* Tasks that run several exchanges, within hosts and between them. Layer: comm; see hierarchy.c. */
#pragma once

#include "comm/state/state.h"

/* Returns MUSTER_ENOMEM or 0. Called after the teams are set up. */
int hierarchy_init(struct muster_comm *comm);
void hierarchy_free(struct muster_comm *comm);
/* Whether this call is run within and between hosts, in stages. */
bool hierarchy_fits(const struct muster_comm *comm, const struct task *task);
void hierarchy_start(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern);
