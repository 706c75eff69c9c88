/* SPDX-License-Identifier: Apache-2.0
 *
 * The date, and ids that no two requests share.
 */
#ifndef GUMBEL_SERVER_BASE_CLOCK_H
#define GUMBEL_SERVER_BASE_CLOCK_H

#include <stdint.h>

int64_t server_unix_time(void); /* seconds since 1970 */

/* Bits from the system's generator. */
uint64_t server_random_bits(void);

enum { SERVER_ID = 48 };

/* prefix and 24 random hexadecimal digits; returns id. */
const char *server_make_id(const char *prefix, char id[SERVER_ID]);

#endif
