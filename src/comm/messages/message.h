/* Tasks that send and receive. Layer: comm; see message.c. */
#pragma once

#include "comm/state/state.h"

/* The most bytes that a send may copy into a ring before its call returns. */
enum { MESSAGE_EAGER_BYTES = 16 * 1024 };
/* The most bytes that a blocking send copies in before it publishes any of them: of a larger
 * message, the receiver copies the first block out meanwhile. */
enum { MESSAGE_NOW_BYTES = 8 * 1024 };

/* Called when the host's memory is mapped. */
int message_init(struct muster_comm *comm, struct muster_err *err);
/* Called when it is known whether ranks share processors, on which all ranks of a host agree;
 * before the first message. */
void message_open(struct muster_comm *comm);
void message_start(struct task *task);
/* Sends a message as a whole, without a task, to a rank of this host, if there is room for it and
 * no send to the same rank is under way. False: it did nothing. Called by the holder of the
 * messages' lane, or when nothing is in it. */
bool message_send_now(struct muster_comm *comm, const struct prepared *call);
/* The same, for a rank that will start other sends, probably like this one, while nobody waits for
 * this message yet. */
bool message_send_ahead(struct muster_comm *comm, const struct prepared *call);
/* Receives a message as a whole, before the task takes a place, if nothing else has arrived from
 * that rank of this host, and the next message arrives soon and is for this task. False: it changed
 * nothing for the task's steps. Called as message_send_now. */
bool message_receive_now(struct muster_comm *comm, struct task *task);
/* Gives a task its place behind those before it, in the order of sends to a rank or of posted
 * receives. The task's first step does this at the latest. */
void message_begin(struct muster_comm *comm, struct task *task);
/* Sends to one rank as much as there is room for. Returns true if something moved. */
bool message_push(struct muster_comm *comm, int to);
/* Sends to all ranks, and reads what has arrived from all. Called by the holder of the lane, or by
 * a task that is in no lane. */
bool message_move(struct muster_comm *comm);
/* Returns a task of the lane whose message has been sent or received, each once; NULL: no more. */
struct task *message_take_ended(struct muster_comm *comm);
void message_free(struct muster_comm *comm);
