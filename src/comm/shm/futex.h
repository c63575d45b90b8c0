/* Lets threads of any process sleep on words of memory. Layer: comm. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { FUTEX_MAX_WORDS = 64 };

/* Sleeps until one of the words differs from its value, or until timeout_ms have passed. num <=
 * FUTEX_MAX_WORDS. */
void futex_wait_any(_Atomic uint32_t *const *words, const uint32_t *values, int num,
                    int timeout_ms);
void futex_wake_all(_Atomic uint32_t *word);
