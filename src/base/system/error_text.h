/* Texts of system errors for users: an error that comes from a limit names the limit.
 *
 * Layer: base (not for pure code).
 */
#pragma once

/* Returns the text of an errno. It is static, or strerror's, which is valid until its next call. */
const char *error_text(int number);

/* The same for a process or thread that could not be started, where EAGAIN means a limit. */
const char *error_text_start(int number);
