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
        struct sockaddr_in6 six; /* with the scope if the address is link-local */
    };
};

uint16_t address_port(const struct address *address); /* network order */
socklen_t address_bytes(const struct address *address);

/* Finds all addresses of a name or number ("::1", "fe80::1%eth0"), at most ADDRESS_MAX. Returns 0
 * if there is no such host, and then *ret_reason says why (static text). */
int address_resolve(const char *host, uint16_t port, struct address *ret, const char **ret_reason);

/* Finds this machine's address on the way to one of the host's addresses; nothing is sent. */
bool address_towards(const char *host, struct address *ret);
/* Returns an address of this machine that others can use: not the loopback address if there is
 * another one. */
struct address address_of_machine(void);

/* Returns a non-blocking descriptor, or -1 and errno. */
int address_listen(const struct address *at);
int address_connect(const struct address *to, int64_t deadline_ns);
/* Connects in two steps, for any family. address_begin returns a descriptor that is connected or
 * will be. address_finish waits up to the deadline and returns whether it is (-1 and errno; the
 * caller keeps it). A socket that is connected to itself is refused, because nobody listens there.
 */
int address_begin(const struct sockaddr *to, socklen_t bytes);
int address_finish(int fd, int64_t deadline_ns);
bool address_is_self(int fd);

/* Writes the address in the form "[fe80::1%eth0]:29500" to ret, and returns ret. */
enum { ADDRESS_TEXT_BYTES = 96 };
const char *address_text(const struct address *address, char *ret);
