/* Sizes as people read them. Layer: cli; pure. */
#pragma once

#include <stdint.h>

enum { BYTES_TEXT = 32 };

/* "1 byte", "512 bytes", "12.3 MB": powers of ten. Returns ret. */
const char *bytes_text(uint64_t bytes, char ret[BYTES_TEXT]);
