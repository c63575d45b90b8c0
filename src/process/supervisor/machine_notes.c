/* See machine_notes.h. */
#include "process/supervisor/machine_notes.h"

#include <jansson.h>
#include <stdio.h>

static void tell_note(struct listener_client *client, const char *reason, const char *text)
{
    listener_answer(client,
                    json_pack("{s:s, s:s, s:s}", "event", "note", "reason", reason, "text", text));
}

void machine_notes_tell(const struct isolation *isolation, struct listener_client *client)
{
    if (isolation->mode == ISOLATION_SUBREAPER) {
        char text[320];
        (void)snprintf(text, sizeof text,
                       "%s: processes are kept together by a subreaper, which a process with a "
                       "cleared environment can leave when its monitor is killed",
                       isolation->why_not);
        tell_note(client, "IsolationDegraded", text);
    }
    if (isolation->loopback_down) {
        tell_note(client, "LoopbackDown",
                  "the loopback interface (lo) of this network is down, so nobody answers at "
                  "127.0.0.1: ip link set lo up, or --network private, a network of the job's own");
    }
}
