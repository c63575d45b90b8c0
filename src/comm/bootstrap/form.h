/* Communicators from a list of members. Layer: comm; see form.c. */
#pragma once

#include "comm/bootstrap/forming.h"

/* Forms a communicator; watch may be NULL. */
int form_comm(struct muster_endpoint *endpoint, const struct muster_member *members, int size,
              int my_index, uint64_t generation, int64_t deadline_ns,
              const struct muster_comm_options *options, const struct forming_watch *watch,
              struct muster_comm **ret, struct muster_err *err);
