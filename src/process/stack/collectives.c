/* See collectives.h. */
#include "process/stack/collectives.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS_MAX = 4096, TEXT_BYTES_MAX = 4096 };

/* One process in one communicator. */
struct member {
    const char *group, *call, *where, *state;
    long rank;             /* rank in the job; if not known, in the communicator */
    long attempt_rank;     /* -1: the attempt has none */
    long own;              /* rank in the communicator */
    const json_t *message; /* the message that has waited longest; NULL: none */
    long long number, size;
    bool inside;
};

struct members {
    struct member *list;
    size_t count;
};

/* ---- Where the ranks are ---- */

/* Whether the attempt has one process with communicators, which then is the job's rank; torchrun
 * starts several in one attempt. */
static bool is_rank(const json_t *attempt)
{
    size_t i, count = 0;
    json_t *process;
    json_array_foreach (json_object_get(attempt, "processes"), i, process) {
        count += json_object_get(process, "calls") != NULL;
    }
    return count == 1 && doc_int(attempt, "rank", -1) >= 0;
}

static void add_process(struct members *members, const json_t *attempt, const json_t *process)
{
    size_t i;
    json_t *call;
    long attempt_rank = (long)doc_int(attempt, "rank", -1);
    json_array_foreach (json_object_get(process, "calls"), i, call) {
        if (members->count < MEMBERS_MAX) {
            members->list[members->count++] = (struct member){
                .group = doc_text(call, "group", ""),
                .call = doc_text(call, "call", ""),
                .where = doc_text(process, "where", ""),
                .state = doc_text(process, "state", ""),
                .rank = is_rank(attempt) ? attempt_rank : (long)doc_int(call, "rank", 0),
                .attempt_rank = attempt_rank,
                .own = (long)doc_int(call, "rank", 0),
                .message = json_object_get(call, "message"),
                .number = (long long)doc_int(call, "number", 0),
                .size = (long long)doc_int(call, "size", 0),
                .inside = doc_bool(call, "inside", false),
            };
        }
    }
}

