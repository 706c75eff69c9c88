/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a program: refused, or verified, and then it can be printed and its weights lie inside. Bytes
 * that begin with the magic are a file, whose checksums are made to fit first; others are the size of a
 * metadata section in two bytes, that section and a graph section.
 */
#include "base/memory.h"
#include "program/file/encode.h"
#include "program/file/reader.h"
#include "program/file/storage.h"
#include "program/print/printer.h"
#include "program/verify/verifier.h"
#include "support/programs/program_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *user, const char *text, size_t length) {
    (void)user, (void)text, (void)length;
}

/* What the runtime does with any program that was accepted. */
static void use(const gb_program *program) {
    gb_text_sink sink = {ignore, NULL};
    gb_print_summary(program, &(gb_summary_sizes){1, 1}, &sink);
    gb_print_graph(program, &sink, NULL);
    gb_print_tensors(program, &sink);
    gb_print_json(program, 1, &sink);
    gb_check_weights(program, NULL);
    for (uint32_t i = 0; i < program->node_count; i++) {
        gb_node_int(&program->nodes[i], GB_ATTRIBUTE_WINDOW);
        gb_node_float(&program->nodes[i], GB_ATTRIBUTE_SCALE);
    }
}

static void run_file(const uint8_t *data, size_t size) {
    program_file file = {gb_allocate_aligned(size, 1), size};
    if (!file.bytes)
        return;
    memcpy(file.bytes, data, size);
    if (size >= GB_HEADER_BYTES)
        repair_checksums(&file);
    gb_program *program;
    gumbel_error error;
    if (gb_program_parse("fuzz", file.bytes, file.size, &program, &error) == GUMBEL_OK) {
        use(program);
        gb_program_destroy(program);
    }
    gb_free(file.bytes);
}

static void run_sections(const uint8_t *data, size_t size) {
    size_t metadata_size = size < 2 ? 0 : (size_t)data[0] | (size_t)data[1] << 8;
    if (size < 2 || metadata_size > size - 2)
        return;
    gb_program program = {.storage = gb_storage_create()};
    gb_byte_view metadata = {.data = data + 2, .size = metadata_size};
    gb_byte_view graph = {.data = data + 2 + metadata_size, .size = size - 2 - metadata_size};
    gumbel_error error;
    if (program.storage && gb_decode_metadata(metadata, &program, &error) == GUMBEL_OK &&
        gb_decode_graph(graph, &program, &error) == GUMBEL_OK &&
        gb_program_verify(&program, &error) == GUMBEL_OK)
        use(&program);
    gb_storage_destroy(program.storage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size >= GB_MAGIC_BYTES && memcmp(data, GB_MAGIC, GB_MAGIC_BYTES) == 0)
        run_file(data, size);
    else
        run_sections(data, size);
    return 0;
}
