/* A plain C program as a PyTorchJob: the ranks say hello to rank 0 over TCP, and rank 0 sends
 * everyone the sum of their numbers. It needs libc only; rank, world size and address come from the
 * environment that the operator sets.
 *
 * Build: cc -O2 -o hello hello.c.  Memory: one array of descriptors in main.  One thread.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_WORLD = 1024, RETRY_MS = 100, MAX_RETRIES = 600 };

static void fail(const char *what)
{
    fprintf(stderr, "hello: %s: %s\n", what, errno ? strerror(errno) : "no");
    exit(1);
}

static long number(const char *name, long min, long max)
{
    const char *text = getenv(name);
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : -1;
    if (!text || end == text || *end || value < min || value > max) {
        fprintf(stderr, "hello: %s=%s: a number from %ld to %ld is needed\n", name,
                text ? text : "", min, max);
        exit(2);
    }
    return value;
}

static void send_number(int fd, uint32_t value)
{
    uint32_t wire = htonl(value);
    if (send(fd, &wire, sizeof wire, MSG_NOSIGNAL) != sizeof wire) {
        fail("send");
    }
}

static uint32_t receive_number(int fd)
{
    uint32_t wire = 0;
    errno = 0; /* a closed connection does not set errno */
    if (recv(fd, &wire, sizeof wire, MSG_WAITALL) != sizeof wire) {
        fail("recv");
    }
    return ntohl(wire);
}

static int listen_at(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, MAX_WORLD)) {
        fail("listen on MASTER_PORT");
    }
    return fd;
}

/* Makes one attempt; -1 while rank 0 does not listen yet (or its name is not known yet). */
static int try_connect(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found)) {
        return -1;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen)) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static int connect_to(const char *host, const char *port)
{
    for (int i = 0; i < MAX_RETRIES; i++) {
        int fd = try_connect(host, port);
        if (fd >= 0) {
            return fd;
        }
        poll(NULL, 0, RETRY_MS);
    }
    fail("connect to MASTER_ADDR");
    return -1;
}

static uint32_t gather_and_answer(long world, uint16_t port)
{
    static int peers[MAX_WORLD];
    int listener = listen_at(port);
    uint32_t sum = 0;
    for (long i = 1; i < world; i++) {
        peers[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (peers[i] < 0) {
            fail("accept");
        }
        uint32_t rank = receive_number(peers[i]);
        printf("rank 0: hello from rank %u\n", rank);
        sum += rank;
    }
    for (long i = 1; i < world; i++) {
        send_number(peers[i], sum);
        close(peers[i]);
    }
    close(listener);
    return sum;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    long world = number("WORLD_SIZE", 1, MAX_WORLD);
    long rank = number("RANK", 0, world - 1);
    long port = number("MASTER_PORT", 1, 65535);
    const char *host = getenv("MASTER_ADDR");
    uint32_t sum;
    if (rank == 0) {
        sum = gather_and_answer(world, (uint16_t)port);
    } else {
        int fd = connect_to(host ? host : "localhost", getenv("MASTER_PORT"));
        send_number(fd, (uint32_t)rank);
        sum = receive_number(fd);
        close(fd);
    }
    printf("rank %ld of %ld: the ranks sum up to %u\n", rank, world, sum);
    return sum == (uint32_t)(world * (world - 1) / 2) ? 0 : 1;
}
