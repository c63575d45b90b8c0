/* Frames of an elastic job's coordinator and members: a message that can be read is written as the
 * same bytes, and WIRE_ROOM_BYTES is enough room to read it. */
#include "invariant.h"
#include "wire/wire.h"

enum { MOST = 1 << 16 };

static void try_frame(const uint8_t *frame, size_t count)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct wire_message message;
    struct wire_room room = {malloc(WIRE_ROOM_BYTES(count) + 1), WIRE_ROOM_BYTES(count), 0};
    int code = wire_read(frame, count, &room, &message, &err);
    invariant(code != MUSTER_ETOOBIG, "the room is enough", err.text);
    if (code == 0) {
        static uint8_t again[MOST];
        int64_t length = wire_write(&message, again, sizeof again, &err);
        invariant(length == (int64_t)count && memcmp(again, frame, count) == 0,
                  "a message has one encoding", wire_kind_name(message.kind));
    }
    free(room.memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > MOST - WIRE_LENGTH_BYTES) {
        return 0;
    }
    static uint8_t frame[MOST];
    uint32_t length = (uint32_t)size;
    try_frame(data, size);
    memcpy(frame, &length,
           sizeof length); /* again with the right length: most inputs have a wrong one */
    memcpy(frame + WIRE_LENGTH_BYTES, data, size);
    try_frame(frame, size + WIRE_LENGTH_BYTES);
    int64_t bytes = wire_frame_bytes(data, size, WIRE_FIRST_MAX, NULL);
    invariant(bytes <= WIRE_FIRST_MAX, "a first frame is short", "");
    return 0;
}
