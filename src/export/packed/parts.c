/* SPDX-License-Identifier: Apache-2.0 */
#include "export/packed/parts.h"

#include "export/packed/transposed.h"

#include "tensor/convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Tensors ------------------------------------------------------------------------------------------- */

bool gb_packed_rename(const char *name, const char *ending, const char *with, char text[GB_PACKED_NAME]) {
    size_t length = strlen(name), tail = strlen(ending);
    if (length < tail || strcmp(name + length - tail, ending) != 0 ||
        length - tail + strlen(with) >= GB_PACKED_NAME)
        return false;
    snprintf(text, GB_PACKED_NAME, "%.*s%s", (int)(length - tail), name, with);
    return true;
}

gumbel_status gb_packed_fail(const gb_packed_query *query, const gb_tensor *tensor, gumbel_status status,
                             gumbel_error *error, const char *format, ...) {
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return gb_fail(error, status, "%s: tensor %s %s", gb_checkpoint_path(query->checkpoint), tensor->name,
                   message);
}

/* Whether word is one of those in text. */
static bool has_word(const char *text, const char *word) {
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

gumbel_status gb_packed_part(const gb_packed_query *query, const gb_tensor *of, const char *name,
                             const char *dtypes, int32_t rank, const int64_t *dims, const gb_tensor **part,
                             gumbel_error *error) {
    *part = gb_checkpoint_find(query->checkpoint, name);
    if (!*part)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: tensor %s is missing, which belongs to %s",
                       gb_checkpoint_path(query->checkpoint), name, of->name);
    if ((*part)->dtype_name[0] == '\0' || !has_word(dtypes, (*part)->dtype_name))
        return gb_packed_fail(query, *part, GUMBEL_ERROR_FORMAT, error, "has dtype %s, expected %s",
                              (*part)->dtype_name, dtypes);
    return gb_checkpoint_check_shape(query->checkpoint, *part, rank, dims, error);
}

/* ---- Numbers ------------------------------------------------------------------------------------------- */

static float read_float(const gb_tensor *tensor, uint64_t index) {
    if (tensor->dtype == GB_F32) {
        float value;
        memcpy(&value, tensor->data + 4 * index, sizeof value);
        return value;
    }
    uint16_t half;
    memcpy(&half, tensor->data + 2 * index, sizeof half);
    return tensor->dtype == GB_BF16 ? gb_float_from_bf16(half) : gb_float_from_f16(half);
}

/* Beside integers that count halves; the largest byte is no number. */
static float scale_of_exponent(uint8_t exponent) {
    return exponent == 255 ? NAN : ldexpf(1, (int)exponent - 128);
}

float gb_packed_scale(const gb_packed *p, uint64_t row, uint64_t group) {
    const uint64_t index = row * p->row_stride + group * p->group_stride;
    if (p->book == GB_BOOK_NONE)
        return read_float(p->scales, index);
    return p->has_float_scales ? gb_float_from_e4m3(p->scales->data[index]) / 2
                               : scale_of_exponent(p->scales->data[index]);
}

/* Zero points of consecutive rows share a word, the first in its lowest bits. */
static uint32_t zero_in_words(const gb_packed *p, uint64_t row, uint64_t group) {
    uint32_t in_word = 32 / p->bits, word;
    uint64_t index = row / in_word * (p->columns / p->group) + group;
    memcpy(&word, p->offsets->data + 4 * index, sizeof word);
    return word >> (row % in_word * p->bits) & ((1u << p->bits) - 1u);
}

static uint32_t zero_in_transposed_words(const gb_packed *p, uint64_t row, uint64_t group) {
    uint32_t in_word = 32 / p->bits, word;
    uint32_t place = gb_packed_place_in_word(p->layout, in_word, row);
    memcpy(&word, p->offsets->data + 4 * (group * (p->rows / in_word) + row / in_word), sizeof word);
    return word >> (place * p->bits) & ((1u << p->bits) - 1u);
}

float gb_packed_offset(const gb_packed *p, uint64_t row, uint64_t group) {
    float center = (float)(1u << (p->bits - 1));
    switch (p->offset_kind) {
    case GB_OFFSETS_NONE:
        break;
    case GB_OFFSETS_BIASES:
    case GB_OFFSETS_FLOATS:
        return read_float(p->offsets, row * p->row_stride + group * p->group_stride);
    case GB_OFFSETS_BYTES:
        return (float)(int8_t)p->offsets->data[row * (p->columns / p->group) + group] + center;
    case GB_OFFSETS_WORDS:
        return (float)zero_in_words(p, row, group);
    case GB_OFFSETS_TRANSPOSED:
        return (float)(zero_in_transposed_words(p, row, group) + p->offset_step);
    }
    return center;
}
