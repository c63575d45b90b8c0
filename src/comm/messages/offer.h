/* Offers: large messages between ranks of a host that may read each other's memory. Layer: comm;
 * for the files of this folder; see offer.c. Thread: the holder of the messages' lane.
 */
#pragma once

#include "comm/messages/streams.h"

/* Decides whether this communicator makes offers, and from how many bytes on. Called after its
 * rings have started. */
void offer_open(struct muster_comm *comm);

/* ---- the sender ---- */

/* Whether this send is to be offered. */
bool offer_fits(const struct messages *m, const struct stream *s, const struct task *send);
/* Puts the offer into the stream; the send then waits in the stream's list of offered sends. False:
 * there is no room. */
bool offer_write(struct stream *s, struct task *send);
/* Removes and returns the first send of that list, if the receiver has read it; otherwise NULL. */
struct task *offer_take_read(struct stream *s);
/* Returns the first send of that list, if the receiver refuses it: its data is written into the
 * second ring. */
struct task *offer_refused(const struct stream *s);
struct stream_ring *offer_bypass(struct stream_ring *ring);

/* ---- the receiver ---- */

/* Called after each header that arrived, unless all of its data arrived with it. */
void offer_take_address(struct stream *s);
/* Reads as much of the message as is available now, at most `bytes` bytes. */
size_t offer_read(struct muster_comm *comm, struct stream *s, int from, char *to, size_t bytes);
/* Called when all of a message, offered or not, was read. */
void offer_finish(struct stream *s);
