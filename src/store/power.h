/* A disk for the store's tests that loses power: a VFS of SQLite in memory.
 *
 * Data that was written and not synced may be on the disk or not, in any order, each sector for
 * itself. A file that was made may be missing, and one that was removed may be back. If one was
 * removed and another made under its name, the disk has the one, or the other, or none. Files live
 * until power_reset.
 *
 * It stands in for "unix-excl", which the store asks for. Tests only. Any thread.
 */
#pragma once

#include <stdbool.h>

/* Registers it as SQLite's default; power_uninstall removes it. */
void power_install(void);
void power_uninstall(void);

/* Starts without files and with power on. All that follows depends only on the seed. `synced` is
 * called at each sync of a WAL that succeeds before power fails: everything written before it is
 * then on the disk. */
void power_reset(unsigned seed, void (*synced)(void *data), void *data);

/* Makes power fail at the n-th write, sync, truncation or removal from now on: this call and all
 * later calls fail. 0: never. */
void power_fail_at(long n);
bool power_is_off(void);

/* Turns power on; the files now have the content that is on the disk. */
void power_on(void);
