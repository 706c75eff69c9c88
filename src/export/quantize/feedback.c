/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/feedback.h"

enum { ROW_SPAN = 32, MOST_SPAN = GB_MAX_GROUP, CHUNK = 256 };

/* Rows on their way. A span is what is quantized before its errors go to the rest of the block. */
typedef struct feedback_rows {
    gb_quantize_method method;
    const gb_format *format;
    const gb_feedback *feedback;
    const gb_quantized_row *to;
    uint64_t count;
    uint64_t span; /* columns, of the last one of a row fewer */
    float *values; /* [count, columns] */
    float row_scales[GB_FEEDBACK_ROWS];
    gb_affine affines[GB_FEEDBACK_ROWS];
    float errors[GB_FEEDBACK_ROWS][MOST_SPAN];
} feedback_rows;

/* A block of the feedback, and in it a span. */
typedef struct block_place {
    uint64_t begin, size; /* columns */
    const float *spread;
    uint64_t first, count; /* columns of the span */
} block_place;

static float *row_of(const feedback_rows *rows, uint64_t row) {
    return rows->values + row * rows->feedback->columns;
}

static bool begin_row(feedback_rows *rows, uint64_t row) {
    const uint64_t columns = rows->feedback->columns;
    float *values = row_of(rows, row);
    if (!gb_begin_row(rows->format, values, columns, &rows->to[row], &rows->row_scales[row]))
        return false;
    return rows->format->group > 0 || gb_fit_group(rows->method, rows->format, rows->row_scales[row], values,
                                                   columns, 0, &rows->to[row], &rows->affines[row]);
}

/* Quantizes a row's span, each weight after those before it have left their errors. */
static bool quantize_span(feedback_rows *rows, uint64_t row, const block_place *block) {
    const gb_format *format = rows->format;
    const uint64_t within = block->first - block->begin;
    float *values = row_of(rows, row) + block->first;
    if (format->group > 0 && !gb_fit_group(rows->method, format, rows->row_scales[row], values, block->count,
                                           block->first / rows->span, &rows->to[row], &rows->affines[row]))
        return false;
    const gb_affine affine = rows->affines[row];
    const float inverse = gb_inverse_scale(affine), center = (float)gb_format_center(format);
    for (uint64_t i = 0; i < block->count; i++) {
        const float *spread = block->spread + (within + i) * block->size + within;
        const float code = gb_nearest_code(format, affine, inverse, values[i]);
        const float error = values[i] - ((code - center) * affine.scale + affine.bias);
        gb_put_code(rows->to[row].codes, format->bits, block->first + i, (uint32_t)code);
        rows->errors[row][i] = error;
        for (uint64_t j = i + 1; j < block->count; j++)
            values[j] -= error * spread[j];
    }
    return true;
}

/* Takes the errors of a span from the columns of the block after it, in chunks that stay in the cache for all
 * rows. */
static void spread_errors(const feedback_rows *rows, const block_place *block) {
    const uint64_t end = block->begin + block->size;
    const float *from = block->spread + (block->first - block->begin) * block->size;
    for (uint64_t at = block->first + block->count; at < end; at += CHUNK) {
        const uint64_t count = end - at < CHUNK ? end - at : CHUNK;
        for (uint64_t row = 0; row < rows->count; row++) {
            float *values = row_of(rows, row) + at;
            for (uint64_t i = 0; i < block->count; i++) {
                const float *spread = from + i * block->size + (at - block->begin);
                const float error = rows->errors[row][i];
                for (uint64_t j = 0; j < count; j++)
                    values[j] -= error * spread[j];
            }
        }
    }
}

static uint64_t quantize_block(feedback_rows *rows, block_place *block) {
    const uint64_t end = block->begin + block->size;
    for (block->first = block->begin; block->first < end; block->first += block->count) {
        block->count = end - block->first < rows->span ? end - block->first : rows->span;
        for (uint64_t row = 0; row < rows->count; row++)
            if (!quantize_span(rows, row, block))
                return row;
        spread_errors(rows, block);
    }
    return rows->count;
}

uint64_t gb_quantize_rows(gb_quantize_method method, const gb_format *format, const gb_feedback *feedback,
                          float *values, uint64_t count, const gb_quantized_row *to) {
    feedback_rows rows = {.method = method, .format = format, .feedback = feedback, .to = to};
    rows.count = count;
    rows.values = values;
    rows.span = format->group > 0 ? format->group : ROW_SPAN;
    for (uint64_t row = 0; row < count; row++)
        if (!begin_row(&rows, row))
            return row;
    block_place block = {.spread = feedback->spread};
    for (; block.begin < feedback->columns; block.begin += feedback->block) {
        const uint64_t left = feedback->columns - block.begin;
        block.size = left < feedback->block ? left : feedback->block;
        const uint64_t bad = quantize_block(&rows, &block);
        if (bad < count)
            return bad;
        block.spread += block.size * block.size;
    }
    return count;
}
