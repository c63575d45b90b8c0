/* Network addresses (IPv4 and IPv6). A name becomes a list of addresses, which are tried one after
 * the other.
 *
 * Layer: comm. Memory: the caller's. Thread: any.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <muster/err.h>

enum { ADDRESS_MAX = 16 };

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six; /* with the scope of a link-local address */
    };
};

uint16_t address_port(const struct address *address); /* network order */
socklen_t address_bytes(const struct address *address);

/* All addresses of a name or number ("::1", "fe80::1%eth0"), at most ADDRESS_MAX; 0: there is no
 * such host, and *ret_reason says why (static text). */
int address_resolve(const char *host, uint16_t port, struct address *ret, const char **ret_reason);

/* This machine's address on the way to one of a host's; nothing is sent. */
bool address_towards(const char *host, struct address *ret);
/* An address of this machine that others may know: not of the loopback if there is another. */
struct address address_of_machine(void);

/* A non-blocking descriptor, or -1 and errno. */
int address_listen(const struct address *at);
int address_connect(const struct address *to, int64_t deadline_ns);
/* Connects in two steps, for any family: address_begin returns a descriptor that is connected, or
 * will be; address_finish says by the deadline whether it is (-1 and errno; the caller keeps it). A
 * socket that is connected to itself is refused: nobody listens there. */
int address_begin(const struct sockaddr *to, socklen_t bytes);
int address_finish(int fd, int64_t deadline_ns);
bool address_is_self(int fd);

/* "[fe80::1%eth0]:29500". The text is in ret. */
enum { ADDRESS_TEXT_BYTES = 96 };
const char *address_text(const struct address *address, char *ret);
