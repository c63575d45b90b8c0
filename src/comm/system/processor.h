/* Whose processor this is: what a line costs that another core has written depends on it.
 *
 * On AMD a core that reads such a line leaves it shared, and its owner pays for taking it back:
 * readers claim what they have read (line.h), and short blocks keep all in the L2 cache. On
 * Intel claiming costs more than it saves, and a line that still lies in the other core's first
 * cache takes twice as long as one in its second: long blocks have left it when their turn comes
 * (measured: Xeon of family 6 model 167, 2 ranks, 256 KiB in blocks of 16 and 64 KiB: 44 and 33 us;
 * 4 ranks, 64 KiB claimed and not: 36 and 30 us). What is neither is taken for AMD's.
 *
 * Layer: comm. Thread: any.
 */
#pragma once

#include <stdbool.h>

bool processor_is_intel(void);
