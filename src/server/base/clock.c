/* SPDX-License-Identifier: Apache-2.0 */
#include "server/base/clock.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int64_t server_unix_time(void) {
    return (int64_t)time(NULL);
}

uint64_t server_random_bits(void) {
    uint64_t bits = 0;
    if (getentropy(&bits, sizeof bits) != 0)
        bits = (uint64_t)(gb_seconds() * 1e9);
    return bits;
}

const char *server_make_id(const char *prefix, char id[SERVER_ID]) {
    snprintf(id, SERVER_ID, "%s%016" PRIx64 "%08" PRIx64, prefix, server_random_bits(),
             server_random_bits() >> 32);
    return id;
}
