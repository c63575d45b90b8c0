/* Layout and life of the shared segment. Layer: comm; see segment.h. */
#include "comm/shm/segment.h"

#include "comm/system/fork.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The format number is in the last word of the first page, where every version looks for it. It
 * changes when the layout changes. */
static const uint64_t format = UINT64_C(0x6d7573746572) << 16 | 7;

static _Atomic uint64_t *format_of(const struct segment *s)
{
    return (_Atomic uint64_t *)(void *)(s->base + SEGMENT_PAGE - sizeof format);
}

static size_t owner_bytes(void)
{
    return segment_whole_pages(OWNER_SLOTS * sizeof(struct owner_slot));
}

static size_t stream_bytes(void)
{
    return segment_whole_pages(sizeof(struct stream_ring));
}

static size_t pairs(int size)
{
    return (size_t)size * (size_t)size;
}

static size_t boards_start(int size)
{
    return (size_t)size * SEGMENT_PAGE;
}

static size_t owner_slots_start(int size)
{
    return boards_start(size) + (size_t)size * BOARDS_BYTES;
}

static size_t streams_start(int size)
{
    return owner_slots_start(size) + pairs(size) * owner_bytes();
}

static size_t rooted_bytes(void)
{
    return segment_whole_pages(sizeof(struct rooted_slots));
}

static size_t rooted_start(int size)
{
    return streams_start(size) + pairs(size) * stream_bytes();
}

static size_t total_bytes(int size)
{
    return rooted_start(size) + (size_t)size * rooted_bytes();
}

static int map(struct segment *s, struct muster_err *err)
{
    s->bytes = s->file_bytes = total_bytes(s->size);
    void *base = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (base == MAP_FAILED) {
        int code = muster_fail(err, MUSTER_ENOMEM, "cannot map %zu bytes of shared memory: %s",
                               s->bytes, strerror(errno));
        close(s->fd);
        return code;
    }
    s->base = base;
    s->boards = s->base + boards_start(s->size);
    s->rooted = s->base + rooted_start(s->size);
    /* A forked child must not write into a running communicator by accident. */
    (void)madvise(base, s->bytes, MADV_DONTFORK);
    (void)madvise(base, s->bytes, MADV_HUGEPAGE);
    return 0;
}

/* Returns advice for an error. System-call filters of containers and sandboxes answer with the
 * first of these errors. */
static const char *way_out(int error)
{
    return error == EPERM || error == EACCES || error == ENOSYS
               ? "; this kernel, or a seccomp filter, refuses memfd_create, which every communicator "
                 "needs: permit it, or train with torch's own backend, gloo"
               : "";
}

int segment_create(int size, struct segment *ret, struct muster_err *err)
{
    _Static_assert(sizeof(struct control) <= SEGMENT_PAGE - sizeof format &&
                       (int)SEGMENT_PAGE == (int)FLIGHT_PAGE_BYTES &&
                       offsetof(struct control, flight) == (size_t)FLIGHT_OFFSET,
                   "one page per rank, which outsiders can read");
    struct segment s = {.fd = memfd_create(FLIGHT_FILE, MFD_CLOEXEC | MFD_ALLOW_SEALING),
                        .size = size};
    if (s.fd < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot create shared memory: %s%s", strerror(errno),
                           way_out(errno));
    }
    if (ftruncate(s.fd, (off_t)total_bytes(size)) < 0 ||
        fcntl(s.fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) {
        int code =
            muster_fail(err, MUSTER_ENOMEM, "cannot size shared memory: %s", strerror(errno));
        close(s.fd);
        return code;
    }
    int r = map(&s, err);
    if (r == 0) {
        atomic_store(format_of(&s), format);
        *ret = s;
    }
    return r;
}

/* If a file ends before its mapping does, or is truncated later, an access to the missing part
 * causes a SIGBUS. */
