/* See peer.h. The kernel's table of sockets, by sock_diag(7): one question for one socket. */
#include "http/peer.h"

#include "base/cleanup.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

union answer {
    struct nlmsghdr head;
    char bytes[1024];
};

static bool ask(int fd, const struct question *question, union answer *ret)
{
    if (send(fd, question, sizeof *question, MSG_NOSIGNAL) != (ssize_t)sizeof *question) {
        return false;
    }
    ssize_t n = recv(fd, ret, sizeof *ret, MSG_DONTWAIT);
    return n > 0 && NLMSG_OK(&ret->head, (size_t)n) &&
           ret->head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
           ret->head.nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg));
}

/* A socket without an inode is not open in any process any more; the kernel reports root as its
 * user, so the answer is false. */
bool peer_uid(const struct sockaddr_in *client, const struct sockaddr_in *server, uid_t *ret)
{
    muster_auto(close) int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    struct question question = {
        .head = {.nlmsg_len = sizeof question,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = AF_INET,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0U,
                 .id = {.idiag_sport = client->sin_port,
                        .idiag_dport = server->sin_port,
                        .idiag_src = {client->sin_addr.s_addr},
                        .idiag_dst = {server->sin_addr.s_addr},
                        .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    union answer answer = {0};
    if (fd < 0 || !ask(fd, &question, &answer)) {
        return false;
    }
    struct inet_diag_msg socket;
    memcpy(&socket, NLMSG_DATA(&answer.head), sizeof socket);
    *ret = socket.idiag_uid;
    return socket.idiag_inode != 0;
}
