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

/* The block with room for at least needed items, doubled as often as that takes. */
static void *grow(void *block, size_t *capacity, size_t needed, size_t item_size) {
    if (needed <= *capacity)
        return block;
    size_t larger = *capacity ? *capacity : 64;
    while (larger < needed)
        larger = larger <= SIZE_MAX / 2 ? larger * 2 : needed;
    *capacity = larger;
    return or_end(larger <= SIZE_MAX / item_size ? realloc(block, larger * item_size) : NULL);
}

void cli_text_add(cli_text *text, const char *bytes, size_t length) {
    text->bytes = grow(text->bytes, &text->capacity, text->length + length + 1, 1);
    if (length > 0)
        memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void cli_text_clear(cli_text *text) {
    text->length = 0;
    if (text->bytes)
        text->bytes[0] = '\0';
}

void cli_text_free(cli_text *text) {
    free(text->bytes);
    *text = (cli_text){0};
}

void cli_tokens_reserve(cli_tokens *tokens, size_t capacity) {
    tokens->ids = grow(tokens->ids, &tokens->capacity, capacity, sizeof *tokens->ids);
}

void cli_tokens_add(cli_tokens *tokens, int32_t id) {
    cli_tokens_reserve(tokens, tokens->count + 1);
    tokens->ids[tokens->count++] = id;
}

void cli_tokens_free(cli_tokens *tokens) {
    free(tokens->ids);
    *tokens = (cli_tokens){0};
}
