/* Which elements of a list [from:to:step] means, as client-go counts them. See jsonpath_nodes.h. */
#include "cli/show/jsonpath_nodes.h"

struct jsonpath_slice jsonpath_slice_of(const struct jsonpath_bound *bound, int64_t length)
{
    struct jsonpath_slice s = {bound[0].known ? bound[0].value : 0,
                               bound[1].known ? bound[1].value : length,
                               bound[2].known ? bound[2].value : 1};
    s.from += s.from < 0 ? length : 0;
    s.to += s.to < 0 || (s.to == 0 && bound[1].derived) ? length : 0;
    return s;
}

int jsonpath_slice_check(const struct jsonpath_slice *s, int64_t length, struct muster_err *err)
{
    int64_t wrong = s->from >= length || s->from < 0 ? s->from
                    : s->to > length || s->to < 0    ? s->to - 1
                                                     : -1;
    if (s->from >= length || s->from < 0 || s->to > length || s->to < 0) {
        return muster_fail(err, MUSTER_EINVAL,
                           "jsonpath: array index out of bounds: index %lld, length %lld",
                           (long long)wrong, (long long)length);
    }
    if (s->from > s->to) {
        return muster_fail(err, MUSTER_EINVAL,
                           "jsonpath: starting index %lld is greater than ending index %lld",
                           (long long)s->from, (long long)s->to);
    }
    return s->step > 0 ? 0 : muster_fail(err, MUSTER_EINVAL, "jsonpath: step must be > 0");
}
