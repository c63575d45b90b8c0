/* The answer to a watch, in pieces of lengths that the input gives, and the state machine that
 * takes it: the same bytes in one piece give the same events. */
#include "invariant.h"
#include "kube/wire/answer.h"
#include "kube/wire/follow.h"

enum { LINE_BYTES_MAX = 4096, HEAD = 4 };

struct told {
    size_t events;
    size_t versions; /* a sum over them */
    int end;
};

static void take(struct watch_decoder *d, struct watch_follow *f, struct told *told)
{
    struct watch_event event;
    struct muster_err err = MUSTER_ERR_INIT;
    while (told->end == 0 && (told->end = watch_decoder_next(d, &event, &err)) > 0) {
        told->end = 0;
        told->events++;
        told->versions += strlen(event.version) + (size_t)event.type;
        (void)watch_follow_begins(f);
        (void)watch_follow_event(f, &event);
        invariant(strlen(f->version) < FOLLOW_VERSION_BYTES, "a version fits", f->version);
        json_decref(event.object);
    }
    invariant(told->end == 0 || *err.text, "an end says why", "");
}

static struct told read_all(const uint8_t *data, size_t size, size_t piece)
{
    struct watch_decoder d;
    struct watch_follow f;
    struct told told = {0};
    watch_decoder_init(&d, LINE_BYTES_MAX, size > 0 && data[0] % 2 == 0);
    watch_follow_init(&f);
    for (size_t at = 0; at < size && told.end == 0; at += piece) {
        watch_decoder_feed(&d, (const char *)data + at, size - at < piece ? size - at : piece);
        take(&d, &f, &told);
    }
    (void)watch_follow_end(&f, size > 0 ? data[0] * 4 : 0, size % 2, (int64_t)size);
    watch_follow_done(&f);
    watch_decoder_done(&d);
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cluster_answer answer;
    if (size < HEAD || size > LINE_BYTES_MAX) {
        return 0;
    }
    struct told whole = read_all(data + HEAD, size - HEAD, size);
    struct told torn = read_all(data + HEAD, size - HEAD, 1 + (size_t)data[0] % 97);
    invariant(whole.events == torn.events && whole.versions == torn.versions &&
                  whole.end == torn.end,
              "pieces of any size give the same", "");
    wire_answer(100 + data[1] * 2, (const char *)data + HEAD, size - HEAD, true, &answer);
    invariant(answer.code == 0 ? answer.object != NULL : *answer.message != '\0',
              "an answer or a sentence", "");
    json_decref(answer.object);
    return 0;
}
