/* The standard streams of an exec session's command: pipes, or a terminal of its own.
 *
 * Layer: services; private to the session. Thread: any. Ownership: the session's process.
 */
#pragma once

#include "process/wire/spec.h"

enum { STREAMS_OUTPUTS = 2 };

/* The session's ends of the streams; none of them blocks. */
struct streams {
    bool tty;
    int input_fd;                   /* -1: closed, or there is none */
    int output_fd[STREAMS_OUTPUTS]; /* standard output (of a terminal: all) and error; -1: ended */
};

/* Opens the streams that `open` (session.h) asks for. ret_command: the command's ends; with a
 * terminal one descriptor for all three. Returns false with errno. */
bool streams_open(struct streams *streams, const struct process_spec *spec, const json_t *open,
                  int ret_command[3]);
/* size: {"rows", "columns"}; any other document is ignored. */
void streams_resize(const struct streams *streams, const json_t *size);
void streams_close_input(struct streams *streams);
