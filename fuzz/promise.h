/* What the fuzzers share: a promise that must hold whatever the input. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void promise(bool kept, const char *what, const char *detail)
{
    if (!kept) {
        fprintf(stderr, "broken promise: %s\n%s\n", what, detail);
        abort();
    }
}
