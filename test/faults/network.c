/* Networks for tests: see network.h. The commands of iproute2 and iptables do the work. */
#include "network.h"

#include <net/if.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t hub;   /* the process whose namespace has the bridge */
static int network; /* the number in the names of the present cables */

__attribute__((format(printf, 1, 2))) static bool run(const char *format, ...)
{
    char command[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(command, sizeof command, format, args);
    va_end(args);
    char *const argv[] = {"sh", "-c", command, NULL};
    pid_t pid;
    int status = -1;
    return posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) == 0 &&
           waitpid(pid, &status, 0) == pid && status == 0;
}

bool network_open(void)
{
    if (hub == 0 && geteuid() == 0 && unshare(CLONE_NEWNET) == 0 &&
        run("ip link add hub type bridge && ip link set hub up && ip link set lo up")) {
        hub = getpid();
    }
    return hub != 0;
}

void network_renew(void)
{
    network = network % 250 + 1;
}

bool network_enter(int rank)
{
    return unshare(CLONE_NEWNET) == 0 &&
           run("ip link set lo up && ip link add cable type veth peer name h%d-%d netns %d && "
               "ip addr add 10.77.%d.%d/16 dev cable && ip link set cable up && "
               "nsenter --net=/proc/%d/ns/net ip link set h%d-%d master hub up",
               network, rank, (int)hub, network, rank + 1, (int)hub, network, rank);
}

void network_cut(int rank)
{
    struct ifreq cable = {.ifr_flags = 0};
    (void)snprintf(cable.ifr_name, sizeof cable.ifr_name, "h%d-%d", network, rank);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)ioctl(fd, SIOCSIFFLAGS, &cable);
    (void)close(fd);
}

bool network_slow(int rank, const char *rate, const char *latency)
{
    return run("tc qdisc replace dev h%d-%d root tbf rate %s burst 32kbit latency %s", network,
               rank, rate, latency);
}

bool network_lose(double probability)
{
    return run("iptables -A INPUT -m statistic --mode random --probability %f -j DROP",
               probability);
}

bool network_hold_back(bool held)
{
    return run("iptables -%c OUTPUT -m length --length 600:65535 -j DROP", held ? 'A' : 'D');
}
