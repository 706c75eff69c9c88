/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the commands, and growing arrays in it. Where there is no memory left a command has nothing
 * better to do than to say so and end with status 1; these functions do that and never return NULL.
 */
#ifndef GUMBEL_CLI_BASE_STORAGE_H
#define GUMBEL_CLI_BASE_STORAGE_H

#include "base/byte_buffer.h"

/* count * size bytes, zeroed. Free with free(). */
void *cli_allocate(size_t count, size_t size);

/* A copy of length bytes of text with a terminating zero. Free with free(). */
char *cli_copy_text(const char *text, size_t length);

/* Grows *items, of malloc, so that it holds at least needed items, doubling. */
void cli_reserve(void **items, size_t *capacity, size_t needed, size_t item_size);

/* Append to a buffer, whose bytes have a zero behind them then, as gb_buffer_string leaves them. */
void cli_append(gb_byte_buffer *buffer, const char *bytes, size_t length);
void cli_append_string(gb_byte_buffer *buffer, const char *string);

/* Token ids that grow. Start from {0}. */
typedef struct cli_tokens {
    int32_t *ids; /* NULL: none were given */
    size_t count, capacity;
} cli_tokens;

void cli_tokens_add(cli_tokens *tokens, int32_t id);
void cli_tokens_reserve(cli_tokens *tokens, size_t capacity);
void cli_tokens_free(cli_tokens *tokens);

#endif
