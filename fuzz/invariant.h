/* What the fuzzers share: an invariant that must hold for every input, and known leaks of others
 * that are not reported. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void invariant(bool kept, const char *what, const char *detail)
{
    if (!kept) {
        fprintf(stderr, "violated invariant: %s\n%s\n", what, detail);
        abort();
    }
}

/* libfyaml 0.7.12 loses 2 KiB for a scalar in single quotes with nine quotes in a row. */
static inline bool libfyaml_leaks(const uint8_t *data, size_t size)
{
    static const char row[] = "'''''''''";
    return memmem(data, size, row, sizeof row - 1) != NULL;
}
