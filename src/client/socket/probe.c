/* See probe.h. */
#include "client/socket/probe.h"

#include "comm/region/region.h"
#include "comm/system/deadline.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum { NS_PER_MS = 1000000 };

static void close_all(void *context)
{
    struct probe *p = context;
    for (int r = 0; r < p->size; r++) {
        fork_close(&p->states[r].fd);
    }
}

void probe_init(struct probe *p, const struct muster_member *regions, int size, int self)
{
    int64_t first_ns = deadline_now_ns() - (PROBE_AGAIN_MS - PROBE_FIRST_MS) * (int64_t)NS_PER_MS;
    *p = (struct probe){.regions = regions, .size = size, .self = self, .silent = -1};
    for (int r = 0; r < size; r++) {
        p->states[r] = (struct probe_state){.fd = -1, .since_ns = first_ns};
    }
    p->fork = (struct fork_watch){.forked = close_all, .context = p};
    fork_remember(&p->fork);
}

void probe_done(struct probe *p)
{
    fork_forget(&p->fork);
    close_all(p);
}

/* Begins to connect. If this fails, forming the communicator finds the dead member itself. */
static void begin(struct probe *p, int rank, int64_t now_ns)
{
    struct member member = endpoint_member(&p->regions[rank]);
    struct probe_state *s = &p->states[rank];
    s->fd = endpoint_begin(&member, false);
    s->since_ns = now_ns;
    s->greeted = false;
}

/* Sends the hello, and then the question. */
static void ask(struct probe_state *s)
{
    const struct hello hello = {.magic = HELLO_MAGIC, .digest = REGION_DIGEST};
    const struct region_ask question = {.magic = REGION_MAGIC};
    int fd = endpoint_greet(s->fd, &hello, NULL);
    if (fd < 0) {
        s->fd = -1; /* the function has closed it */
        return;
    }
    s->greeted = send(fd, &question, sizeof question, MSG_NOSIGNAL) == (ssize_t)sizeof question;
    if (!s->greeted) {
        fork_close(&s->fd);
    }
}

/* An answer, or the end of the connection, counts as a sign of life: if the process has in fact
 * ended, forming finds that. */
static void move(struct probe_state *s, int64_t now_ns)
{
    struct pollfd p = {.fd = s->fd, .events = s->greeted ? POLLIN : POLLOUT};
    if (poll(&p, 1, 0) <= 0) {
        return;
    }
    if (s->greeted || (p.revents & (POLLERR | POLLHUP))) {
        fork_close(&s->fd);
        s->since_ns = now_ns;
    } else {
        ask(s);
    }
}

bool probe_look(struct probe *p)
{
    int64_t now_ns = deadline_now_ns();
    for (int r = 0; r < p->size; r++) {
        struct probe_state *s = &p->states[r];
        if (r == p->self) {
            continue;
        }
        if (s->fd < 0 && now_ns - s->since_ns > PROBE_AGAIN_MS * (int64_t)NS_PER_MS) {
            begin(p, r, now_ns);
        } else if (s->fd >= 0) {
            move(s, now_ns);
        }
        if (s->fd >= 0 && now_ns - s->since_ns > PROBE_SILENT_MS * (int64_t)NS_PER_MS) {
            p->silent = r;
        }
    }
    return p->silent >= 0;
}
