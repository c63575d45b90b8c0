/* Reading what Python's faulthandler wrote: the one line that says where a process is.
 *
 * Layer: services; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Describes the main thread by its innermost frame that is the user's own (not of the standard
 * library nor of installed packages), and what it called: "all_reduce at train.py:42 in main", or
 * "train.py:17 in main". False when the text holds no frame. */
bool stack_text_where(const char *stacks, char *ret, size_t room);
/* Removes the thread that answered the request (python/sitecustomize.py): it is muster's, not the
 * user's. */
void stack_text_drop_asked(char *stacks);
