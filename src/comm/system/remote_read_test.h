/* process_vm_readv(2) as a test wants it: counted, refused at one call, and with something that
 * happens meanwhile. For one file of a test that is linked with -Wl,--wrap=process_vm_readv. Tests
 * only. */
#pragma once

#include "base/testing/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/uio.h>

static struct {
    atomic_int count;
    int failing, code;                /* the read with this number fails with this code; 0: none
                                         does. Code 0: it returns another byte than the real one */
    size_t missing_bytes;             /* a large read returns this many bytes less than asked for */
    void (*meanwhile)(void *context); /* called during each read; NULL: nothing is called */
    void *context;
} remote_reads;

/* Counts the reads from 0 again. */
static inline void remote_reads_begin(int failing, int code)
{
    remote_reads.count = 0;
    remote_reads.failing = failing;
    remote_reads.code = code;
}

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
                                const struct iovec *from, unsigned long from_count,
                                unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
                                const struct iovec *from, unsigned long from_count,
                                unsigned long flags);

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
                                const struct iovec *from, unsigned long from_count,
                                unsigned long flags)
{
    assert_true(to_count == 1 && from_count == 1);
    bool fails = atomic_fetch_add(&remote_reads.count, 1) + 1 == remote_reads.failing;
    if (fails && remote_reads.code != 0) {
        errno = remote_reads.code;
        return -1;
    }
    if (remote_reads.meanwhile) {
        remote_reads.meanwhile(remote_reads.context);
    }
    struct iovec part = *to;
    if (part.iov_len > 5 * remote_reads.missing_bytes) {
        part.iov_len -= remote_reads.missing_bytes;
    }
    ssize_t n = __real_process_vm_readv(pid, &part, 1, from, 1, flags);
    if (fails && n > 0) {
        *(char *)part.iov_base ^= 1;
    }
    return n;
}
