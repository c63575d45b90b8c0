/* Amounts of memory as people read them, in the units of resources.limits. Layer: base; pure. */
#pragma once

#include <stdint.h>

enum { MEMORY_TEXT_BYTES = 32 };

/* Writes "3.5 MiB", "64 MiB", "12.5 GiB". Returns ret. */
const char *memory_text(int64_t bytes, char ret[MEMORY_TEXT_BYTES]);
