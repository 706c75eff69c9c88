/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/finite.h"

#include "tensor/convert.h"

#include <inttypes.h>
#include <string.h>

enum { RUN = 2048 };

/* ---- Finding ------------------------------------------------------------------------------------------- */

/* Without a branch, so that the loops are vectorized. */
static bool has_special_floats(const uint32_t *bits, size_t count) {
    const uint32_t exponent = 0x7f800000u;
    uint32_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= (uint32_t)((bits[i] & exponent) == exponent);
    return any != 0;
}

static bool has_special_halves(const uint16_t *bits, uint16_t exponent, size_t count) {
    uint16_t any = 0;
    for (size_t i = 0; i < count; i++)
        any = (uint16_t)(any | ((bits[i] & exponent) == exponent));
    return any != 0;
}

/* At most RUN numbers, copied since those of a file need not be aligned. */
static bool has_special(const uint8_t *numbers, gb_dtype dtype, size_t count) {
    if (dtype == GB_F32) {
        uint32_t bits[RUN];
        memcpy(bits, numbers, count * sizeof *bits);
        return has_special_floats(bits, count);
    }
    uint16_t bits[RUN];
    memcpy(bits, numbers, count * sizeof *bits);
    return has_special_halves(bits, dtype == GB_BF16 ? 0x7f80 : 0x7c00, count);
}

uint64_t gb_first_not_finite(const void *numbers, gb_dtype dtype, uint64_t count) {
    const uint64_t size = gb_dtype_size(dtype);
    for (uint64_t at = 0, run; at < count; at += run) {
        const uint8_t *from = (const uint8_t *)numbers + at * size;
        run = count - at < RUN ? count - at : RUN;
        if (!has_special(from, dtype, (size_t)run))
            continue;
        for (run = 0; !has_special(from + run * size, dtype, 1);)
            run++;
        return at + run;
    }
    return count;
}

/* ---- Telling ------------------------------------------------------------------------------------------- */

static const char *text_of(const void *numbers, gb_dtype dtype, uint64_t index) {
    const uint8_t *from = (const uint8_t *)numbers + index * gb_dtype_size(dtype);
    uint32_t bits;
    uint16_t half;
    memcpy(&half, from, sizeof half);
    if (dtype == GB_F32)
        memcpy(&bits, from, sizeof bits);
    else
        bits = gb_bits_from_float(gb_widen_half(half, dtype));
    return (bits & 0x7fffffu) != 0 ? "NaN" : bits >> 31 ? "-infinity" : "infinity";
}

static uint64_t columns_of(const gb_constant *constant) {
    const gb_shape *shape = &constant->type.shape;
    return shape->rank > 0 ? (uint64_t)shape->dims[shape->rank - 1] : 1;
}

#define WHAT_TO_DO                                                                                           \
    "expected finite numbers: the checkpoint is damaged or badly converted; take another copy of it"

static gumbel_status check_numbers(const gb_constant *constant, const void *numbers, gb_dtype dtype,
                                   uint64_t first, uint64_t count, gumbel_error *error) {
    const uint64_t at = gb_first_not_finite(numbers, dtype, count), columns = columns_of(constant);
    if (at == count)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_FORMAT,
                   "tensor %s: row %" PRIu64 ", column %" PRIu64 " is %s, " WHAT_TO_DO, constant->name,
                   (first + at) / columns, (first + at) % columns, text_of(numbers, dtype, at));
}

gumbel_status gb_check_finite(const gb_constant *constant, const void *numbers, uint64_t first,
                              uint64_t count, gumbel_error *error) {
    const gb_dtype dtype = constant->type.dtype;
    if (dtype != GB_F32 && dtype != GB_F16 && dtype != GB_BF16)
        return GUMBEL_OK;
    return check_numbers(constant, numbers, dtype, first, count, error);
}

gumbel_status gb_check_finite_row(const gb_constant *constant, const float *values, uint64_t row,
                                  gumbel_error *error) {
    const uint64_t columns = columns_of(constant);
    return check_numbers(constant, values, GB_F32, row * columns, columns, error);
}

/* A plane of 16-bit numbers, each of `inputs` columns. */
static gumbel_status check_plane(const gb_constant *constant, const gb_plane *plane, const char *kind,
                                 uint64_t inputs, uint64_t rows, const uint8_t *others, uint64_t begin,
                                 gumbel_error *error) {
    if (plane->row_bytes == 0)
        return GUMBEL_OK;
    const uint64_t of_row = plane->row_bytes / 2, count = of_row * rows;
    const uint8_t *numbers = others + (plane->offset - begin);
    const gb_dtype dtype = constant->format.scale;
    const uint64_t at = gb_first_not_finite(numbers, dtype, count);
    if (at == count)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_FORMAT,
                   "tensor %s: row %" PRIu64 ": the %s of column %" PRIu64 " is %s, " WHAT_TO_DO,
                   constant->name, at / of_row, kind, at % of_row * inputs, text_of(numbers, dtype, at));
}

gumbel_status gb_check_finite_scales(const gb_constant *constant, const gb_planes *planes,
                                     const uint8_t *others, uint64_t begin, gumbel_error *error) {
    const bool has_supers = planes->super_scales.row_bytes > 0;
    const gb_plane *scales = has_supers ? &planes->super_scales : &planes->scales;
    const gb_plane *biases = has_supers ? &planes->super_biases : &planes->biases;
    const uint64_t columns = columns_of(constant);
    uint64_t elements = 0;
    if (!gb_shape_elements(&constant->type.shape, &elements))
        return GUMBEL_OK;
    const uint64_t inputs = columns / (scales->row_bytes / 2);
    GB_TRY(check_plane(constant, scales, "scale", inputs, elements / columns, others, begin, error));
    return check_plane(constant, biases, "bias", inputs, elements / columns, others, begin, error);
}
