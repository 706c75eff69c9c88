/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/storage.h"

#include "cli/base/report.h"

#include <stdlib.h>
#include <string.h>

static void *or_end(void *block) {
    if (!block)
        exit(cli_fail("out of memory"));
    return block;
}

void *cli_allocate(size_t count, size_t size) {
    return or_end(calloc(count ? count : 1, size));
}

char *cli_copy_text(const char *text, size_t length) {
    char *copy = cli_allocate(length + 1, 1);
    if (length > 0)
        memcpy(copy, text, length);
    return copy;
}

/* Tests let the library's allocations fail, and a command cannot go on without its own: hence no gb_grow. */
void cli_reserve(void **items, size_t *capacity, size_t needed, size_t item_size) {
    size_t larger = *capacity ? *capacity : 64;
    if (needed <= *capacity)
        return;
    while (larger < needed)
        larger = larger <= SIZE_MAX / 2 ? larger * 2 : needed;
    *items = or_end(larger <= SIZE_MAX / item_size ? realloc(*items, larger * item_size) : NULL);
    *capacity = larger;
}

void cli_append(gb_byte_buffer *buffer, const char *bytes, size_t length) {
    cli_reserve((void **)&buffer->data, &buffer->capacity, buffer->size + length + 1, 1);
    gb_buffer_append(buffer, bytes, length);
    gb_buffer_string(buffer);
}

void cli_append_string(gb_byte_buffer *buffer, const char *string) {
    cli_append(buffer, string, strlen(string));
}

void cli_tokens_reserve(cli_tokens *tokens, size_t capacity) {
    cli_reserve((void **)&tokens->ids, &tokens->capacity, capacity, sizeof *tokens->ids);
}

void cli_tokens_add(cli_tokens *tokens, int32_t id) {
    cli_tokens_reserve(tokens, tokens->count + 1);
    tokens->ids[tokens->count++] = id;
}

void cli_tokens_free(cli_tokens *tokens) {
    free(tokens->ids);
    *tokens = (cli_tokens){0};
}
