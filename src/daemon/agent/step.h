/* The agent's decisions: which pods of the store this machine looks after, when a pod gets its
 * GPUs, when the agent is done with it, and when a job's supervisor is started and ended.
 *
 * agent_step() gets one event and returns what is to be done, in order (effects). The result of an
 * effect (success or failure) comes back as a later event: there is no callback within a step.
 * A pod's containers are the business of its own machine (pod/pod.h), which effects feed.
 *
 * A pod on this machine:
 *
 *     state      it                                       leaves it at
 *     ADMITTING  is bound, its machine is made, its job's  ADMITTED → ADOPTING; REFUSED → forgotten
 *                supervisor is reached
 *     ADOPTING   waits for the records of what ran before  SUPERVISOR_READY → ADOPTED
 *     ADOPTED    has got these records                     FED → PLACING (not when it is deleted)
 *     PLACING    asks for its GPUs                         PLACED → PLACED; NOT_PLACED → WAITING
 *     WAITING    has got the answer that no GPU is free    ROOM_MADE → PLACING
 *     PLACED     may run
 *     KEEPING    is over (from any state but ADMITTING);   KEPT → forgotten, REMOVING when deleted
 *                its last state is recorded
 *     REMOVING   is over; its object is being removed      REMOVED → forgotten
 *
 * A pod is over when it is deleted and none of its processes runs, or when it has finished and the
 * store has taken its status. A write that the store refuses (a full disk) is owed: RETRY repeats
 * it.
 *
 * A job's supervisor:
 *
 *     OPENING    no pod was admitted yet                   ADMITTED → STARTING
 *     STARTING   it is sending its records                 SUPERVISOR_READY → READY
 *     READY      pods run
 *     ENDING     its last pod left: it was asked to end    SUPERVISOR_ENDED or _LOST → closed
 *     OVER       it is gone, its pods know it; new pods    its last pod's end → closed
 *                wait until all of them have left
 *
 * A pod that comes while its job is ENDING or OVER is not admitted; when the job is closed, the
 * job's pods are looked at again.
 *
 * Layer: program (daemon); this part is pure: no clock, no store, no descriptor. Ownership:
 * agent_state_init/done; texts of events are borrowed for the call. Not thread-safe.
 */
#pragma once

#include "daemon/agent/state.h"

/* The effects are borrowed until the next step. */
const struct agent_effects *agent_step(struct agent_state *state, const struct agent_event *event);
