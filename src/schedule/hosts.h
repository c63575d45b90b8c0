/* Which ranks share a host. Layer: pure. Memory: the caller's structs. Thread: any. */
#pragma once

#include <stdbool.h>

#include <muster/comm.h>

/* The host of each rank. Hosts are numbered in the order of their lowest ranks. */
struct schedule_hosts {
    int size; /* ranks */
    int hosts;
    int leaders;                     /* on each host */
    int host_of[MUSTER_MAX_RANKS];   /* rank -> host */
    int index_of[MUSTER_MAX_RANKS];  /* rank -> index on its host */
    int ranks[MUSTER_MAX_RANKS];     /* host after host */
    int first[MUSTER_MAX_RANKS + 1]; /* host -> its first rank in `ranks` */
};

/* Derives the hosts from the lowest rank on each rank's host. */
void schedule_hosts_init(struct schedule_hosts *hosts, const int *lowest, int size);
/* Whether there are several hosts, and one of them has several ranks. */
bool schedule_hosts_mixed(const struct schedule_hosts *hosts);
/* Returns the number of ranks on this host. */
int schedule_host_ranks(const struct schedule_hosts *hosts, int host);
/* Returns the rank with this index on this host; -1: there is none. */
int schedule_host_rank(const struct schedule_hosts *hosts, int host, int index);
