/* See isolation.h. */
#include "process/machine/isolation.h"

#include "base/cleanup.h"
#include "base/system/error_text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

const char *isolation_name(enum isolation_mode mode)
{
    static const char *const names[] = {"subreaper", "pid-namespace", "user-namespace", "auto"};
    assert((size_t)mode < sizeof names / sizeof names[0]);
    return names[mode];
}

/* ---- What is permitted ---- */

static bool put(const char *path, const char *text)
{
    muster_auto(close) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* User and group keep their numbers; no others exist in the namespace. */
static bool enter_user_namespace(void)
{
    unsigned user = geteuid();
    unsigned group = getegid();
    char map[64];
    if (unshare(CLONE_NEWUSER) < 0) {
        return false;
    }
    (void)snprintf(map, sizeof map, "%u %u 1", user, user);
    bool mapped = put("/proc/self/uid_map", map) && put("/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "%u %u 1", group, group);
    return mapped && put("/proc/self/gid_map", map);
}

static bool enter(enum isolation_mode mode, bool network_private)
{
    int flags = CLONE_NEWPID | (network_private ? CLONE_NEWNET : 0);
    return (mode != ISOLATION_USER_NAMESPACE || enter_user_namespace()) && unshare(flags) == 0;
}

/* The child also tries to make and change a mount namespace, which containers need. Its exit code
 * is an errno. */
static int try_in_child(enum isolation_mode mode, bool network_private)
{
    pid_t child = fork();
    if (child == 0) {
        bool permitted = enter(mode, network_private) && unshare(CLONE_NEWNS) == 0 &&
                         (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) == 0 || errno == EINVAL);
        _exit(permitted ? 0 : errno);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        return EAGAIN;
    }
    return WEXITSTATUS(status);
}

static enum isolation_mode choose(struct isolation *isolation, enum isolation_mode wanted,
                                  bool network_private)
{
    static const enum isolation_mode candidates[] = {ISOLATION_NAMESPACE, ISOLATION_USER_NAMESPACE};
    int why = EPERM;
    for (size_t i = 0; i < 2; i++) {
        if (wanted != ISOLATION_AUTO && wanted != candidates[i]) {
            continue;
        }
        why = try_in_child(candidates[i], network_private);
        if (why == 0) {
            return candidates[i];
        }
    }
    (void)snprintf(isolation->why_not, sizeof isolation->why_not,
                   "no PID namespace is permitted (%s)",
                   wanted == ISOLATION_SUBREAPER ? "not asked for" : strerror(why));
    return ISOLATION_SUBREAPER;
}

/* ---- The namespace's init ---- */

/* Reaps by ignoring SIGCHLD, and lives as long as its supervisor: PDEATHSIG ends it after a kill
 * -9, the lifeline if the supervisor died before that call. Its own death ends all processes in the
 * namespace. */
static void be_init(int lifeline_fd)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGCHLD, &ignore, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "muster-init");
    if (dup2(lifeline_fd, 3) == 3) {
        (void)close_range(4, ~0U, 0);
    }
    (void)close_range(0, 2, 0);
    (void)!chdir("/");
    char byte;
    while (read(3, &byte, 1) < 0 && errno == EINTR) {
    }
    _exit(0);
}

static int start_init(struct isolation *isolation, struct muster_err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot make a socket pair: %s", error_text(errno));
    }
    isolation->init = fork();
    if (isolation->init == 0) {
        be_init(ends[1]);
    }
    close(ends[1]);
    isolation->lifeline_fd = ends[0];
    if (isolation->init < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot start the job's init: %s",
                           error_text_start(errno));
    }
    return 0;
}

/* If the flags cannot be read, the loopback counts as up. */
static bool loopback_is_down(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    muster_auto(close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0 && !(request.ifr_flags & IFF_UP);
}

static int loopback_up(struct muster_err *err)
{
    struct ifreq request = {.ifr_name = "lo"};
    muster_auto(close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0) {
        return muster_fail(err, MUSTER_EOS, "the job's network has no loopback: %s",
                           strerror(errno));
    }
    request.ifr_flags = (short)(request.ifr_flags | IFF_UP | IFF_RUNNING);
    return ioctl(fd, SIOCSIFFLAGS, &request) < 0
               ? muster_fail(err, MUSTER_EOS, "cannot bring up the job's loopback: %s",
                             strerror(errno))
               : 0;
}

int isolation_enter(struct isolation *ret, enum isolation_mode wanted, bool network_private,
                    struct muster_err *err)
{
    *ret = (struct isolation){.lifeline_fd = -1};
    ret->loopback_down = !network_private && loopback_is_down();
    ret->mode = choose(ret, wanted, network_private);
    if (ret->mode == ISOLATION_SUBREAPER) {
        if (network_private) {
            return muster_fail(err, MUSTER_EUNSUPPORTED,
                               "a private network cannot be had: %s; run as root, or permit "
                               "unprivileged user namespaces",
                               ret->why_not);
        }
        return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0
                   ? muster_fail(err, MUSTER_EOS, "cannot become a subreaper: %s", strerror(errno))
                   : 0;
    }
    if (!enter(ret->mode, network_private)) {
        return muster_fail(err, MUSTER_EOS, "cannot enter the job's namespaces: %s",
                           strerror(errno));
    }
    int r = network_private ? loopback_up(err) : 0;
    return r < 0 ? r : start_init(ret, err);
}

void isolation_leave(struct isolation *isolation)
{
    if (isolation->init > 0) {
        (void)kill(isolation->init, SIGKILL);
        char byte;
        /* The init's end of the lifeline closes when the init dies, which is after all processes in
         * the namespace have ended. */
        while (read(isolation->lifeline_fd, &byte, 1) < 0 && errno == EINTR) {
        }
        (void)waitpid(isolation->init, NULL, 0);
    }
    if (isolation->lifeline_fd >= 0) {
        close(isolation->lifeline_fd);
    }
    *isolation = (struct isolation){.lifeline_fd = -1};
}
