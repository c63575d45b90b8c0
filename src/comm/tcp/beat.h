/* Heartbeats as datagrams, beside a TCP connection: each of them arrives or is lost independently.
 * They use the addresses and port numbers of the connection, so that nothing has to be negotiated.
 * If datagrams do not get through, only the tolerance for lost packets is smaller.
 *
 * Layer: comm. Memory: none. Thread: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Returns the descriptor; -1: not possible. */
int beat_open(int connection);
/* word: 0, or the last word (remote_heartbeat.c). */
void beat_send(int fd, uint64_t generation, int rank, uint32_t word);
/* Returns true if that rank of this generation was heard since the last call; *ret_word keeps its
 * value unless a last word came. */
bool beat_receive(int fd, uint64_t generation, int rank, uint32_t *ret_word);