static bool has_size(const struct segment *s)
{
    struct stat file;
    int seals = fcntl(s->fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(s->fd, &file) == 0 &&
           file.st_size == (off_t)total_bytes(s->size);
}

int segment_open(int fd, int size, struct segment *ret, struct muster_err *err)
{
    struct segment s = {.fd = fd, .size = size};
    if (!has_size(&s)) {
        close(fd);
        return muster_fail(err, MUSTER_EPROTO,
                           "the descriptor that a member sent is not shared memory for %d ranks",
                           size);
    }
    int r = map(&s, err);
    if (r == 0 && atomic_load(format_of(&s)) != format) {
        segment_close(&s);
        return muster_fail(err, MUSTER_EPROTO,
                           "a member on this host uses another version of libmuster");
    }
    if (r == 0) {
        *ret = s;
    }
    return r;
}

void segment_hang_up(struct segment *s)
{
    fork_close(&s->fd);
}

void segment_close(struct segment *s)
{
    if (s->fd >= 0) {
        munmap(s->base, s->bytes);
        segment_hang_up(s);
    }
}

/* Touches this rank's part now, so that a lack of memory is an error here and not a SIGBUS later.
 */
static int populate(char *start, size_t bytes)
{
    (void)madvise(start, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL) {
        return 0;
    }
    return -errno;
#else
    return 0;
#endif
}

int segment_extend(struct segment *s, size_t part_bytes, int my_index,
                   struct segment_extension *ret, struct muster_err *err)
{
    assert(part_bytes > 0 && part_bytes % SEGMENT_PAGE == 0 && my_index < s->size);
    size_t offset = s->file_bytes;
    size_t bytes = part_bytes * (size_t)s->size;
    s->file_bytes += bytes;
    /* Every rank asks for the same size, so it does no harm to grow to it twice. */
    if (ftruncate(s->fd, (off_t)s->file_bytes) < 0) {
        return muster_fail(err, MUSTER_ENOMEM, "cannot grow shared memory to %zu bytes: %s",
                           s->file_bytes, strerror(errno));
    }
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, (off_t)offset);
    if (base == MAP_FAILED) {
        return muster_fail(err, MUSTER_ENOMEM, "cannot map %zu bytes of shared memory: %s", bytes,
                           strerror(errno));
    }
    int r = populate((char *)base + (size_t)my_index * part_bytes, part_bytes);
    if (r < 0) {
        munmap(base, bytes);
        return muster_fail(err, MUSTER_ENOMEM, "cannot have %zu bytes of shared memory: %s",
                           part_bytes, strerror(-r));
    }
    *ret = (struct segment_extension){base, part_bytes, offset};
    return 0;
}

void segment_retract(const struct segment *s, struct segment_extension *extension)
{
    assert(extension->base);
    munmap(extension->base, extension->part_bytes * (size_t)s->size);
    extension->base = NULL;
}

void segment_give_back(const struct segment *s, const struct segment_extension *extension,
                       int my_index)
{
    size_t start = extension->offset + (size_t)my_index * extension->part_bytes;
    (void)fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
                    (off_t)extension->part_bytes);
}

struct owner_slot *segment_owner_slot(const struct segment *s, int owner, int contributor,
                                      size_t slot)
{
    assert(owner >= 0 && owner < s->size && contributor >= 0 && contributor < s->size);
    assert(owner != contributor && slot < OWNER_SLOTS);
    size_t pair = (size_t)owner * (size_t)s->size + (size_t)contributor;
    return (struct owner_slot *)(void *)(s->base + owner_slots_start(s->size) +
                                         pair * owner_bytes()) +
           slot;
}

struct stream_ring *segment_stream(const struct segment *s, int from, int to)
{
    assert(from >= 0 && from < s->size && to >= 0 && to < s->size);
    size_t pair = (size_t)from * (size_t)s->size + (size_t)to;
    return (struct stream_ring *)(void *)(s->base + streams_start(s->size) + pair * stream_bytes());
}
