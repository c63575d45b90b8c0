/* See hosts.h. */
#include "schedule/hosts.h"

#include <assert.h>

void schedule_hosts_init(struct schedule_hosts *h, const int *lowest, int size)
{
    assert(size > 0 && size <= MUSTER_MAX_RANKS);
    int next = 0;
    h->size = size;
    h->hosts = 0;
    h->leaders = size;
    for (int r = 0; r < size; r++) {
        if (lowest[r] != r) {
            continue;
        }
        h->first[h->hosts] = next;
        for (int member = r; member < size; member++) {
            if (lowest[member] == r) {
                h->host_of[member] = h->hosts;
                h->index_of[member] = next - h->first[h->hosts];
                h->ranks[next++] = member;
            }
        }
        int here = next - h->first[h->hosts++];
        h->leaders = here < h->leaders ? here : h->leaders;
    }
    h->first[h->hosts] = next;
    assert(next == size);
}

bool schedule_hosts_mixed(const struct schedule_hosts *h)
{
    return h->hosts > 1 && h->hosts < h->size;
}

int schedule_host_ranks(const struct schedule_hosts *h, int host)
{
    return h->first[host + 1] - h->first[host];
}

int schedule_host_rank(const struct schedule_hosts *h, int host, int index)
{
    return index < schedule_host_ranks(h, host) ? h->ranks[h->first[host] + index] : -1;
}
