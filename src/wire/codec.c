/* Messages to bytes and back: frames, and which function codes what is in one. See wire.h. */
#include "wire/wire.h"

#include "wire/codec.h"

enum { HEAD_BYTES = WIRE_LENGTH_BYTES + 1 + 8 };

static const struct {
    const char *name;
    void (*code)(struct coder *c, struct wire_message *m);
    bool of_workers;
} kinds[WIRE_KINDS] = {
    [WIRE_HELLO] = {"HELLO", code_hello, .of_workers = false},
    [WIRE_JOIN] = {"JOIN", code_join, .of_workers = true},
    [WIRE_LEAVE] = {"LEAVE", code_leave, .of_workers = true},
    [WIRE_REPORT] = {"REPORT", code_report, .of_workers = true},
    [WIRE_COMMITS] = {"COMMITS", code_commits, .of_workers = true},
    [WIRE_ASK] = {"ASK", code_ask, .of_workers = true},
    [WIRE_PROGRESS] = {"PROGRESS", code_progress, .of_workers = true},
    [WIRE_CHECKPOINT] = {"CHECKPOINT", code_checkpoint, .of_workers = true},
    [WIRE_WELCOME] = {"WELCOME", code_welcome, .of_workers = false},
    [WIRE_REFUSED] = {"REFUSED", code_refused, .of_workers = false},
    [WIRE_OPEN] = {"OPEN", code_open, .of_workers = false},
    [WIRE_CLOSE] = {"CLOSE", code_close, .of_workers = false},
    [WIRE_ACK] = {"ACK", code_ack, .of_workers = false},
    [WIRE_GRANT] = {"GRANT", code_grant, .of_workers = false},
    [WIRE_EXPELLED] = {"EXPELLED", code_expelled, .of_workers = false},
    [WIRE_DATASET] = {"DATASET", code_dataset, .of_workers = true},
    [WIRE_ENROLL] = {"ENROLL", code_enroll, .of_workers = true},
    [WIRE_FETCH] = {"FETCH", code_fetch, .of_workers = true},
    [WIRE_DONE] = {"DONE", code_done, .of_workers = true},
    [WIRE_LEASED] = {"LEASED", code_leased, .of_workers = false},
    [WIRE_RECEIPT] = {"RECEIPT", code_receipt, .of_workers = false},
    [WIRE_TO_DO] = {"TO_DO", code_to_do, .of_workers = true},
    [WIRE_CHECKPOINT_FAILED] = {"CHECKPOINT_FAILED", code_checkpoint_failed, .of_workers = true},
    [WIRE_PASS] = {"PASS", code_pass, .of_workers = true},
    [WIRE_FAIL] = {"FAIL", code_fail, .of_workers = true},
    [WIRE_HEALED] = {"HEALED", code_healed, .of_workers = true},
    [WIRE_SILENT] = {"SILENT", code_silent, .of_workers = true},
};

static bool is_kind(unsigned kind)
{
    return kind > 0 && kind < WIRE_KINDS;
}

const char *wire_kind_name(enum wire_kind kind)
{
    return is_kind(kind) ? kinds[kind].name : "a message of no known kind";
}

bool wire_kind_of_workers(enum wire_kind kind)
{
    return is_kind(kind) && kinds[kind].of_workers;
}

/* ---- Frames ---- */

int64_t wire_frame_bytes(const uint8_t *bytes, size_t count, size_t most, struct muster_err *err)
{
    if (count < WIRE_LENGTH_BYTES) {
        return 0;
    }
    uint32_t length = 0;
    struct coder c = {.in = bytes, .room = count};
    coder_u32(&c, &length);
    if (length < HEAD_BYTES - WIRE_LENGTH_BYTES) {
        return muster_fail(err, MUSTER_EPROTO, "a frame of %u bytes is no message", length);
    }
    if (length > most - WIRE_LENGTH_BYTES) {
        return muster_fail(err, MUSTER_ETOOBIG,
                           "a frame of %u bytes is longer than the %zu allowed", length, most);
    }
    return (int64_t)length + WIRE_LENGTH_BYTES;
}

/* A count that the frame cannot hold may ask for more room than is always enough: then the frame is
 * wrong, and not the room. */
static int refuse(const struct coder *c, unsigned kind, struct muster_err *err)
{
    bool too_big = c->too_big && c->arrays->size_bytes < WIRE_ROOM_BYTES(c->room);
    return muster_fail(err, too_big ? MUSTER_ETOOBIG : MUSTER_EPROTO, "%s cannot be read: %s",
                       wire_kind_name((enum wire_kind)kind), c->wrong);
}

int wire_read(const uint8_t *frame, size_t count, struct wire_room *room, struct wire_message *ret,
              struct muster_err *err)
{
    struct coder c = {.in = frame, .room = count, .arrays = room};
    struct wire_message message = {0};
    uint32_t length = 0;
    uint8_t kind = 0;
    size_t used_bytes = room->used_bytes;
    coder_u32(&c, &length);
    coder_u8(&c, &kind);
    coder_u64(&c, &message.term);
    if (c.wrong || length != count - WIRE_LENGTH_BYTES) {
        return muster_fail(err, MUSTER_EPROTO, "%zu bytes are not one frame", count);
    }
    if (!is_kind(kind)) {
        return muster_fail(err, MUSTER_EPROTO, "there is no message of kind %u", kind);
    }
    message.kind = kind;
    kinds[kind].code(&c, &message);
    if (!c.wrong && c.at != count) {
        coder_fail(&c, "it goes on after its last field");
    }
    if (c.wrong) {
        room->used_bytes = used_bytes;
        return refuse(&c, kind, err);
    }
    *ret = message;
    return 0;
}

int64_t wire_write(const struct wire_message *message, uint8_t *bytes, size_t room,
                   struct muster_err *err)
{
    struct coder c = {.writes = true, .out = bytes, .room = room};
    struct wire_message copy = *message; /* a coder takes its fields by reference */
    uint8_t kind = (uint8_t)message->kind;
    uint32_t length = 0;
    coder_u32(&c, &length);
    coder_u8(&c, &kind);
    coder_u64(&c, &copy.term);
    kinds[kind].code(&c, &copy);
    if (c.wrong) {
        return muster_fail(err, MUSTER_EINVAL, "%s cannot be written: %s", wire_kind_name(kind),
                           c.wrong);
    }
    if (c.at > WIRE_FRAME_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "%s of %zu bytes is longer than a frame",
                           wire_kind_name(kind), c.at);
    }
    if (c.at <= room) {
        struct coder head = {.writes = true, .out = bytes, .room = WIRE_LENGTH_BYTES};
        length = (uint32_t)(c.at - WIRE_LENGTH_BYTES);
        coder_u32(&head, &length);
    }
    return (int64_t)c.at;
}
