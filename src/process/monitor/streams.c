/* See streams.h. */
#include "process/monitor/streams.h"

#include "base/doc.h"
#include "process/wire/passing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

void streams_resize(const struct streams *streams, const json_t *size)
{
    const struct winsize window = {.ws_row = (unsigned short)doc_int(size, "rows", 0),
                                   .ws_col = (unsigned short)doc_int(size, "columns", 0)};
    if (streams->tty && window.ws_row > 0 && window.ws_col > 0) {
        (void)ioctl(streams->output_fd[0], TIOCSWINSZ, &window);
    }
}

/* Opens a new terminal and returns the command's side; our side is both input and output. Returns
 * -1 with errno on failure. */
static int open_terminal(struct streams *streams, const struct process_spec *spec)
{
    int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (ours < 0 || grantpt(ours) < 0 || unlockpt(ours) < 0) {
        return -1;
    }
    int theirs = open(ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (theirs >= 0 && fchown(theirs, (uid_t)spec->user, (gid_t)spec->group) < 0) {
        passing_close(&theirs, 1);
        return -1;
    }
    streams->output_fd[0] = ours;
    streams->input_fd = fcntl(ours, F_DUPFD_CLOEXEC, 3);
    return theirs;
}

static bool open_pipe(int *ret_ours, int *ret_theirs, bool we_write)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return false;
    }
    *ret_ours = ends[we_write];
    *ret_theirs = ends[!we_write];
    return fcntl(*ret_ours, F_SETFL, O_NONBLOCK) == 0;
}

bool streams_open(struct streams *streams, const struct process_spec *spec, const json_t *open_doc,
                  int ret_command[3])
{
    *streams = (struct streams){
        .tty = doc_bool(open_doc, "tty", false), .input_fd = -1, .output_fd = {-1, -1}};
    if (streams->tty) {
        ret_command[0] = ret_command[1] = ret_command[2] = open_terminal(streams, spec);
        streams_resize(streams, open_doc);
        return ret_command[0] >= 0;
    }
    if (doc_bool(open_doc, "stdin", false)) {
        if (!open_pipe(&streams->input_fd, &ret_command[0], true)) {
            return false;
        }
    } else {
        ret_command[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    return ret_command[0] >= 0 && open_pipe(&streams->output_fd[0], &ret_command[1], false) &&
           open_pipe(&streams->output_fd[1], &ret_command[2], false);
}

void streams_close_input(struct streams *streams)
{
    if (streams->input_fd >= 0 && streams->tty) {
        const char end_of_file = 4; /* Ctrl-D: the terminal's driver ends the input */
        (void)!write(streams->input_fd, &end_of_file, 1);
    }
    passing_close(&streams->input_fd, 1);
    streams->input_fd = -1;
}
