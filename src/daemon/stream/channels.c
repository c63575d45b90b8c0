/* See channels.h. Sources: k8s.io/apimachinery util/remotecommand, k8s.io/client-go remotecommand.
 */
#include "daemon/stream/channels.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <stdio.h>
#include <string.h>

const char *const channel_protocols[] = {"v5.channel.k8s.io", "v4.channel.k8s.io", NULL};

/* Collects a message. A message that is longer than any valid one is cut, and is then not valid. */
static void gather(struct channel_reader *reader, const char *bytes, size_t count)
{
    size_t room = sizeof reader->text - reader->used;
    size_t taken = count < room ? count : room;
    memcpy(reader->text + reader->used, bytes, taken);
    reader->used += taken;
}

bool channel_read(struct channel_reader *reader, const struct websocket_piece *piece,
                  struct channel_data *ret)
{
    const char *bytes = piece->bytes;
    size_t count = piece->count;
    if (piece->first) {
        *reader = (struct channel_reader){0};
    }
    if (!reader->known && count > 0) {
        reader->known = true;
        reader->channel = (unsigned char)*bytes++;
        count--;
    }
    if (reader->known && reader->channel == CHANNEL_STDIN) {
        *ret = (struct channel_data){CHANNEL_STDIN, bytes, count};
        return count > 0;
    }
    if (reader->channel != CHANNEL_RESIZE && reader->channel != CHANNEL_CLOSE) {
        return false;
    }
    gather(reader, bytes, count);
    *ret = (struct channel_data){(enum channel)reader->channel, reader->text, reader->used};
    return piece->last;
}

json_t *channel_size(const struct channel_data *resize)
{
    muster_auto(doc) json_t *given = NULL;
    if (doc_parse(resize->bytes, resize->count, &given, NULL) < 0) {
        return NULL;
    }
    return json_pack("{s:I, s:I}", "rows", (json_int_t)doc_int(given, "Height", 0), "columns",
                     (json_int_t)doc_int(given, "Width", 0));
}

json_t *channel_status(int code)
{
    char number[16], message[80];
    if (code == 0) {
        return json_pack("{s:{}, s:s}", "metadata", "status", "Success");
    }
    (void)snprintf(number, sizeof number, "%d", code);
    (void)snprintf(message, sizeof message, "command terminated with non-zero exit code: %d", code);
    return json_pack("{s:{}, s:s, s:s, s:s, s:{s:[{s:s, s:s}]}}", "metadata", "status", "Failure",
                     "message", message, "reason", "NonZeroExitCode", "details", "causes", "reason",
                     "ExitCode", "message", number);
}
