/* What the agent decides: which pods of the store this machine looks after, when one gets its
 * GPUs, when it is done with, and when a job's supervisor is begun and ended.
 *
 * agent_step() is told one event and says what is to be done, in order (effects). What an effect
 * leads to (it worked, it failed) comes back as a later event: nothing is called back from within.
 * What a pod's containers do is decided by its own machine (pod/pod.h), which effects feed.
 *
 * A pod on this machine:
 *
 *     state      it                                       leaves it at
 *     ADMITTING  is bound, its machine is made, its job's  ADMITTED → ADOPTING; REFUSED → forgotten
 *                supervisor is reached
 *     ADOPTING   waits for the records of what ran before  SUPERVISOR_READY → ADOPTED
 *     ADOPTED    has been told them                        FED → PLACING (not when it is deleted)
 *     PLACING    asks for its GPUs                         PLACED → PLACED; NOT_PLACED → WAITING
 *     WAITING    has been told that there is no room       ROOM_MADE → PLACING
 *     PLACED     may run
 *     KEEPING    is over (from any state but ADMITTING);   KEPT → forgotten, REMOVING when deleted
 *                what is left of it is written down
 *     REMOVING   is over; its object is being removed      REMOVED → forgotten
 *
 * Over is who is gone (deleted, and nothing of it runs), or finished with a status that the store
 * has taken. What the store does not take (a full disk) is owed: RETRY tries again.
 *
 * A job's supervisor:
 *
 *     OPENING    no pod was admitted yet                   ADMITTED → STARTING
 *     STARTING   records are being told                    SUPERVISOR_READY → READY
 *     READY      pods run
 *     ENDING     its last pod left: it was asked to end    SUPERVISOR_ENDED or _LOST → closed
 *     OVER       it is gone, its pods are told; new pods   its last pod's end → closed
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
