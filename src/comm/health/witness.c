/* The process that keeps our memory alive, so that our sockets close at once. Layer: comm; see
 * witness.h.
 *
 * It runs in our memory, with the thread-local storage of the thread that started it. So it makes
 * only system calls, and only such as cannot fail: a failure would write that thread's errno.
 */
#include "comm/health/witness.h"

#include "comm/shm/heartbeat.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 16 * 1024, LOOK_S = 1, LOOKS_OVER = 3 };

#ifdef __SANITIZE_THREAD__
enum { MAY_CLONE = 0 }; /* the thread sanitizer takes every clone for a fork */
#else
enum { MAY_CLONE = 1 };
#endif

static struct {
    pthread_mutex_t mutex; /* guards the rest */
    int holders;
    uint32_t process; /* the process whose child the witness is: heartbeat_process() */
    pid_t pid;
} witness = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static alignas(64) char stack[STACK_BYTES];

static int own_pidfd = -1; /* open only while the witness starts, and in the witness itself */

/* Ends with our process. It also ends after an exec, which keeps our process id but not our memory:
 * then the heartbeat is over for longer than a death takes. */
__attribute__((no_sanitize("address", "undefined"), noreturn)) static int watch(void *unused)
{
    (void)unused;
    struct pollfd ended = {.fd = own_pidfd, .events = POLLIN};
    (void)syscall(SYS_prctl, PR_SET_NAME, "muster-witness");
    (void)syscall(SYS_close_range, 0U, (unsigned)ended.fd - 1, 0U);
    (void)syscall(SYS_close_range, (unsigned)ended.fd + 1, ~0U, 0U);
    (void)syscall(SYS_chdir, "/");
    for (int looks_over = 0; looks_over < LOOKS_OVER; looks_over += heartbeat_is_over()) {
        struct timespec look = {LOOK_S, 0};
        if (syscall(SYS_ppoll, &ended, 1, &look, NULL, 0) != 0) {
            break;
        }
    }
    for (;;) {
        (void)syscall(SYS_exit_group, 0);
    }
}

static void start(void)
{
    sigset_t all, before;
    own_pidfd = MAY_CLONE ? (int)syscall(SYS_pidfd_open, getpid(), 0) : -1;
    bool possible = own_pidfd > 0 && syscall(SYS_close_range, ~0U, ~0U, 0U) == 0;
    if (possible) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int pid = clone(watch, stack + sizeof stack, CLONE_VM, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        witness.pid = pid > 0 ? pid : 0;
    }
    if (own_pidfd >= 0) {
        close(own_pidfd);
    }
    witness.process = heartbeat_process();
}

/* Ends the witness. Its process id is certain only while it is our child. */
static void end(void)
{
    if (witness.pid > 0 && waitpid(witness.pid, NULL, __WALL | WNOHANG) == 0) {
        (void)kill(witness.pid, SIGKILL);
        while (waitpid(witness.pid, NULL, __WALL) < 0 && errno == EINTR) {
        }
    }
    witness.pid = 0;
}

static void lock_before_fork(void)
{
    pthread_mutex_lock(&witness.mutex);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&witness.mutex);
}

static void register_fork(void)
{
    (void)pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
}

void witness_hold(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, register_fork);
    pthread_mutex_lock(&witness.mutex);
    if (witness.process != heartbeat_process()) {
        witness.holders = 0; /* in a forked child: the witness belongs to the parent */
        witness.pid = 0;
    }
    if (witness.holders++ == 0) {
        start();
    }
    pthread_mutex_unlock(&witness.mutex);
}

void witness_release(void)
{
    pthread_mutex_lock(&witness.mutex);
    assert(witness.holders > 0);
    if (--witness.holders == 0) {
        end();
    }
    pthread_mutex_unlock(&witness.mutex);
}

pid_t witness_pid(void)
{
    pthread_mutex_lock(&witness.mutex);
    pid_t pid = witness.process == heartbeat_process() ? witness.pid : 0;
    pthread_mutex_unlock(&witness.mutex);
    return pid;
}
