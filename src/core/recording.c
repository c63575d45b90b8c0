/* See recording.h. */
#include "core/recording.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HEAD_BYTES = 8, NAME_BYTES = 4096 };

struct recording {
    int fd; /* -1: the recording has ended */
};

struct recording *recording_open(const char *name)
{
    static atomic_uint opened;
    const char *folder = getenv("MUSTER_RECORD");
    char path[NAME_BYTES];
    if (!folder || !*folder) {
        return NULL;
    }
    int length = snprintf(path, sizeof path, "%s/%s-%d-%u", folder, name, (int)getpid(),
                          atomic_fetch_add(&opened, 1));
    struct recording *recording =
        length > 0 && length < NAME_BYTES ? calloc(1, sizeof *recording) : NULL;
    if (!recording) {
        return NULL;
    }
    recording->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (recording->fd < 0) {
        free(recording);
        return NULL;
    }
    return recording;
}

static void end(struct recording *recording)
{
    if (recording->fd >= 0) {
        close(recording->fd);
    }
    recording->fd = -1;
}

void recording_close(struct recording *recording)
{
    if (recording) {
        end(recording);
    }
    free(recording);
}

static void code(uint64_t number, size_t size_bytes, uint8_t *ret)
{
    for (size_t i = 0; i < size_bytes; i++) {
        ret[i] = (uint8_t)(number >> 8 * i);
    }
}

void recording_write(struct recording *recording, enum recording_kind kind, const void *bytes,
                     size_t count)
{
    uint8_t head[HEAD_BYTES];
    if (recording->fd < 0) {
        return;
    }
    code(kind, 4, head);
    code(count, 4, head + 4);
    const struct iovec parts[] = {{head, sizeof head}, {(void *)bytes, count}};
    if (writev(recording->fd, parts, 2) != (ssize_t)(sizeof head + count)) {
        end(recording);
    }
}

void recording_write_numbers(struct recording *recording, enum recording_kind kind,
                             const uint64_t *numbers, size_t count)
{
    uint8_t *bytes = malloc(8 * count);
    if (bytes) {
        recording_code_numbers(numbers, count, bytes);
        recording_write(recording, kind, bytes, 8 * count);
    } else {
        end(recording); /* a recording with a gap would be useless */
    }
    free(bytes);
}

void recording_code_numbers(const uint64_t *numbers, size_t count, uint8_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        code(numbers[i], 8, ret + 8 * i);
    }
}

uint64_t recording_number(const uint8_t *bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < 8; i++) {
        number |= (uint64_t)bytes[i] << 8 * i;
    }
    return number;
}
