/* Lists the exchanges of which a collective between hosts consists. Layer: pure; see hierarchy.h.
 */
#include "schedule/hierarchy.h"

#include "core/size.h"
#include "schedule/partition.h"

#include <assert.h>
#include <string.h>

/* Up to this size all leaders reduce everything in one round; above it they divide the work. */
enum { ACROSS_AT_ONCE_BYTES = 16 * 1024, CHUNKS_IN_FLIGHT = 3 };

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* ---- chunks ---- */

static bool has_blocks(const struct schedule_hierarchy *h)
{
    return h->pattern == SCHEDULE_ALL_GATHER || h->pattern == SCHEDULE_REDUCE_SCATTER;
}

/* If there are blocks, a chunk is a range of the blocks of those ranks that have the same turn:
 * leader j works for the ranks j, j + leaders, j + 2 leaders, … of its host. */
static size_t turns(const struct schedule_hosts *hosts)
{
    int most = 0;
    for (int host = 0; host < hosts->hosts; host++) {
        most = schedule_host_ranks(hosts, host) > most ? schedule_host_ranks(hosts, host) : most;
    }
    return divide_up((size_t)most, (size_t)hosts->leaders);
}

static size_t block_count(const struct schedule_hierarchy *h, int rank)
{
    return h->counts ? h->counts[rank] : h->count;
}

static size_t block_start(const struct schedule_hierarchy *h, int rank)
{
    size_t start = 0;
    for (int r = 0; h->counts && r < rank; r++) {
        start += h->counts[r];
    }
    return h->counts ? start : h->count * (size_t)rank;
}

/* Returns the most elements that each block of a chunk has; there is one block for each host. */
static size_t block_part(const struct schedule_hierarchy *h)
{
    return h->part / (size_t)h->hosts->hosts;
}

void schedule_hierarchy_plan(struct schedule_hierarchy *h)
{
    assert(schedule_hosts_mixed(h->hosts) && h->part >= (size_t)h->hosts->hosts);
    assert(h->pattern != SCHEDULE_GATHER && h->pattern != SCHEDULE_SCATTER &&
           h->pattern != SCHEDULE_ALL_TO_ALL);
    size_t pieces = partition_chunks(h->count, h->hosts->leaders, h->part);
    if (has_blocks(h)) {
        size_t most = 0;
        for (int r = 0; r < h->hosts->size; r++) {
            most = block_count(h, r) > most ? block_count(h, r) : most;
        }
        pieces = divide_up(most, block_part(h));
    } else if (h->pattern == SCHEDULE_BARRIER) {
        pieces = 1;
    }
    /* There is at least one chunk, so that success means that every rank has entered. */
    h->chunks = (pieces > 0 ? pieces : 1) * (has_blocks(h) ? turns(h->hosts) : 1);
}

size_t schedule_hierarchy_slots(const struct schedule_hierarchy *h)
{
    return h->chunks + SCHEDULE_DOWN;
}

size_t schedule_hierarchy_work(const struct schedule_hierarchy *h)
{
    return CHUNKS_IN_FLIGHT * h->part;
}

static struct schedule_place work_of(const struct schedule_hierarchy *h, size_t chunk, size_t start)
{
    return (struct schedule_place){SCHEDULE_WORK, chunk % CHUNKS_IN_FLIGHT * h->part + start};
}

static struct schedule_place out_at(size_t start)
{
    return (struct schedule_place){SCHEDULE_OUT, start};
}

/* ---- vectors: each leader has a part of each chunk ---- */

static struct partition part_of(const struct schedule_hierarchy *h, size_t chunk, int leader)
{
    return partition_part(h->count, h->hosts->leaders, h->part, chunk, leader);
}

static void list_parts(const struct schedule_hierarchy *h, size_t chunk, struct schedule_stage *ret)
{
    int here = schedule_host_ranks(h->hosts, h->hosts->host_of[h->rank]);
    ret->blocks = true;
    for (int i = 0; i < here; i++) {
        bool leads = i < h->hosts->leaders;
        struct partition p = leads ? part_of(h, chunk, i) : (struct partition){0, 0};
        ret->counts[i] = p.count;
        ret->starts[i] = p.first;
    }
}

