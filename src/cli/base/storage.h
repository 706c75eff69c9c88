/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the commands, and growing arrays in it. Where there is no memory left a command has nothing
 * better to do than to say so and end with status 1; these functions do that and never return NULL.
 */
#ifndef GUMBEL_CLI_BASE_STORAGE_H
#define GUMBEL_CLI_BASE_STORAGE_H

#include <stddef.h>
#include <stdint.h>

/* count * size bytes, zeroed. Free with free(). */
void *cli_allocate(size_t count, size_t size);

/* A copy of length bytes of text with a terminating zero. Free with free(). */
char *cli_copy_text(const char *text, size_t length);

/* A text that grows; always ends in a zero byte once something was added. Start from {0}. */
typedef struct cli_text {
    char *bytes;
    size_t length, capacity;
} cli_text;

void cli_text_add(cli_text *text, const char *bytes, size_t length);
void cli_text_clear(cli_text *text); /* empties, keeps the memory */
void cli_text_free(cli_text *text);

/* Token ids that grow. Start from {0}. */
typedef struct cli_tokens {
    int32_t *ids; /* NULL: none were given */
    size_t count, capacity;
} cli_tokens;

void cli_tokens_add(cli_tokens *tokens, int32_t id);
void cli_tokens_reserve(cli_tokens *tokens, size_t capacity);
void cli_tokens_free(cli_tokens *tokens);

#endif
