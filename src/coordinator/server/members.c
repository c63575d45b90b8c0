/* Keeps connections: those of strangers, who show the token or go, and those of members, whose
 * messages are given to the arbiter. See internal.h. */
#include "coordinator/server/internal.h"

#include "base/err.h"
#include "base/text.h"
#include "coordinator/server/token.h"

#include <stdlib.h>
#include <string.h>

/* ---- Connections ---- */

static void link_in(struct server_connection **list, struct server_connection *c)
{
    c->previous = NULL;
    c->next = *list;
    if (*list) {
        (*list)->previous = c;
    }
    *list = c;
}

static void unlink_from(struct server_connection **list, struct server_connection *c)
{
    *(c->previous ? &c->previous->next : list) = c->next;
    if (c->next) {
        c->next->previous = c->previous;
    }
}

static void on_ended(void *data, struct server_connection *c)
{
    struct server *s = data;
    s->strangers -= c->incarnation == 0;
    unlink_from(&s->open, c);
    link_in(&s->ended, c);
}

void server_bury_one(struct server *s)
{
    struct server_connection *c = s->ended;
    struct server_member *member = server_member(s, c->incarnation);
    unlink_from(&s->ended, c);
    if (member && member->connection == c) {
        member->connection = NULL;
        enum arbiter_cause cause = member->watch ? ARBITER_CAUSE_PENDING : ARBITER_CAUSE_UNKNOWN;
        server_feed(s, (struct arbiter_event){.kind = ARBITER_DISCONNECTED,
                                              .incarnation = member->incarnation,
                                              .cause = cause});
    }
    server_connection_free(c);
}

static void refuse(struct server *s, struct server_connection *c, const char *why)
{
    uint8_t bytes[WIRE_TEXT_MAX + WIRE_FIRST_MAX];
    const struct wire_message message = {.kind = WIRE_REFUSED,
                                         .term = arbiter_term(s->arbiter),
                                         .refused.why = {why, (uint32_t)strlen(why)}};
    int64_t count = wire_write(&message, bytes, sizeof bytes, NULL);
    struct server_frame *frame = count > 0 ? server_frame_new(bytes, (size_t)count) : NULL;
    if (frame) {
        server_connection_send(c, frame);
    }
    server_frame_release(frame);
    server_connection_hang_up(c, server_now_ms());
}

/* ---- Members ---- */

struct server_member *server_member(const struct server *s, uint64_t incarnation)
{
    return server_table_find(&s->members, incarnation);
}

static void forget(struct server *s, struct server_member *member)
{
    server_table_remove(&s->members, member->incarnation);
    server_watch_stop(member->watch);
    server_reach_stop(member);
    free(member);
}

/* A member has died. The messages that it sent before count. */
static void on_died(void *data)
{
    struct server_member *member = data;
    struct server *s = member->server;
    struct server_connection *c = member->connection;
    if (member->recalled) {
        server_watch_stop(member->watch);
        member->watch = NULL;
        server_feed(
            s, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = member->incarnation});
        return;
    }
    if (c) {
        server_connection_drain(c);
        server_connection_end(c);
    }
    enum arbiter_cause cause = server_watch_cause(member->watch, member->how);
    member->died_ms = server_now_ms();
    (void)snprintf(member->name, sizeof member->name, "%s",
                   arbiter_name(s->arbiter, member->incarnation));
    if (cause != ARBITER_CAUSE_PENDING) {
        server_watch_stop(member->watch);
        member->watch = NULL;
    }
    server_feed(s, (struct arbiter_event){
                       .kind = ARBITER_DEAD, .incarnation = member->incarnation, .cause = cause});
}

static struct server_member *add_member(struct server *s, uint64_t incarnation)
{
    struct server_member *member = calloc(1, sizeof *member);
    if (!member || server_table_add(&s->members, incarnation, member) < 0) {
        free(member);
        return NULL;
    }
    member->server = s;
    member->incarnation = incarnation;
    return member;
}

/* Finds or adds a member. A member that exists has a new connection, perhaps before the end of the
 * old one is seen. */
static struct server_member *take_member(struct server *s, uint64_t incarnation)
{
    struct server_member *member = server_member(s, incarnation);
    if (!member) {
        return add_member(s, incarnation);
    }
    if (member->connection) {
        struct server_connection *old = member->connection;
        member->connection = NULL;
        server_connection_end(old);
    }
    server_feed(s, (struct arbiter_event){.kind = ARBITER_CONNECTED, .incarnation = incarnation});
    server_watch_stop(member->watch);
    member->watch = NULL;
    server_reach_stop(member);
    member->recalled = false;
    return member;
}

