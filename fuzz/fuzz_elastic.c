/* The cores of an elastic job get any events of a broken or hostile process, in any order: their
 * invariants hold between steps. test/simulation checks what the cores decide. */
#include "commit/member.h"
#include "invariant.h"
#include "rendezvous/rendezvous.h"

#include <stdalign.h>

enum { PEERS = 4, EVENT_BYTES = 6 };

/* Returns a number near the value, so that events concern the same things. */
static uint64_t near(uint64_t value, uint8_t byte)
{
    return byte % 16 == 15 ? UINT64_MAX : value + byte % 16 - (value < 4 ? value : 4);
}

static void try_coordinator(const uint8_t *data, size_t size)
{
    alignas(max_align_t) static unsigned char memory[RENDEZVOUS_SIZE_BYTES(PEERS)];
    struct rendezvous *s = (struct rendezvous *)memory;
    struct rendezvous_config config = {.min_size = 1, .max_size = 3, .first_size = 2};
    struct rendezvous_effect list[RENDEZVOUS_EFFECTS_MAX(PEERS)];
    struct rendezvous_effects effects = {.room = RENDEZVOUS_EFFECTS_MAX(PEERS), .list = list};
    rendezvous_init(s, config, PEERS);
    rendezvous_step(s, &(struct rendezvous_event){.kind = RENDEZVOUS_START}, &effects);
    for (; size >= EVENT_BYTES; data += EVENT_BYTES, size -= EVENT_BYTES) {
        uint64_t version = near(s->logged, data[3]);
        rendezvous_step(
            s,
            &(struct rendezvous_event){
                .kind = RENDEZVOUS_START + data[0] % (RENDEZVOUS_EVENT_KINDS - RENDEZVOUS_START),
                .incarnation = data[1] % 6,
                .generation = near(s->generation, data[2]),
                .version = version,
                .first = near(version, data[4]),
                .lost = data[5] % 6,
                .closed = data[5] & 8,
                .loaded = data[5] & 16,
                .prepared = data[5] & 32,
                .finished = data[5] & 64},
            &effects);
        const char *broken = rendezvous_check(s);
        invariant(!broken, broken, "");
    }
}

static void try_member(const uint8_t *data, size_t size)
{
    struct commit_member m;
    struct commit_effects effects;
    commit_member_init(&m, 1);
    for (; size >= EVENT_BYTES; data += EVENT_BYTES, size -= EVENT_BYTES) {
        commit_member_step(&m,
                           &(struct commit_event){.kind = data[0] % COMMIT_EVENT_KINDS,
                                                  .incarnation = data[1] % 3,
                                                  .generation = near(m.generation, data[2]),
                                                  .version = near(m.version, data[3]),
                                                  .term = near(m.term, data[4]),
                                                  .restore = data[5] & 1,
                                                  .boundary = data[5] & 2},
                           &effects);
        const char *broken = commit_member_check(&m);
        invariant(!broken, broken, "");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_coordinator(data, size);
    try_member(data, size);
    return 0;
}
