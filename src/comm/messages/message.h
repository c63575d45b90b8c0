/* Tasks that send and receive. Layer: comm; see message.c. */
#pragma once

#include "comm/state/state.h"

/* What a send may copy into a ring before its call returns. */
enum { MESSAGE_EAGER_BYTES = 16 * 1024 };
/* What a blocking send copies in before it publishes any of it: of more the receiver copies the
 * first block out meanwhile. */
enum { MESSAGE_NOW_BYTES = 8 * 1024 };

/* Once the host's memory is there. */
int message_init(struct muster_comm *comm, struct muster_err *err);
/* Once it is known whether ranks share processors, which all of a host know alike; before the first
 * message. */
void message_open(struct muster_comm *comm);
void message_start(struct task *task);
/* Sends a message as a whole, without a task: on this host, where there is room for it and no send
 * to the same rank is under way. False: it did nothing. By the holder of the messages' lane, or
 * when nothing is in it. */
bool message_send_now(struct muster_comm *comm, const struct prepared *call);
/* The same for a rank that goes on to start others, probably like this one, and whose message
 * nobody waits for yet. */
bool message_send_ahead(struct muster_comm *comm, const struct prepared *call);
/* Receives a message as a whole, before the task takes a place: where nothing else has come from
 * that rank of this host, and the next that comes soon is for it. False: it did nothing that the
 * task's steps would not find. As message_send_now. */
bool message_receive_now(struct muster_comm *comm, struct task *task);
/* A task takes its place: behind those before it, in the order of sends to a rank, or of posted
 * receives. A step does so at the latest. */
void message_begin(struct muster_comm *comm, struct task *task);
/* Sends to one rank what there is room for. True: something moved. */
bool message_push(struct muster_comm *comm, int to);
/* Sends to all ranks, and reads what has come from all; its lane's holder calls it, or a task that
 * is in no lane. */
bool message_move(struct muster_comm *comm);
/* A task of the lane whose message has been sent or received, once for each; NULL: no more. */
struct task *message_take_ended(struct muster_comm *comm);
void message_free(struct muster_comm *comm);
