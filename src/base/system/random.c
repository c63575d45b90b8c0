/* See random.h. */
#include "base/system/random.h"

#include <assert.h>
#include <stdio.h>
#include <sys/random.h>

/* getrandom(2) gives up to 256 bytes whole, whatever signals come. */
enum { WHOLE_BYTES = 256 };

int random_bytes(void *ret, size_t count, struct muster_err *err)
{
    assert(count <= WHOLE_BYTES);
    return getrandom(ret, count, 0) == (ssize_t)count
               ? 0
               : muster_fail(err, MUSTER_EOS, "the system provides no random numbers");
}

int random_hex(char *ret, size_t count, struct muster_err *err)
{
    unsigned char bytes[RANDOM_HEX_MAX];
    assert(count <= sizeof bytes);
    int r = random_bytes(bytes, count, err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
    return r;
}
