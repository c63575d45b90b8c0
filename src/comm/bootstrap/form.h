/* Communicators from a list of members. Layer: comm; see form.c. */
#pragma once

#include <muster/comm.h>

/* What may end forming early; asked every few milliseconds until all have come. 0, or a negative
 * code and err. */
struct form_watch {
    int (*check)(void *context, struct muster_err *err);
    void *context;
};

/* watch may be NULL. */
int form_comm(struct muster_endpoint *endpoint, const struct muster_member *members, int size,
              int my_index, uint64_t generation, int64_t deadline_ns,
              const struct muster_comm_options *options, const struct form_watch *watch,
              struct muster_comm **ret, struct muster_err *err);
