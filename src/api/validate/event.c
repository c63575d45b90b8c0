/* Events of the core group; what events.k8s.io asks of new ones is in api/shape. See validate.h. */
#include "api/validate/validate.h"

#include "api/validate/say.h"
#include "base/doc.h"

#include <string.h>

/* An event must be in the namespace of the object that it is about. If that object has no
 * namespace, the event must be in the namespace default. */
static void check_namespace(struct check *c, const json_t *event)
{
    const char *own = doc_text(event, "metadata.namespace", "");
    const char *about = doc_text(event, "involvedObject.namespace", "");
    bool same = *about ? strcmp(about, own) == 0 : strcmp(own, "default") == 0;
    if (!same) {
        size_t mark = check_enter(c, "involvedObject");
        say_invalid_text(c, "namespace", about, "does not match event.namespace");
        check_leave(c, mark);
    }
}

void validate_event(const json_t *before, const json_t *object, struct job_problems *problems)
{
    static const char *const needed[] = {"reportingComponent", "reportingInstance", "action",
                                         "reason"};
    struct check c;
    bool of_one_time = doc_at(object, "eventTime"); /* events of the newer group have it */
    if (before) {
        return;
    }
    check_init(&c, NULL, problems);
    check_namespace(&c, object);
    for (size_t i = 0; of_one_time && i < sizeof needed / sizeof needed[0]; i++) {
        if (!*doc_text(object, needed[i], "")) {
            say_required(&c, needed[i], NULL);
        }
    }
    check_done(&c);
}