static bool at_root(const struct schedule_hierarchy *h)
{
    return h->hosts->host_of[h->rank] == h->hosts->host_of[h->root];
}

/* Returns the elements from the first part of a chunk to the end of its last part. */
static struct partition whole_of(const struct schedule_hierarchy *h, size_t chunk)
{
    struct partition first = part_of(h, chunk, 0), last = part_of(h, chunk, h->hosts->leaders - 1);
    return (struct partition){first.first, last.first + last.count - first.first};
}

static void reduce_up(const struct schedule_hierarchy *h, size_t chunk, struct schedule_stage *ret)
{
    ret->pattern = SCHEDULE_REDUCE_SCATTER;
    list_parts(h, chunk, ret);
    ret->from = (struct schedule_place){SCHEDULE_IN, 0};
    int mine = h->hosts->index_of[h->rank];
    ret->to = h->pattern == SCHEDULE_REDUCE ? work_of(h, chunk, 0) : out_at(ret->starts[mine]);
}

static void broadcast_up(const struct schedule_hierarchy *h, size_t chunk,
                         struct schedule_stage *ret)
{
    if (at_root(h)) {
        struct partition whole = whole_of(h, chunk);
        ret->pattern = SCHEDULE_BROADCAST;
        ret->root = h->hosts->index_of[h->root];
        ret->count = whole.count;
        ret->from = ret->to = out_at(whole.first);
    }
}

static void vector_up(const struct schedule_hierarchy *h, size_t chunk, struct schedule_stage *ret)
{
    if (h->pattern == SCHEDULE_BROADCAST) {
        broadcast_up(h, chunk, ret);
    } else if (h->pattern != SCHEDULE_BARRIER) {
        reduce_up(h, chunk, ret);
    }
}

static void vector_across(const struct schedule_hierarchy *h, size_t chunk,
                          struct schedule_stage *ret)
{
    if (h->pattern == SCHEDULE_BARRIER) {
        return;
    }
    struct partition mine = part_of(h, chunk, h->hosts->index_of[h->rank]);
    ret->count = mine.count;
    ret->root = h->hosts->host_of[h->root];
    ret->pattern = h->pattern;
    ret->last_reduce = true;
    ret->from = ret->to = h->pattern == SCHEDULE_REDUCE ? work_of(h, chunk, 0) : out_at(mine.first);
    if (h->pattern == SCHEDULE_ALL_REDUCE && mine.count * h->unit > ACROSS_AT_ONCE_BYTES) {
        ret->pattern = SCHEDULE_ALL_REDUCE_SPLIT;
    }
}

static void vector_down(const struct schedule_hierarchy *h, size_t chunk,
                        struct schedule_stage *ret)
{
    int mine = h->hosts->index_of[h->rank];
    if (h->pattern == SCHEDULE_ALL_REDUCE || (h->pattern == SCHEDULE_BROADCAST && !at_root(h))) {
        ret->pattern = SCHEDULE_ALL_GATHER;
        list_parts(h, chunk, ret);
        ret->from = out_at(ret->starts[mine]);
        ret->to = out_at(0);
    } else if (h->pattern == SCHEDULE_REDUCE && at_root(h)) {
        ret->pattern = SCHEDULE_GATHER;
        ret->root = h->hosts->index_of[h->root];
        list_parts(h, chunk, ret);
        ret->from = work_of(h, chunk, 0);
        ret->to = out_at(0);
    }
}

/* ---- blocks: one for each rank ---- */

struct range {
    size_t first; /* in all blocks together */
    size_t count;
};

