/* See completed.h. */
#include "control/status/completed.h"

#include <muster/err.h>
#include <stdlib.h>

int control_completed_init(struct control_completed *c, int replicas)
{
    int count = replicas < 0                       ? 0
                : replicas > CONTROL_COMPLETED_MAX ? CONTROL_COMPLETED_MAX
                                                   : replicas;
    *c = (struct control_completed){.has = calloc((size_t)count + 1, sizeof *c->has),
                                    .count = count};
    return c->has ? 0 : MUSTER_ENOMEM;
}

void control_completed_done(struct control_completed *c)
{
    free(c->has);
    *c = (struct control_completed){0};
}

/* -1: there is no number. */
static long read_index(const char **at)
{
    char *end;
    if (**at < '0' || **at > '9') {
        return -1;
    }
    long index = strtol(*at, &end, 10);
    *at = end;
    return index;
}

/* "2" or "2-5", up to a comma or the end. */
static bool read_range(const char **at, long *ret_first, long *ret_last)
{
    *ret_first = *ret_last = read_index(at);
    if (**at == '-') {
        (*at)++;
        *ret_last = read_index(at);
    }
    bool ends = **at == ',' || **at == '\0';
    *at += **at == ',';
    return ends && 0 <= *ret_first && *ret_first <= *ret_last;
}

void control_completed_read(struct control_completed *c, const char *text)
{
    long first, last;
    for (const char *at = text; at && *at && read_range(&at, &first, &last);) {
        for (long i = first; i <= last && i < c->count; i++) {
            c->has[i] = true;
        }
    }
}

void control_completed_add(struct control_completed *c, int index)
{
    if (0 <= index && index < c->count) {
        c->has[index] = true;
    }
}

bool control_completed_has(const struct control_completed *c, int index)
{
    return 0 <= index && index < c->count && c->has[index];
}

void control_completed_write(const struct control_completed *c, struct buf *out)
{
    for (int first = 0; first < c->count; first++) {
        int last = first;
        while (c->has[first] && last + 1 < c->count && c->has[last + 1]) {
            last++;
        }
        if (c->has[first]) {
            buf_format(out, "%s%d", out->used > 0 ? "," : "", first);
        }
        if (last > first) {
            buf_format(out, "-%d", last);
        }
        first = last;
    }
}
