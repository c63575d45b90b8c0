/* See end_cause.h. */
#include "process/wire/end_cause.h"

#include "base/memory_text.h"

#include <signal.h>
#include <stdio.h>

bool end_cause(const struct end_facts *f, char *ret_text, size_t room)
{
    char limit[MEMORY_TEXT_BYTES], peak[MEMORY_TEXT_BYTES];
    memory_text(f->limit_bytes, limit);
    memory_text(f->peak_bytes, peak);
    /* Often a child was killed, of torchrun or of a shell, and the main process only reports
     * this. */
    bool out_of_memory = f->code != 0 && f->group_kills > 0;
    /* The kernel does not count a limit as reached that is too low for a process to begin. */
    bool limit_reached =
        f->limit_reached || (f->limit_bytes > 0 && f->peak_bytes >= f->limit_bytes);
    ret_text[0] = '\0';
    if (out_of_memory && limit_reached) {
        (void)snprintf(ret_text, room, "%s limit of resources.limits.memory (peak %s)", limit,
                       peak);
    } else if (out_of_memory) {
        (void)snprintf(ret_text, room,
                       "the machine had no memory left (peak %s, under the %s limit of "
                       "resources.limits.memory)",
                       peak, limit);
    } else if (f->signal == SIGKILL && !f->killed_by_us && f->machine_kills > 0) {
        (void)snprintf(ret_text, room,
                       "probably the machine, or the container that muster runs in, had no "
                       "memory left (peak %s): the kernel has killed "
                       "%lld process%s for want of memory while it ran",
                       peak, (long long)f->machine_kills, f->machine_kills == 1 ? "" : "es");
    } else if (f->signal == SIGBUS && f->shm_bytes > 0) {
        memory_text(f->shm_bytes, limit);
        memory_text(f->shm_free_bytes, peak);
        (void)snprintf(ret_text, room,
                       "a bus error mostly means that shared memory is full: /dev/shm has %s, and "
                       "%s of it are free now",
                       limit, peak);
    }
    return out_of_memory;
}
