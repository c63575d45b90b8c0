/* Kills the processes that a killed monitor has left, between other events: the loop never waits
 * for a process that does not end at once. See attempt_state.h. */
#include "process/supervisor/attempt_state.h"

#include "process/machine/descendants.h"

#include <assert.h>

enum { HUNT_MS = 10, HUNT_ROUNDS_MAX = 500 };

static void on_round(uv_timer_t *timer)
{
    struct attempt *attempt = timer->data;
    if (descendants_sweep_once(attempt->mark) > 0 && ++attempt->hunt_rounds < HUNT_ROUNDS_MAX) {
        uv_timer_start(&attempt->hunt, on_round, HUNT_MS, 0);
    } else {
        attempt->on_hunted(attempt);
    }
}

void attempt_hunt(struct attempt *attempt, void (*on_hunted)(struct attempt *attempt))
{
    assert(!attempt->on_hunted && "a monitor dies once");
    attempt->on_hunted = on_hunted;
    uv_timer_init(attempt->place->loop, &attempt->hunt);
    attempt->hunt.data = attempt;
    attempt->open_handles++;
    on_round(&attempt->hunt);
}
