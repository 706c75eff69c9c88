/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the JSON of a reply format: refused with a reason, or a reply is taken apart by it.
 */
#include "support/paths.h"
#include "text/reply/use_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static gumbel_tokenizer *tokenizer_once(void) {
    static gumbel_tokenizer *tokenizer;
    gumbel_error error;
    if (!tokenizer &&
        gumbel_export_tokenizer(bundled_model("qwen3_5-moe-tiny"), &tokenizer, &error) != GUMBEL_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    return tokenizer;
}

static void take_apart(const gumbel_tokenizer *tokenizer) {
    static const char text[] =
        "<think>a</think>b<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, null]}}\n"
        "</tool_call><|x|>c=1;d=\"2\"\n";
    gumbel_reply *reply;
    gumbel_reply_part part;
    const gumbel_reply_options options = {.size = sizeof options};
    if (gumbel_reply_create(tokenizer, &options, &reply, NULL) != GUMBEL_OK)
        return;
    if (gumbel_reply_add_text(reply, text, sizeof text - 1, NULL) != GUMBEL_OK ||
        gumbel_reply_end(reply, NULL) != GUMBEL_OK)
        abort();
    for (size_t i = 0; i < gumbel_reply_part_count(reply); i++) {
        part = (gumbel_reply_part){.size = sizeof part};
        if (gumbel_reply_get_part(reply, i, &part, NULL) != GUMBEL_OK)
            abort();
    }
    gumbel_reply_destroy(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gumbel_tokenizer *tokenizer = tokenizer_once();
    gumbel_error error = {.status = GUMBEL_OK};
    const gumbel_status status =
        gb_tokenizer_use_reply_format(tokenizer, (const char *)data, size, "fuzz", &error);
    if (status == GUMBEL_OK)
        take_apart(tokenizer);
    else if (error.status != status || !error.message[0])
        abort();
    return 0;
}
