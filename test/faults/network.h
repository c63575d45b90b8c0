/* A network for ranks: a bridge in the test's own namespace, and a cable from it to the namespace
 * of each rank. The network is deleted when the processes end. Needs root. Tests and benchmarks
 * only. */
#pragma once

#include <stdbool.h>

/* Moves this process into a namespace with a bridge, once. Returns false if that is not permitted,
 * or if there is no ip(8). */
bool network_open(void);

/* Gives the following ranks new cables and addresses. */
void network_renew(void);

/* In a rank: moves into a namespace of its own, with a cable to the bridge. */
bool network_enter(int rank);

/* In the test: unplugs a rank. */
void network_cut(int rank);
/* In the test: sends the packets to that rank through a token bucket; the arguments are those of
 * tc(8). */
bool network_slow(int rank, const char *rate, const char *latency);
/* In a rank, after network_enter: loses each packet that arrives with this probability. */
bool network_lose(double probability);
/* In a rank, after network_enter: loses each packet of over 600 bytes that the rank sends, until it
 * calls this again with false. Heartbeats get through. */
bool network_hold_back(bool held);
