/* The groups of ranks that exchange with each other: all ranks, the ranks of this host, and the
 * leaders of all hosts that have the same share (schedule/hierarchy.h). Layer: comm. Memory: the
 * communicator's. */
#include "comm/state/team.h"

#include <assert.h>
#include <stdlib.h>

static void add(struct muster_comm *comm, struct team *team, int rank)
{
    assert(team->size < comm->size && rank >= 0 && rank < comm->size);
    if (rank == comm->rank) {
        team->index = team->size;
    } else if (comm->peers[rank].local >= 0) {
        team->boards = true;
    } else {
        team->links = true;
    }
    team->ranks[team->size++] = rank;
}

static bool has_room(struct muster_comm *comm)
{
    struct team *teams[] = {&comm->everyone, &comm->here, &comm->across};
    bool room = (comm->hosts = calloc(1, sizeof *comm->hosts)) != NULL;
    for (size_t i = 0; i < sizeof teams / sizeof teams[0]; i++) {
        teams[i]->ranks = calloc((size_t)comm->size, sizeof *teams[i]->ranks);
        room = room && teams[i]->ranks;
    }
    return room;
}

bool team_init(struct muster_comm *comm, const int *lowest)
{
    if (!has_room(comm)) {
        return false;
    }
    schedule_hosts_init(comm->hosts, lowest, comm->size);
    for (int r = 0; r < comm->size; r++) {
        add(comm, &comm->everyone, r);
        if (comm->peers[r].local >= 0) {
            add(comm, &comm->here, r);
        }
    }
    int index = comm->hosts->index_of[comm->rank];
    for (int host = 0; index < comm->hosts->leaders && host < comm->hosts->hosts; host++) {
        add(comm, &comm->across, schedule_host_rank(comm->hosts, host, index));
    }
    assert(comm->everyone.index == comm->rank && comm->here.index == index);
    return true;
}

void team_done(struct muster_comm *comm)
{
    free(comm->everyone.ranks);
    free(comm->here.ranks);
    free(comm->across.ranks);
    free(comm->hosts);
}