static int by_rank(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static bool read_members(const json_t *report, struct members *ret)
{
    size_t i, k;
    json_t *attempt, *process;
    *ret = (struct members){.list = calloc(MEMBERS_MAX, sizeof *ret->list)};
    if (!ret->list) {
        return false;
    }
    json_array_foreach (report, i, attempt) {
        json_array_foreach (json_object_get(attempt, "processes"), k, process) {
            add_process(ret, attempt, process);
        }
    }
    qsort(ret->list, ret->count, sizeof *ret->list, by_rank);
    return true;
}

/* Returns the member with the highest call number of those that are inside a call of the group;
 * NULL: none is. */
static const struct member *find_front(const struct members *members, const char *group)
{
    const struct member *front = NULL;
    for (size_t i = 0; i < members->count; i++) {
        const struct member *m = &members->list[i];
        bool fits = m->inside && strcmp(m->group, group) == 0;
        front = fits && (!front || m->number > front->number) ? m : front;
    }
    return front;
}

/* ---- The sentences ---- */

static bool waits(const struct member *m, const struct member *front)
{
    return m->inside && m->number == front->number;
}

static bool is_missing(const struct member *m, const struct member *front)
{
    return m->number < front->number;
}

static bool in_group(const struct member *m, const struct member *front)
{
    return strcmp(m->group, front->group) == 0;
}

static void put_waiting(struct buf *out, const struct members *members, const struct member *front)
{
    long long count = 0;
    for (size_t i = 0; i < members->count; i++) {
        count += in_group(&members->list[i], front) && waits(&members->list[i], front);
    }
    if (count == front->size) {
        buf_text(out, "all ranks are in it");
        return;
    }
    const char *before = count > 1 ? "ranks " : "rank ";
    for (size_t i = 0; i < members->count; i++) {
        const struct member *m = &members->list[i];
        if (in_group(m, front) && waits(m, front)) {
            buf_format(out, "%s%ld", before, m->rank);
            before = ", ";
        }
    }
    buf_text(out, count > 1 ? " wait" : " waits");
}

static void put_message(struct buf *out, const struct member *m, const struct members *members);

static void put_place(struct buf *out, const struct member *m, const struct members *members)
{
    if (m->message && !m->inside) {
        put_message(out, m, members);
    } else if (!*m->call) {
        buf_text(out, "no call yet");
    } else if (m->inside) {
        buf_format(out, "call %lld, %s", m->number, m->call);
    } else {
        buf_format(out, "no call since call %lld, %s", m->number, m->call);
    }
    buf_format(out, ", %s%s%s", m->state, *m->where ? " at " : "", m->where);
}

static void put_missing(struct buf *out, const struct member *m, const struct members *members)
{
    buf_format(out, "; rank %ld is missing: in ", m->rank);
    put_place(out, m, members);
}

/* ---- Messages ---- */

/* Returns the other rank of a member's message; NULL: any rank, or one that has no process here. */
static const struct member *find_peer(const struct members *members, const struct member *m)
{
    for (size_t i = 0; i < members->count; i++) {
        const struct member *peer = &members->list[i];
        if (in_group(peer, m) && peer->own == doc_int(m->message, "peer", -1)) {
            return peer;
        }
    }
    return NULL;
}

/* Puts "recv from rank 1 with tag 3". */
static void put_message(struct buf *out, const struct member *m, const struct members *members)
{
    const struct member *peer = find_peer(members, m);
    long own = (long)doc_int(m->message, "peer", -1);
    long tag = (long)doc_int(m->message, "tag", 0);
    bool receives = doc_bool(m->message, "receives", false);
    buf_format(out, "%s", receives ? "recv from " : "send to ");
    if (own < 0) {
        buf_text(out, "any rank");
    } else {
        buf_format(out, "rank %ld", peer ? peer->rank : own);
    }
    if (tag > 0) {
        buf_format(out, " with tag %ld", tag);
    }
}

static void describe_message(struct buf *out, const struct members *members, const struct member *m)
{
    const struct member *peer = find_peer(members, m);
    put_message(out, m, members);
    buf_format(out, ": rank %ld waits", m->rank);
    if (peer) {
        buf_format(out, "; rank %ld is in ", peer->rank);
        put_place(out, peer, members);
    } else if (doc_int(m->message, "peer", -1) >= 0) {
        buf_text(out, ", which has no process here");
    }
}

static void describe_group(struct buf *out, const struct members *members,
                           const struct member *front)
{
    long long seen = 0;
    buf_format(out, "%s (call %lld): ", front->call, front->number);
    put_waiting(out, members, front);
    for (size_t i = 0; i < members->count; i++) {
        const struct member *m = &members->list[i];
        seen += in_group(m, front);
        if (in_group(m, front) && is_missing(m, front)) {
            put_missing(out, m, members);
        }
    }
    if (seen < front->size) {
        buf_format(out, "; %lld of its %lld ranks have no process here", front->size - seen,
                   front->size);
    }
}

/* Whether this is the first member of its communicator: each communicator is described once. */
static bool is_first(const struct members *members, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (in_group(&members->list[i], &members->list[at])) {
            return false;
        }
    }
    return true;
}

json_t *collectives_describe(const json_t *report)
{
    struct members members;
    json_t *lines = json_array();
    if (!read_members(report, &members)) {
        return lines;
    }
    for (size_t i = 0; i < members.count; i++) {
        const struct member *front = find_front(&members, members.list[i].group);
        if (front && is_first(&members, i)) {
            struct buf out;
            buf_init(&out, TEXT_BYTES_MAX);
            describe_group(&out, &members, front);
            json_array_append_new(lines, json_string(buf_str(&out)));
            buf_done(&out);
        }
    }
    for (size_t i = 0; i < members.count; i++) {
        if (members.list[i].message) {
            struct buf out;
            buf_init(&out, TEXT_BYTES_MAX);
            describe_message(&out, &members, &members.list[i]);
            json_array_append_new(lines, json_string(buf_str(&out)));
            buf_done(&out);
        }
    }
    free(members.list);
    return lines;
}

char *collectives_of_rank(const json_t *report, long rank)
{
    struct members members;
    char *text = NULL;
    if (!read_members(report, &members)) {
        return NULL;
    }
    for (size_t i = 0; i < members.count && !text; i++) {
        const struct member *m = &members.list[i];
        const struct member *front = find_front(&members, m->group);
        if (m->attempt_rank == rank && ((m->inside && front) || m->message)) {
            struct buf out;
            buf_init(&out, TEXT_BYTES_MAX);
            if (m->inside && front) {
                describe_group(&out, &members, front);
            } else {
                describe_message(&out, &members, m);
            }
            text = buf_steal(&out);
        }
    }
    free(members.list);
    return text;
}
