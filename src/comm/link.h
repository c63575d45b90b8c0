/* Sockets to the ranks on other hosts. Layer: comm; see link.c. */
#pragma once

#include "comm/internal.h"

/* Sends this round's pieces to all peers on other hosts, as far as the sockets take them now. */
int link_publish(struct muster_comm *comm, struct task *task, size_t round, const char *source,
                 struct muster_err *err);
/* 1: all of this round's pieces are here and ours have been handed to the kernel. */
int link_arrived(struct muster_comm *comm, struct task *task, size_t round, struct muster_err *err);
/* Where the piece of this round from that rank lies; NULL: it was read to its place. */
char *link_piece(struct muster_comm *comm, const struct task *task, size_t round, int from);
/* What that rank said it calls under this number. 1: known. */
int link_record(const struct muster_comm *comm, int rank, uint64_t number, uint64_t *ret_shape,
                uint64_t *ret_count);
/* Sleeps until a socket can move, at most timeout_ms. */
void link_wait(struct muster_comm *comm, int timeout_ms);
void link_say_closed(struct muster_comm *comm);
/* On the heartbeat thread. */
void link_beat(struct muster_comm *comm);

/* The stream of messages: as many bytes as go now, negative when the link is lost. */
int64_t link_stream_write(struct muster_comm *comm, int to, const void *data, size_t bytes);
int64_t link_stream_read(struct muster_comm *comm, int from, void *data, size_t bytes);

/* While forming: room for the links, sockets as they come (taken over, also on failure), then
 * complete? */
enum { LINK_CHANNELS = 4 };
int link_init(struct muster_comm *comm, struct muster_err *err);
int link_adopt(struct muster_comm *comm, int fd, int rank, int channel, struct muster_err *err);
bool link_all_adopted(const struct muster_comm *comm);
void link_free(struct muster_comm *comm);
