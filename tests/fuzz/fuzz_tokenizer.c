/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a tokenizer.json, or where they begin as one as a program's tokenizer section: refused, or it
 * encodes and decodes. Sections may hold expressions that export would refuse.
 */
#include "base/memory.h"
#include "export/text/tokenizer_json.h"
#include "text/tokenizer/tokenizer.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decodes what the text encodes to, with special tokens parsed and not. */
static void use(const gumbel_tokenizer *tokenizer) {
    static const char text[] =
        "the <bos> quick  fox\n\xE2\x82\xAC \xFF ab abc <s> it's 12 e\u0301\u0323\u08D3 \u1C89";
    for (int parse = 0; parse < 2; parse++) {
        gumbel_encode_options options = {.size = sizeof options, .parse_special = parse, .add_special = true};
        gumbel_detokenizer *detokenizer;
        int32_t ids[256];
        size_t count = 0, length;
        const char *piece;
        if (gumbel_encode(tokenizer, text, sizeof text, &options, ids, 256, &count, NULL) != GUMBEL_OK ||
            gumbel_detokenizer_create(tokenizer, true, &detokenizer, NULL) != GUMBEL_OK)
            continue;
        for (size_t i = 0; i < count; i++)
            if (gumbel_detokenize(detokenizer, ids[i], &piece, &length, NULL) != GUMBEL_OK)
                abort(); /* an id that was encoded is one that can be decoded */
        gumbel_detokenize_end(detokenizer, &piece, &length);
        gumbel_detokenizer_destroy(detokenizer);
    }
}

static void use_section(const uint8_t *data, size_t size) {
    gumbel_tokenizer *tokenizer;
    gb_blob blob = {data, size};
    if (gb_tokenizer_create(&blob, NULL, &tokenizer, NULL) != GUMBEL_OK)
        return;
    use(tokenizer);
    gumbel_tokenizer_destroy(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 4 && memcmp(data, GB_TOKENIZER_MAGIC, 4) == 0) {
        use_section(data, size);
        return 0;
    }
    gb_byte_buffer section = {0};
    gumbel_error error;
    if (gb_convert_tokenizer_json((const char *)data, size, "fuzz", &section, &error) == GUMBEL_OK) {
        gumbel_tokenizer *tokenizer;
        gb_blob blob = {section.data, section.size};
        if (gb_tokenizer_create(&blob, NULL, &tokenizer, &error) != GUMBEL_OK)
            abort(); /* the exporter must not write what the runtime refuses */
        use(tokenizer);
        gumbel_tokenizer_destroy(tokenizer);
    }
    gb_buffer_free(&section);
    return 0;
}
