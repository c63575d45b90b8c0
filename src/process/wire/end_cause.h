/* Why a container ended, as far as memory has to do with it: which limit was too small.
 *
 * Layer: services; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct end_facts {
    int code;   /* 128 + signal if a signal killed it */
    int signal; /* 0: none */
    bool killed_by_us;
    int64_t limit_bytes;    /* resources.limits.memory; 0: none */
    bool limit_reached;     /* as the kernel reports it */
    int64_t peak_bytes;     /* 0: not known */
    int64_t group_kills;    /* kills for want of memory in its control group, by the kernel */
    int64_t machine_kills;  /* the same for the whole machine, while it ran */
    int64_t shm_bytes;      /* size of its /dev/shm; 0: not known */
    int64_t shm_free_bytes; /* free bytes when it ended */
};

/* Returns whether it ran out of memory for certain; then the reason is OOMKilled. The sentence is
 * "" when memory is not the cause. */
bool end_cause(const struct end_facts *facts, char *ret_text, size_t room);
