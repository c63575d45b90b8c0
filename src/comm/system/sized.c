/* Structs whose size the caller tells. Layer: comm; see sized.h. */
#include "comm/system/sized.h"

#include "core/size.h"

#include <muster/comm.h>
#include <muster/version.h>

#include <assert.h>
#include <string.h>

/* No struct grows to this size; such a value was not set by a program. */
enum { SIZE_LIMIT = 4096 };

const struct sized_kind sized_options = SIZED_KIND(muster_comm_options, MUSTER_COMM_OPTIONS_INIT),
                        sized_store = SIZED_KIND(muster_store, MUSTER_STORE_INIT),
                        sized_call = SIZED_KIND(muster_call, MUSTER_CALL_INIT),
                        sized_message = SIZED_KIND(muster_message, MUSTER_MESSAGE_INIT),
                        sized_state = SIZED_KIND(muster_comm_state, MUSTER_COMM_STATE_INIT);

/* Returns the first field of any of these structs. */
static size_t size_of(const void *theirs)
{
    size_t bytes;
    memcpy(&bytes, theirs, sizeof bytes);
    return bytes;
}

int sized_check(const struct sized_kind *kind, const void *theirs, struct muster_err *err)
{
    if (!theirs) {
        return muster_fail(err, MUSTER_EINVAL, "struct %s is NULL", kind->name);
    }
    size_t bytes = size_of(theirs);
    if (bytes < sizeof bytes || bytes > SIZE_LIMIT) {
        return muster_fail(err, MUSTER_EINVAL,
                           "struct_size of struct %s is %zu: initialize it with %s", kind->name,
                           bytes, kind->initializer);
    }
    return 0;
}

int sized_read(const struct sized_kind *kind, void *own, const void *theirs, struct muster_err *err)
{
    int r = sized_check(kind, theirs, err);
    if (r < 0) {
        return r;
    }
    const char *bytes = theirs;
    size_t size = size_of(theirs);
    for (size_t i = kind->bytes; i < size; i++) {
        if (bytes[i] != 0) {
            return muster_fail(err, MUSTER_EUNSUPPORTED,
                               "struct %s sets a field that libmuster %s does not know: the "
                               "program was compiled with a newer muster",
                               kind->name, MUSTER_VERSION_STRING);
        }
    }
    memcpy(own, theirs, size_min(size, kind->bytes));
    memcpy(own, &kind->bytes, sizeof kind->bytes);
    return 0;
}

void sized_write(const struct sized_kind *kind, void *theirs, const void *own)
{
    size_t size = size_of(theirs), head = sizeof size;
    assert(size >= head && size <= SIZE_LIMIT);
    memset((char *)theirs + head, 0, size - head);
    memcpy((char *)theirs + head, (const char *)own + head, size_min(size, kind->bytes) - head);
}

int sized_refuse_err(struct muster_err *err)
{
    size_t bytes = err->struct_size;
    if (bytes != 0) { /* the struct is too small for any text */
        return MUSTER_EINVAL;
    }
    return muster_fail(err, MUSTER_EINVAL,
                       "struct_size of struct muster_err is 0: initialize it with MUSTER_ERR_INIT");
}

void sized_copy_err(struct muster_err *err, const struct muster_err *failure)
{
    muster_fail(err, failure->code, "%s", failure->text);
    if (err) {
        err->rank = failure->rank;
    }
}
