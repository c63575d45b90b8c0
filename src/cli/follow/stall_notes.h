/* The messages of `run` about ranks that stall, from the events of one job with the reason
 * RankStalled.
 *
 * Layer: cli. Thread: the loop's. Ownership: start/stop.
 */
#pragma once

#include "cli/command/cli.h"
#include "cli/log/screen.h"

struct stall_notes {
    struct screen *screen;
    char job[256]; /* the job's name */
    struct kube_watch *watch;
    bool hinted;
};

int stall_notes_start(struct stall_notes *notes, struct cli *cli, struct screen *screen,
                      const json_t *job);
void stall_notes_stop(struct stall_notes *notes);