/* Returns the chunk's range of the block of the rank for which leader j of this host works now. */
static struct range block_of(const struct schedule_hierarchy *h, size_t chunk, int host, int leader)
{
    size_t turn = chunk % turns(h->hosts), piece = chunk / turns(h->hosts);
    int rank = schedule_host_rank(h->hosts, host, leader + (int)turn * h->hosts->leaders);
    if (rank < 0) {
        return (struct range){0, 0};
    }
    size_t part = block_part(h), first = size_min(piece * part, block_count(h, rank));
    return (struct range){block_start(h, rank) + first,
                          size_min(part, block_count(h, rank) - first)};
}

static bool gather_up(const struct schedule_hierarchy *h, size_t chunk, int k,
                      struct schedule_stage *ret)
{
    if (k > 0 || chunk % turns(h->hosts) > 0) {
        return false; /* all blocks of the host were gathered in the first turn */
    }
    int host = h->hosts->host_of[h->rank], mine = h->hosts->index_of[h->rank];
    size_t part = block_part(h), piece = chunk / turns(h->hosts);
    ret->pattern = SCHEDULE_ALL_GATHER;
    ret->blocks = true;
    for (int i = 0; i < schedule_host_ranks(h->hosts, host); i++) {
        int rank = schedule_host_rank(h->hosts, host, i);
        size_t first = size_min(piece * part, block_count(h, rank));
        ret->starts[i] = block_start(h, rank) + first;
        ret->counts[i] = size_min(part, block_count(h, rank) - first);
    }
    size_t own = ret->starts[mine] - block_start(h, h->rank);
    ret->from = (struct schedule_place){SCHEDULE_IN, own};
    ret->to = out_at(0);
    return true;
}

static void gather_across(const struct schedule_hierarchy *h, size_t chunk,
                          struct schedule_stage *ret)
{
    int mine = h->hosts->index_of[h->rank];
    ret->pattern = SCHEDULE_ALL_GATHER;
    ret->blocks = true;
    for (int host = 0; host < h->hosts->hosts; host++) {
        struct range block = block_of(h, chunk, host, mine);
        ret->counts[host] = block.count;
        ret->starts[host] = block.first;
    }
    ret->from = out_at(ret->starts[h->hosts->host_of[h->rank]]);
    ret->to = out_at(0);
}

/* Gives all ranks of this host the blocks of the k-th other host, which the leaders have. */
static bool gather_down(const struct schedule_hierarchy *h, size_t chunk, int k,
                        struct schedule_stage *ret)
{
    int here = h->hosts->host_of[h->rank], mine = h->hosts->index_of[h->rank];
    if (k == h->hosts->hosts - 1) {
        return false;
    }
    int host = k < here ? k : k + 1;
    ret->pattern = SCHEDULE_ALL_GATHER;
    ret->blocks = true;
    for (int i = 0; i < schedule_host_ranks(h->hosts, here); i++) {
        bool leads = i < h->hosts->leaders;
        struct range block = leads ? block_of(h, chunk, host, i) : (struct range){0, 0};
        ret->counts[i] = block.count;
        ret->starts[i] = block.first;
    }
    ret->from = out_at(ret->starts[mine]);
    ret->to = out_at(0);
    return true;
}

/* Reduces, within this host, the blocks for the ranks of the k-th host: each leader gets the sums
 * for the rank that it works for. */
static bool scatter_up(const struct schedule_hierarchy *h, size_t chunk, int k,
                       struct schedule_stage *ret)
{
    if (k == h->hosts->hosts) {
        return false;
    }
    int here = h->hosts->host_of[h->rank];
    ret->pattern = SCHEDULE_REDUCE_SCATTER;
    ret->blocks = true;
    for (int i = 0; i < schedule_host_ranks(h->hosts, here); i++) {
        bool leads = i < h->hosts->leaders;
        struct range block = leads ? block_of(h, chunk, k, i) : (struct range){0, 0};
        ret->counts[i] = block.count;
        ret->starts[i] = block.first;
    }
    ret->from = (struct schedule_place){SCHEDULE_IN, 0};
    ret->to = work_of(h, chunk, (size_t)k * block_part(h));
    return true;
}

