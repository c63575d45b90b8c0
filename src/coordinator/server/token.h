/* The job's token: a process that has it belongs to the job.
 *
 * Layer: program (coordinator). Memory: the caller's. Thread: any.
 */
#pragma once

#include "wire/wire.h"

/* Reads 64 hexadecimal digits; blanks around them are ignored. MUSTER_EINVAL. The error text does
 * not repeat the input. */
int server_token_read(const char *text, uint8_t ret[WIRE_TOKEN_BYTES], struct muster_err *err);

/* Compares in the same time, whichever bytes differ. */
bool server_token_is(const uint8_t a[WIRE_TOKEN_BYTES], const uint8_t b[WIRE_TOKEN_BYTES]);
