/* Reports something about a pod to the user, by an event. See internal.h. */
#include "daemon/agent/internal.h"

#include "base/log.h"
#include "base/time/clock.h"
#include "daemon/object/events.h"

void agent_note(struct agent *agent, const json_t *about, bool warning, const char *reason,
                const char *message)
{
    const struct event_note note = {.about = about,
                                    .component = "muster-agent",
                                    .warning = warning,
                                    .reason = reason,
                                    .message = message,
                                    .now_unix_ms = clock_unix_ms()};
    struct muster_err err = MUSTER_ERR_INIT;
    if (event_record(agent->options.store, &note, &err) < 0) {
        log_event(LOG_WARN, "agent.event", "%s: %s", reason, err.text);
    }
}
