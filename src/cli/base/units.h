/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of bytes as people write them.
 */
#ifndef GUMBEL_CLI_BASE_UNITS_H
#define GUMBEL_CLI_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_BYTES_TEXT = 24 };

/* "18.7 GB"; text has room for CLI_BYTES_TEXT bytes and is returned. */
const char *cli_describe_bytes(uint64_t bytes, char *text);

/* "20G", "1.5TB", "512MiB", "1000000": K, M, G and T are thousands, KiB and so on powers of 1024; capitals do
 * not matter. False for anything else, and for more than 2^60. */
bool cli_parse_bytes(const char *text, uint64_t *bytes);

#endif
