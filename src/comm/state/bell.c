/* Doorbells, by which ranks of a host wake each other. Layer: comm. Thread: any. */
#include "comm/state/bell.h"

#include "comm/shm/futex.h"

void bell_ring(struct control *control)
{
    atomic_fetch_add(&control->bell, 1);
    futex_wake_all(&control->bell);
}
