/* A network for ranks: a bridge in the test's own namespace, and a cable from it to a namespace of
 * each rank. All of it ends with the processes. Root only. Tests and benchmarks only. */
#pragma once

#include <stdbool.h>

/* Moves this process into a namespace with a bridge, once. False: no right to, or no ip(8). */
bool network_open(void);

/* The following ranks get new cables and addresses. */
void network_renew(void);

/* In a rank: moves into a namespace of its own, with a cable to the bridge. */
bool network_enter(int rank);

/* In the test: unplugs a rank. */
void network_cut(int rank);
/* In the test: what goes to that rank goes through a token bucket; arguments as tc(8) has them. */
bool network_slow(int rank, const char *rate, const char *latency);
/* In a rank, after network_enter: loses that part of what arrives. */
bool network_lose(double probability);
/* In a rank, after network_enter: what it sends is lost where a packet has over 600 bytes, until it
 * calls this again with false. Heartbeats get through. */
bool network_hold_back(bool held);
