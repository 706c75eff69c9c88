/* SPDX-License-Identifier: Apache-2.0 */
#include "export/write_weights.h"

#include "base/memory.h"
#include "export/parallel.h"
#include "export/quantize/finite.h"
#include "export/quantize/write_imported.h"
#include "program/draft_head.h"
#include "tensor/convert.h"

#include <string.h>

static const uint64_t PIECE_BYTES = 8 << 20;

typedef struct progress_state {
    gumbel_progress_callback callback;
    void *user;
    uint64_t done, total;
} progress_state;

static gumbel_status advance(progress_state *progress, uint64_t bytes, gumbel_error *error) {
    progress->done += bytes;
    if (!progress->callback || progress->callback(progress->user, "weights", progress->done, progress->total))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_CANCELLED, "the export was cancelled");
}

static gumbel_status advance_quantized(void *user, uint64_t bytes, gumbel_error *error) {
    return advance(user, bytes, error);
}

static void read_packed_rows(const void *user, uint64_t first, uint64_t count, const gb_imported_row *to) {
    gb_packed_rows(user, first, count, to);
}

static void release_packed_rows(const void *user, uint64_t first, uint64_t count) {
    gb_packed_release(user, first, count);
}

static gumbel_status write_quantized(gb_writer *writer, const gb_constant *constant, uint32_t index,
                                     const gb_weights *weights, progress_state *progress,
                                     gumbel_error *error) {
    gb_written_callback written = {advance_quantized, progress};
    gb_block_type type;
    gb_stacked_bytes blocks;
    if (gb_weights_has_blocks(weights, index, &type, &blocks))
        return gb_write_imported(writer, constant, type, &blocks, gb_export_threads(), &written, error);
    const gb_packed *packed = gb_weights_packed(weights, index);
    if (packed) {
        gb_imported_rows rows = {read_packed_rows, release_packed_rows, packed};
        return gb_write_imported_rows(writer, constant, &rows, gb_export_threads(), &written, error);
    }
    gb_quantized_source source;
    GB_TRY(gb_weights_quantized_source(weights, index, &source, error));
    return gb_write_quantized(writer, constant, &source, gb_export_threads(), &written, error);
}

/* As linear_bfloat16 wants them: what is too small for it becomes 0. */
static void flush_bf16(uint16_t *weights, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        weights[i] = gb_bf16_operand(gb_float_from_bf16(weights[i]));
}

/* What a constant of the file is made from. */
typedef struct origin {
    const gb_weights *weights;
    uint32_t index; /* in them */
} origin;

static origin origin_of(const gb_program *program, const gb_weights *weights, uint32_t number) {
    const uint32_t own = program->constant_count;
    return number < own ? (origin){weights, number} : (origin){gb_weights_head(weights), number - own};
}

/* The constant of that number in the file. */
static gumbel_status write_constant(gb_writer *writer, const gb_program *program, uint32_t number,
                                    origin from, void *scratch, progress_state *progress,
                                    gumbel_error *error) {
    const gb_weights *weights = from.weights;
    const uint32_t index = from.index;
    char name[GB_FILE_NAME];
    gb_constant named = *gb_file_constant(program, number); /* for messages */
    named.name = gb_weights_name(weights, index, named.name, name);
    const gb_constant *constant = &named;
    GB_TRY(gb_writer_begin_constant(writer, number, error));
    if (constant->type.dtype == GB_QUANTIZED)
        return write_quantized(writer, constant, index, weights, progress, error);
    const uint64_t element = gb_dtype_size(constant->type.dtype);
    const bool is_operand = gb_weights_input(weights, index).activation == GB_ACTIVATION_BFLOAT16;
    for (uint64_t offset = 0; offset < constant->size;) {
        uint64_t left = constant->size - offset, size = left < PIECE_BYTES ? left : PIECE_BYTES;
        const void *data = NULL;
        gb_weights_read(weights, index, constant, offset, size, scratch, &data);
        GB_TRY(gb_check_finite(constant, data, offset / element, size / element, error));
        if (is_operand) {
            data = memmove(scratch, data, size); /* a checkpoint's tensors lie anywhere */
            flush_bf16(scratch, size / element);
        }
        GB_TRY(gb_writer_write(writer, data, size, error));
        gb_weights_release(weights, index, offset, size);
        GB_TRY(advance(progress, size, error));
        offset += size;
    }
    return GUMBEL_OK;
}

gumbel_status gb_write_weights(gb_writer *writer, const gb_program *program, const gb_weights *weights,
                               gumbel_progress_callback progress, void *user, gumbel_error *error) {
    progress_state state = {.callback = progress,
                            .user = user,
                            .total = gb_program_weight_bytes(program) + gb_head_own_bytes(program)};
    void *scratch = gb_allocate(PIECE_BYTES, 1);
    if (!scratch)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a buffer of %d MB", 8);
    gumbel_status status = advance(&state, 0, error);
    for (uint32_t i = 0; i < gb_file_constant_count(program) && status == GUMBEL_OK; i++)
        if (!gb_file_constant(program, i)->same)
            status =
                write_constant(writer, program, i, origin_of(program, weights, i), scratch, &state, error);
    gb_free(scratch);
    return status;
}
