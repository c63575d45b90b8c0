/* The calls that this thread is inside of. Layer: comm; see inside.h. */
#include "comm/progress/inside.h"

#include <assert.h>
#include <stddef.h>

static _Thread_local struct inside *innermost;

void inside_enter(struct inside *place, const struct muster_comm *comm, enum inside_kind kind)
{
    assert(comm && innermost != place);
    *place = (struct inside){comm, kind, innermost};
    innermost = place;
}

void inside_leave(const struct inside *place)
{
    assert(innermost == place);
    innermost = place->outer;
}

bool inside_is(const struct muster_comm *comm, enum inside_kind kind)
{
    const struct inside *at = innermost;
    while (at && (at->comm != comm || at->kind != kind)) {
        at = at->outer;
    }
    return at != NULL;
}
