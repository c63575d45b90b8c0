/* The events of a process: one function for each event of rendezvous.h that names a process.
 *
 * Internal to src/rendezvous. Layer: pure. Memory: the caller's.
 */
#pragma once

#include "rendezvous/turn.h"

void member_join(struct turn *t);
void member_leave(struct turn *t);
void member_dead(struct turn *t);
void member_disconnected(struct turn *t);
void member_connected(struct turn *t);
void member_report(struct turn *t);
void member_commits(struct turn *t);
void member_checkpoint(struct turn *t);
void member_unreadable(struct turn *t);
