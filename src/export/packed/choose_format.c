/* SPDX-License-Identifier: Apache-2.0
 *
 * Which format holds a packed matrix exactly. Every group is tried with every candidate; the first candidate
 * that no group refuses is taken.
 */
#include "export/packed/parts.h"

#include "base/file_map.h"
#include "export/parallel.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdatomic.h>

enum { MAX_CANDIDATES = 6 };

/* ---- One group ----------------------------------------------------------------------------------------- */

static bool is_exact(double value, gb_dtype dtype) {
    float narrow = (float)value;
    return (double)narrow == value && gb_widen_half(gb_round_half(narrow, dtype), dtype) == narrow;
}

static bool fit_bias(const gb_packed *packed, const gb_format *format, float scale, float offset,
                     gb_packed_group *group) {
    *group = (gb_packed_group){.scale = scale, .bias = offset};
    if (packed->offset_kind == GB_OFFSETS_BIASES)
        return is_exact((double)offset, format->scale);
    double zero = (double)offset, highest = (double)((1u << packed->bits) - 1u), bias = -(double)scale * zero;
    if (zero > highest - zero) { /* the shorter product is the one that may fit */
        bias = (double)scale * (highest - zero);
        group->counts_down = true;
        group->scale = -scale;
    }
    group->bias = (float)bias;
    return is_exact(bias, format->scale);
}

bool gb_packed_fit(const gb_packed *packed, const gb_format *format, float scale, float offset,
                   gb_packed_group *group) {
    if (!isfinite(scale) || !isfinite(offset) || !is_exact((double)scale, format->scale))
        return false;
    *group = (gb_packed_group){.scale = scale};
    if (format->book != GB_BOOK_NONE)
        return true;
    if (format->has_bias)
        return fit_bias(packed, format, scale, offset, group);
    float spare = (float)((1u << format->bits) - (1u << packed->bits));
    float shift = (float)gb_format_center(format) - offset;
    if (packed->offset_kind == GB_OFFSETS_BIASES || shift < 0 || shift > spare || shift != floorf(shift))
        return false;
    *group = (gb_packed_group){.scale = scale, .shift = (int32_t)shift};
    return true;
}

/* ---- All groups ---------------------------------------------------------------------------------------- */

typedef struct choice {
    const gb_packed *packed;
    gb_format candidates[MAX_CANDIDATES];
    uint32_t count;
    atomic_uint fitting; /* a bit for each candidate */
} choice;

static void add_candidate(choice *c, uint32_t bits, bool has_bias, gb_dtype scale, uint32_t group) {
    c->candidates[c->count++] = (gb_format){.kind = GB_FORMAT_ONE_LEVEL,
                                            .bits = (uint8_t)bits,
                                            .has_bias = has_bias,
                                            .scale = scale,
                                            .group = group};
}

/* The group of a format: the packed one or, where that is larger, one that divides it. */
static uint32_t format_group(const gb_packed *packed, bool may_be_row) {
    static const uint32_t sizes[] = {128, 64, 32};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (packed->group == sizes[i])
            return sizes[i];
    if (may_be_row && packed->group == packed->columns)
        return 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (packed->group % sizes[i] == 0)
            return sizes[i];
    return 1; /* none */
}

/* From the smallest to the largest; of equal ones that with the scales' own dtype first. */
static void list_candidates(choice *c) {
    const gb_packed *packed = c->packed;
    if (packed->book != GB_BOOK_NONE) { /* bfloat16 has every exponent */
        add_candidate(c, packed->bits, false, GB_BF16, (uint32_t)packed->group);
        c->candidates[0].book = packed->book;
        return;
    }
    bool is_f16 = packed->scales->dtype == GB_F16;
    const gb_dtype own = is_f16 ? GB_F16 : GB_BF16, other = is_f16 ? GB_BF16 : GB_F16;
    uint32_t group = format_group(packed, packed->bits == 8);
    if (packed->offset_kind != GB_OFFSETS_BIASES) {
        add_candidate(c, packed->bits, false, own, group);
        add_candidate(c, packed->bits, false, other, group);
    }
    if (packed->offset_kind != GB_OFFSETS_NONE) {
        add_candidate(c, packed->bits, true, own, group);
        add_candidate(c, packed->bits, true, other, group);
    }
    if (packed->bits == 4 && packed->offset_kind > GB_OFFSETS_BIASES) {
        add_candidate(c, 5, false, own, group);
        add_candidate(c, 5, false, other, group);
    }
}

static void try_rows(void *user, unsigned thread, size_t first, size_t end) {
    choice *c = user;
    const gb_packed *packed = c->packed;
    unsigned fitting = atomic_load(&c->fitting);
    (void)thread;
    for (size_t row = first; row < end && fitting; row++) {
        for (uint64_t group = 0; group < packed->columns / packed->group; group++) {
            float scale = gb_packed_scale(packed, row, group), offset = gb_packed_offset(packed, row, group);
            for (uint32_t i = 0; i < c->count; i++) {
                gb_packed_group fitted;
                if (fitting >> i & 1u && !gb_packed_fit(packed, &c->candidates[i], scale, offset, &fitted))
                    fitting &= ~(1u << i);
            }
        }
    }
    atomic_fetch_and(&c->fitting, fitting);
}

static void release(const gb_tensor *tensor) {
    if (!tensor->is_in_memory)
        gb_release_pages(tensor->data, tensor->size);
}

/* Whether the first candidate fits whatever the numbers are, so that they need not be read. */
static bool fits_any(const gb_packed *packed) {
    bool is_half = packed->scales->dtype != GB_F32 && packed->book == GB_BOOK_NONE;
    return is_half && (packed->offset_kind == GB_OFFSETS_NONE || packed->offset_kind == GB_OFFSETS_BIASES);
}

static void try_all(choice *c, const gb_packed *packed, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        c->packed = &packed[i];
        gb_parallel_for(gb_export_threads(), (size_t)packed[i].rows, try_rows, c);
        release(packed[i].scales);
        if (packed[i].offsets)
            release(packed[i].offsets);
    }
}

gumbel_status gb_packed_choose_format(const gb_packed_query *query, gb_packed *packed, uint64_t count,
                                      gumbel_error *error) {
    bool has_biases = packed->offset_kind == GB_OFFSETS_BIASES;
    choice c = {.packed = packed};
    list_candidates(&c);
    if (!gb_format_valid(&c.candidates[0]))
        return gb_packed_fail(query, packed->codes, GUMBEL_ERROR_UNSUPPORTED, error,
                              "has %u bits in groups of %llu, expected groups of a multiple of 32",
                              packed->bits, (unsigned long long)packed->group);
    atomic_init(&c.fitting, fits_any(packed) ? 1u : (1u << c.count) - 1u);
    if (!fits_any(packed))
        try_all(&c, packed, count);
    unsigned fitting = atomic_load(&c.fitting);
    if (!fitting)
        return gb_packed_fail(
            query, packed->scales, GUMBEL_ERROR_UNSUPPORTED, error,
            "and its %s would be rounded: expected %s", has_biases ? "biases" : "zero points",
            has_biases ? "numbers that float16 or bfloat16 holds"
                       : "finite scales that float16 or bfloat16 holds, and whole zero points");
    uint32_t first = 0;
    while (!(fitting >> first & 1u))
        first++;
    for (uint64_t i = 0; i < count; i++)
        packed[i].format = c.candidates[first];
    return GUMBEL_OK;
}
