/* What an error of the system means for who reads it: where a limit was met, which one.
 *
 * Layer: base (not for pure code).
 */
#pragma once

/* The sentence of an errno. Static, or strerror's, until its next call. */
const char *error_text(int number);

/* The same, of a process or thread that could not be started: EAGAIN means a limit there. */
const char *error_text_start(int number);
