/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as two files of a checkpoint's folder: the index of its weights, which names files that are not
 * there, and tokenizer_config.json with its chat templates. Refused with a reason, or a section that is read
 * again.
 */
#include "export/checkpoint/checkpoint.h"
#include "export/text/chat_template.h"
#include "support/temporary.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool went_well(gumbel_status status, const gumbel_error *error) {
    if (status != GUMBEL_OK && (error->status != status || !error->message[0]))
        abort();
    return status == GUMBEL_OK;
}

static void open_weights(const uint8_t *data, size_t size) {
    gb_checkpoint *checkpoint = NULL;
    gumbel_error error = {.status = GUMBEL_OK};
    write_file(temporary_path("model.safetensors.index.json"), data, size);
    if (went_well(gb_checkpoint_open(temporary_directory(), &checkpoint, &error), &error) &&
        gb_checkpoint_count(checkpoint) > 0)
        abort(); /* no file has any */
    gb_checkpoint_close(checkpoint);
}

static void read_templates(const uint8_t *data, size_t size) {
    gb_chat_section chat = {0}, again;
    gumbel_error error = {.status = GUMBEL_OK};
    write_file(temporary_path("tokenizer_config.json"), data, size);
    if (went_well(gb_read_chat_templates(temporary_directory(), &chat, &error), &error)) {
        gb_byte_buffer bytes = {0};
        gb_chat_section_write(&chat, &bytes);
        if (bytes.size > 0 &&
            gb_chat_section_parse(&(gb_blob){bytes.data, bytes.size}, &again, &error) != GUMBEL_OK)
            abort();
        if (bytes.size > 0)
            gb_chat_section_free(&again);
        gb_buffer_free(&bytes);
    }
    gb_chat_section_free(&chat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    open_weights(data, size);
    read_templates(data, size);
    return 0;
}