void server_recall(struct server *s, uint64_t incarnation, const struct server_process *process,
                   const uint8_t *reached)
{
    bool gone = false;
    struct server_member *member =
        server_member(s, incarnation) ? NULL : add_member(s, incarnation);
    if (!member) {
        return;
    }
    member->recalled = true;
    member->watch = server_watch_resume(s->loop, process, on_died, member, &gone);
    if (reached) {
        server_reach_recall(member, reached);
    }
    if (gone) {
        server_feed(s, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = incarnation});
    }
}

/* ---- Strangers ---- */

/* Returns the version of a HELLO, whatever the rest is: other versions may have other fields. */
static uint32_t version_of(const uint8_t *bytes, size_t count)
{
    enum { AT = WIRE_LENGTH_BYTES + 1 + 8 };
    uint32_t version = 0;
    if (count >= AT + 4 && bytes[WIRE_LENGTH_BYTES] == WIRE_HELLO) {
        for (int i = 0; i < 4; i++) {
            version |= (uint32_t)bytes[AT + i] << 8 * i;
        }
    }
    return version;
}

static void refuse_version(struct server *s, struct server_connection *c, uint32_t version)
{
    char why[WIRE_FIRST_MAX];
    (void)snprintf(why, sizeof why,
                   "the worker speaks version %u, the coordinator version %d: use one muster",
                   version, WIRE_VERSION);
    refuse(s, c, why);
}

static void welcome(struct server *s, struct server_connection *c)
{
    uint8_t bytes[WIRE_FIRST_MAX];
    const struct wire_message message = {
        .kind = WIRE_WELCOME,
        .term = arbiter_term(s->arbiter),
        .welcome = {.version = WIRE_VERSION, .lease_ms = SHARD_LEASE_MS}};
    int64_t count = wire_write(&message, bytes, sizeof bytes, NULL);
    struct server_frame *frame = server_frame_new(bytes, (size_t)count);
    if (frame) {
        server_connection_send(c, frame);
    } else {
        server_connection_end(c);
    }
    server_frame_release(frame);
}

static void admit(struct server *s, struct server_connection *c, const struct wire_hello *hello)
{
    struct server_member *member = take_member(s, hello->incarnation);
    if (!member || !s->arbiter) {
        server_connection_end(c);
        return;
    }
    s->strangers--;
    c->incarnation = hello->incarnation;
    member->connection = c;
    member->watch = server_watch_start(s->loop, c->fd, hello, on_died, member);
    server_roll_add(s, member);
    welcome(s, c);
}

static void greet(struct server *s, struct server_connection *c, const uint8_t *bytes, size_t count)
{
    struct wire_room room = {0};
    struct wire_message m;
    uint32_t version = version_of(bytes, count);
    bool is_hello = wire_read(bytes, count, &room, &m, NULL) == 0 && m.kind == WIRE_HELLO;
    if (version != 0 && version != WIRE_VERSION) {
        refuse_version(s, c, version);
    } else if (!is_hello || m.hello.incarnation == 0) {
        server_connection_end(c);
    } else if (!server_token_is(m.hello.token, s->options->token)) {
        refuse(s, c, "the token is not that of this job (MUSTER_COORDINATOR_TOKEN)");
    } else if (!server_member(s, m.hello.incarnation) &&
               s->members.count >= 2 * (size_t)SERVER_SIZE_MAX) {
        refuse(s, c, "there are too many processes in this job");
    } else if (s->over) {
        refuse(s, c, s->err->text);
    } else {
        admit(s, c, &m.hello);
    }
}

/* Ends the stranger that has waited longest: a real client says HELLO at once. */
static void make_place(struct server *s)
{
    struct server_connection *oldest = NULL;
    for (struct server_connection *c = s->open; c; c = c->next) {
        oldest = c->incarnation == 0 ? c : oldest; /* the newest come first */
    }
    if (oldest) {
        server_connection_end(oldest);
    }
}

/* ---- Messages ---- */

static bool make_room(struct server *s, size_t frame_bytes)
{
    size_t bytes = WIRE_ROOM_BYTES(frame_bytes) + 1;
    if (bytes > s->room_bytes) {
        uint8_t *larger = realloc(s->room, bytes);
        s->room_bytes = larger ? bytes : s->room_bytes;
        s->room = larger ? larger : s->room;
        return larger != NULL;
    }
    return true;
}

