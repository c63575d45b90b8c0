/* The only place where the arbiter steps, and its recording (core/recording.h). See internal.h. */
#include "coordinator/server/internal.h"

#include "coordinator/arbiter/code.h"

static void write_out(struct server *s, enum recording_kind kind, struct buf *bytes)
{
    if (!buf_failed(bytes)) {
        recording_write(s->recording, kind, bytes->data, bytes->used);
    } else { /* a recording with a gap would be useless */
        recording_close(s->recording);
        s->recording = NULL;
    }
}

void server_recording_begin(struct server *s, const struct arbiter_options *options)
{
    struct buf bytes;
    s->recording = recording_open("coordinator");
    if (s->recording) {
        buf_init(&bytes, ARBITER_BYTES_MAX);
        arbiter_code_options(options, &bytes);
        write_out(s, RECORDING_ARBITER, &bytes);
        buf_done(&bytes);
    }
}

/* Records the event before the step, because its pointers are only borrowed. */
static int step_recorded(struct server *s, const struct arbiter_event *event,
                         struct muster_err *err)
{
    struct buf bytes;
    buf_init(&bytes, ARBITER_BYTES_MAX);
    arbiter_code_event(event, &bytes);
    int r = arbiter_step(s->arbiter, event, &s->effects, err);
    arbiter_code_answer(s->arbiter, event, r, &s->effects, &bytes);
    write_out(s, RECORDING_DECIDE, &bytes);
    buf_done(&bytes);
    return r;
}

int server_step(struct server *s, const struct arbiter_event *event, struct muster_err *err)
{
    return s->recording ? step_recorded(s, event, err)
                        : arbiter_step(s->arbiter, event, &s->effects, err);
}
