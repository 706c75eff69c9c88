/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/address.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { NETWORK_BYTES = 8 };

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

server_address server_address_of(const struct sockaddr_storage *peer) {
    server_address address = {.is_known = true};
    if (peer->ss_family == AF_INET) {
        memcpy(address.bytes, mapped, sizeof mapped);
        memcpy(address.bytes + sizeof mapped, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
    } else if (peer->ss_family == AF_INET6) {
        memcpy(address.bytes, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr, 16);
    } else {
        address.is_known = false;
    }
    return address;
}

static bool is_mapped(const server_address *address) {
    return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

bool server_is_same_address(const server_address *one, const server_address *other) {
    const size_t length = is_mapped(one) || is_mapped(other) ? sizeof one->bytes : (size_t)NETWORK_BYTES;
    return one->is_known && other->is_known && memcmp(one->bytes, other->bytes, length) == 0;
}
