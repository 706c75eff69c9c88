/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a connection comes from, as far as limits per address go.
 */
#ifndef GUMBEL_SERVER_HTTP_ADDRESS_H
#define GUMBEL_SERVER_HTTP_ADDRESS_H

#include <stdbool.h>

struct sockaddr_storage;

typedef struct server_address {
    unsigned char bytes[16]; /* of IPv6, in which IPv4 is mapped */
    bool is_known;           /* the peer of a UNIX socket has none */
} server_address;

server_address server_address_of(const struct sockaddr_storage *peer);

/* Whether both are one client's: of IPv6 the network's half decides, since one host has all addresses of it.
 */
bool server_is_same_address(const server_address *one, const server_address *other);

#endif
