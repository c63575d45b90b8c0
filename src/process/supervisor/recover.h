/* What a supervisor that was killed (or a machine that was restarted) left behind: attempts without
 * an end. What still runs of them is killed, and each gets its exit record: code 137, reason
 * "Lost".
 *
 * Layer: services; private to the supervisor, before anything is started.
 */
#pragma once

#include <muster/err.h>

enum { RECOVER_WHY_BYTES = 160 };

/* ret_why says why attempts were lost; "" when none was. */
int recover(const char *job_folder, char ret_why[RECOVER_WHY_BYTES], struct muster_err *err);