static void hear(struct server *s, struct server_connection *c, const uint8_t *bytes, size_t count)
{
    struct wire_message m;
    struct wire_room room = {.memory = s->room, .size_bytes = s->room_bytes};
    if (!make_room(s, count)) {
        server_connection_end(c);
        return;
    }
    room = (struct wire_room){.memory = s->room, .size_bytes = s->room_bytes};
    if (wire_read(bytes, count, &room, &m, NULL) < 0 || !wire_kind_of_workers(m.kind)) {
        refuse(s, c, "it sent what is no message of a worker");
        return;
    }
    uint64_t incarnation = c->incarnation;
    server_note(s, incarnation, &m);
    server_feed(s, (struct arbiter_event){
                       .kind = ARBITER_MESSAGE, .incarnation = incarnation, .message = &m});
    struct server_member *member = server_member(s, incarnation);
    if (m.kind == WIRE_ENROLL && s->arbiter && member) {
        server_reach_note_leaser(member, m.enroll.address);
    }
    if (m.kind == WIRE_JOIN && s->arbiter && member) {
        server_reach_note(member, m.join.address.region);
        pace_note(&s->pace, PACE_JOINED, arbiter_name(s->arbiter, incarnation));
    }
}

static void on_frame(void *data, struct server_connection *c, const uint8_t *bytes, size_t count)
{
    struct server *s = data;
    if (!s->arbiter || s->result < 0 || (s->over && !s->has_failed)) {
        server_connection_end(c);
    } else if (c->incarnation != 0 && s->over) {
        refuse(s, c, s->err->text);
    } else if (c->incarnation == 0) {
        greet(s, c, bytes, count);
    } else {
        hear(s, c, bytes, count);
    }
}

static bool may_write(void *data)
{
    return server_may_act(data);
}

void server_accept(void *data, int fd)
{
    static const struct server_connection_calls calls = {
        .frame = on_frame, .ended = on_ended, .may_write = may_write};
    struct server *s = data;
    struct server_connection *c = NULL;
    if (server_connection_new(s->loop, fd, server_now_ms(), &calls, s, &c, NULL) < 0) {
        return;
    }
    if (s->strangers == SERVER_STRANGERS_MAX) {
        make_place(s);
    }
    s->strangers++;
    link_in(&s->open, c);
}

/* ---- Tidying ---- */

/* Informs the arbiter of the cause of a death, once the process's parent has waited for it. */
static void settle_death(struct server *s, struct server_member *member, int64_t now_ms)
{
    enum arbiter_cause cause = server_watch_cause(member->watch, member->how);
    if (cause == ARBITER_CAUSE_PENDING && now_ms - member->died_ms < SERVER_PENDING_MS) {
        return;
    }
    server_watch_stop(member->watch);
    member->watch = NULL;
    bool is_lost = !arbiter_knows(s->arbiter, member->incarnation); /* or its loss is reported */
    if (is_lost && *member->how && *member->name) {
        report_say(&s->report, "%s ended %s", member->name, member->how);
    }
    bool known = cause != ARBITER_CAUSE_PENDING;
    server_feed(s, (struct arbiter_event){.kind = ARBITER_CAUSE,
                                          .incarnation = member->incarnation,
                                          .cause = known ? cause : ARBITER_CAUSE_UNKNOWN});
}

void server_tidy(struct server *s)
{
    int64_t now_ms = server_now_ms();
    for (struct server_connection *c = s->open, *next; c; c = next) {
        next = c->next;
        bool waits = c->incarnation == 0 || c->hangs_up;
        if (waits && now_ms - c->since_ms >= SERVER_HELLO_MS) {
            server_connection_end(c);
        }
    }
    struct server_member *member;
    for (size_t at = 0; s->arbiter && (member = server_table_each(&s->members, &at));) {
        if (member->watch && member->died_ms > 0) {
            settle_death(s, member, now_ms);
        }
        bool settled = !member->watch || member->died_ms == 0;
        if (settled && !member->connection && !arbiter_knows(s->arbiter, member->incarnation)) {
            forget(s, member);
            at = 0;
        }
    }
}

void server_forget_all(struct server *s)
{
    struct server_member *member;
    while (s->open) {
        server_connection_end(s->open);
    }
    while (s->ended) {
        struct server_connection *c = s->ended;
        unlink_from(&s->ended, c);
        server_connection_free(c);
    }
    for (size_t at = 0; (member = server_table_each(&s->members, &at)); at = 0) {
        forget(s, member);
    }
    server_table_done(&s->members);
}
