/* Keeps in a file beside the journal when the coordinator lived last. A coordinator that is started
 * again computes from it how long there was none, to a quarter of a second. The clock counts from
 * the machine's start, and setting the time does not change it; after a reboot the duration is
 * unknown. See internal.h. */
#include "coordinator/server/internal.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "core/hash.h"

#include <fcntl.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { BOOT_BYTES = 64 };

/* In the byte order of this machine: no other machine reads it. */
struct server_alive {
    uint64_t boot; /* a digest that identifies the start of the machine; 0: unknown */
    int64_t at_ms;
    uint64_t check; /* of the fields before it */
};

static int64_t since_boot_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t boot_digest(void)
{
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    int r = file_read("/proc/sys/kernel/random/boot_id", BOOT_BYTES, &text, &bytes, NULL);
    return r < 0 ? 0 : hash_bytes(HASH_START, text, bytes);
}

static uint64_t check_of(const struct server_alive *alive)
{
    return hash_bytes(HASH_START, alive, offsetof(struct server_alive, check));
}

static int64_t away_ms_of(const struct server_alive *last, uint64_t boot)
{
    int64_t away_ms = since_boot_ms() - last->at_ms;
    bool known = boot != 0 && last->boot == boot && last->check == check_of(last);
    return known && away_ms >= 0 ? away_ms : -1;
}

static struct server_alive read_last(int fd)
{
    struct server_alive last = {0};
    bool whole = pread(fd, &last, sizeof last, 0) == (ssize_t)sizeof last;
    return whole ? last : (struct server_alive){0};
}

int64_t server_alive_begin(struct server *s)
{
    muster_auto(free) char *path = file_join(s->options->journal, "alive");
    s->alive_fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (s->alive_fd < 0) {
        return -1;
    }
    const struct server_alive last = read_last(s->alive_fd);
    s->boot = boot_digest();
    server_alive_look(s);
    return away_ms_of(&last, s->boot);
}

void server_alive_look(struct server *s)
{
    struct server_alive now = {.boot = s->boot, .at_ms = since_boot_ms()};
    now.check = check_of(&now);
    if (s->alive_fd >= 0 && server_may_act(s)) {
        (void)!pwrite(s->alive_fd, &now, sizeof now,
                      0); /* if this fails, the time is not known later */
    }
}

void server_alive_end(struct server *s)
{
    server_alive_look(s);
    if (s->alive_fd >= 0) {
        close(s->alive_fd);
    }
    s->alive_fd = -1;
}
