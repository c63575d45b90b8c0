/* Finds out whether processes of members on other hosts that have no connection to us have ended.
 * Other members report a member that dies; but if all members of a host die, none is left to report
 * it, and no member ever reports a worker by leases.
 *
 * A member's address is tried when it joins. If it cannot be reached then (a firewall is in
 * between, or its address belongs to another network) nothing is concluded from it later. If it was
 * reached, has no connection, and its host refuses REFUSALS times, one look after another, it has
 * ended: a living member listens, and would have connected again by then. See internal.h and
 * probe.h. */
#include "coordinator/server/internal.h"

#include <string.h>

enum { REFUSALS = 3, FIRST_TRIES = 4, PATIENCE_LOOKS = 4, PROBES_MAX = 256 };

static void stop(struct server_member *member)
{
    member->server->probes -= member->reach.probe != NULL;
    server_probe_stop(member->reach.probe);
    member->reach.probe = NULL;
    member->reach.looks = 0;
}

static void give_up(struct server_member *member)
{
    member->reach.gone = true;
    server_feed(member->server,
                (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = member->incarnation});
}

static void on_answer(void *data, bool refused)
{
    struct server_member *member = data;
    struct server_reach *reach = &member->reach;
    bool is_new = !reach->reached && !refused;
    stop(member);
    reach->reached = reach->reached || !refused;
    reach->refusals = refused ? reach->refusals + 1 : 0;
    if (is_new) {
        server_roll_add(member->server, member);
    }
    if (reach->reached && !member->connection && reach->refusals >= REFUSALS) {
        give_up(member);
    }
}

static void start(struct server_member *member)
{
    struct server *s = member->server;
    member->reach.probe =
        s->probes < PROBES_MAX
            ? server_probe_start(s->loop, member->reach.address, on_answer, member)
            : NULL;
    s->probes += member->reach.probe != NULL;
}

void server_reach_note(struct server_member *member, const uint8_t address[WIRE_ADDRESS_BYTES])
{
    if (!member->watch && !member->reach.probe && server_probe_may(address)) {
        memcpy(member->reach.address, address, sizeof member->reach.address);
        member->reach.known = true;
        start(member);
    }
}

/* Takes the address only if it is that of the connection's other end: an address of another network
 * may be that of another host here. */
void server_reach_note_leaser(struct server_member *member,
                              const uint8_t address[WIRE_ADDRESS_BYTES])
{
    if (member->connection && server_probe_is_of_peer(address, member->connection->fd)) {
        server_reach_note(member, address);
    }
}

void server_reach_recall(struct server_member *member, const uint8_t address[WIRE_ADDRESS_BYTES])
{
    memcpy(member->reach.address, address, sizeof member->reach.address);
    member->reach.known = true;
    member->reach.reached = true;
}

void server_reach_stop(struct server_member *member)
{
    stop(member);
    member->reach.refusals = 0;
}

/* Whether a member must be probed: a connected one until it was reached once, others at each
 * look. */
static bool is_due(struct server_member *member)
{
    struct server_reach *reach = &member->reach;
    if (!reach->known || reach->gone || member->watch || member->died_ms > 0) {
        return false;
    }
    return member->connection ? !reach->reached && reach->tries++ < FIRST_TRIES : reach->reached;
}

void server_reach_look(struct server *s)
{
    struct server_member *member;
    for (size_t at = 0; (member = server_table_each(&s->members, &at));) {
        if (member->reach.probe && ++member->reach.looks >= PATIENCE_LOOKS) {
            stop(member); /* no answer has come */
        }
        if (!member->reach.probe && is_due(member)) {
            start(member);
        }
    }
}