static void scatter_across(const struct schedule_hierarchy *h, size_t chunk,
                           struct schedule_stage *ret)
{
    int here = h->hosts->host_of[h->rank], mine = h->hosts->index_of[h->rank];
    ret->pattern = SCHEDULE_REDUCE_SCATTER;
    ret->blocks = true;
    ret->last_reduce = true;
    for (int host = 0; host < h->hosts->hosts; host++) {
        ret->counts[host] = block_of(h, chunk, host, mine).count;
        ret->starts[host] = (size_t)host * block_part(h);
    }
    ret->from = work_of(h, chunk, 0);
    ret->to = work_of(h, chunk, (size_t)here * block_part(h));
}

/* Sends a block from the leader to the rank that it works for, which is often the leader itself. */
static void scatter_down(const struct schedule_hierarchy *h, size_t chunk,
                         struct schedule_stage *ret)
{
    int here = h->hosts->host_of[h->rank], mine = h->hosts->index_of[h->rank];
    int leaders = h->hosts->leaders, turn = (int)(chunk % turns(h->hosts));
    ret->pattern = SCHEDULE_ALL_TO_ALL;
    ret->blocks = true;
    int target = mine + turn * leaders;
    if (mine < leaders && target < schedule_host_ranks(h->hosts, here)) {
        ret->counts[target] = block_of(h, chunk, here, mine).count;
    }
    for (int i = 0; i < leaders; i++) {
        size_t count = block_of(h, chunk, here, i).count;
        ret->count = count > ret->count ? count : ret->count;
    }
    if (mine / leaders == turn) {
        ret->out_counts[mine % leaders] = block_of(h, chunk, here, mine % leaders).count;
    }
    ret->from = work_of(h, chunk, (size_t)here * block_part(h));
    ret->to = out_at(size_min(chunk / turns(h->hosts) * block_part(h), h->count));
}

/* Whether this leader and the others of its team have no part of a small chunk. The first team is
 * enough to show that all ranks have entered. */
static bool is_idle(const struct schedule_hierarchy *h, size_t chunk)
{
    int mine = h->hosts->index_of[h->rank];
    return mine > 0 && !has_blocks(h) && part_of(h, chunk, mine).count == 0;
}

bool schedule_hierarchy_crosses(const struct schedule_hierarchy *h)
{
    return h->hosts->index_of[h->rank] < h->hosts->leaders && !is_idle(h, 0);
}

bool schedule_hierarchy_stage(const struct schedule_hierarchy *h, enum schedule_phase phase,
                              size_t chunk, int k, struct schedule_stage *ret)
{
    bool gathers = h->pattern == SCHEDULE_ALL_GATHER;
    bool leads = h->hosts->index_of[h->rank] < h->hosts->leaders;
    memset(ret, 0, sizeof *ret);
    ret->pattern = SCHEDULE_BARRIER;
    if (has_blocks(h) && phase == SCHEDULE_UP) {
        return gathers ? gather_up(h, chunk, k, ret) : scatter_up(h, chunk, k, ret);
    }
    if (gathers && phase == SCHEDULE_DOWN) {
        return gather_down(h, chunk, k, ret);
    }
    if (k > 0 || (phase == SCHEDULE_ACROSS && (!leads || is_idle(h, chunk)))) {
        return false;
    }
    switch (phase) {
    case SCHEDULE_UP: vector_up(h, chunk, ret); return true;
    case SCHEDULE_ACROSS:
        if (!has_blocks(h)) {
            vector_across(h, chunk, ret);
        } else if (gathers) {
            gather_across(h, chunk, ret);
        } else {
            scatter_across(h, chunk, ret);
        }
        return true;
    case SCHEDULE_DOWN:
        if (has_blocks(h)) {
            scatter_down(h, chunk, ret);
        } else {
            vector_down(h, chunk, ret);
        }
        return true;
    }
    assert(!"unreachable");
    return false;
}
