/* SPDX-License-Identifier: Apache-2.0
 *
 * GPTQ's and AWQ's matrices, which are transposed, tensor by tensor: rows read alone, many at once and in
 * parts, and what is refused.
 */
#include "support/assertions.h"
#include "support/checkpoints/packed_fixture.h"
#include "tensor/convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 264, COLUMNS = 192, CODE_BYTES = ROWS * COLUMNS, MAX_GROUPS = COLUMNS / 32 };

#define QUANTIZED(about) "{\"quantization_config\":{" about "}}"
static const char GPTQ[] = QUANTIZED("\"quant_method\":\"gptq\"");
static const char GPTQ_V2[] = QUANTIZED("\"quant_method\":\"gptq\",\"checkpoint_format\":\"gptq_v2\"");
static const char AWQ[] = QUANTIZED("\"quant_method\":\"awq\",\"version\":\"gemm\"");
static const char ROUNDED[] =
    QUANTIZED("\"quant_method\":\"auto-round\",\"packing_format\":\"auto_round:auto_awq\"");

/* ---- The definition ------------------------------------------------------------------------------------ */

typedef struct layout {
    const char *config, *format;
    int bits, group, zero_step; /* group and what is added to a stored zero point */
    bool is_awq;
    int zero; /* that is stored for all; -1: they differ */
} layout;

/* Where the parts of a fixture are. */
typedef struct parts {
    uint8_t *codes, *zeros, *scales;
} parts;

static int groups_of(const layout *l) {
    return COLUMNS / l->group;
}

static packed_fixture open_layout(const layout *l, parts *p) {
    const int in_word = 32 / l->bits, groups = groups_of(l);
    const int codes = ROWS * COLUMNS * l->bits / 8, zeros = groups * ROWS * l->bits / 8;
    char header[512];
    snprintf(header, sizeof header,
             "{'m.qweight':{'dtype':'I32','shape':[%d,%d],'data_offsets':[0,%d]},"
             "'m.qzeros':{'dtype':'I32','shape':[%d,%d],'data_offsets':[%d,%d]},"
             "'m.scales':{'dtype':'F16','shape':[%d,%d],'data_offsets':[%d,%d]}}",
             l->is_awq ? COLUMNS : COLUMNS / in_word, l->is_awq ? ROWS / in_word : ROWS, codes, groups,
             ROWS / in_word, codes, codes + zeros, groups, ROWS, codes + zeros,
             codes + zeros + 2 * groups * ROWS);
    packed_fixture f = open_packed_fixture(l->config, header, (size_t)(codes + zeros + 2 * groups * ROWS));
    *p = (parts){.codes = f.bytes + f.data_begin};
    p->zeros = p->codes + codes;
    p->scales = p->zeros + zeros;
    for (int i = 0; i < codes; i++)
        p->codes[i] = (uint8_t)(37 * i + i / 251 + 5);
    for (int i = 0; i < groups * ROWS; i++)
        gb_put_code(p->zeros, (uint32_t)l->bits, (uint64_t)i, (uint32_t)(l->zero < 0 ? i % 15 : l->zero));
    for (int i = 0; i < groups * ROWS; i++) {
        const uint16_t scale = (uint16_t)(0x2c01 + i % 1000);
        memcpy(p->scales + 2 * i, &scale, sizeof scale);
    }
    return f;
}

/* A row's place among the codes of AWQ's words. */
static int in_awq_order(int row) {
    static const int places[] = {0, 4, 1, 5, 2, 6, 3, 7};
    return row / 8 * 8 + places[row % 8];
}

static float weight_at(const layout *l, const parts *p, int row, int column) {
    const int group = column / l->group, place = l->is_awq ? in_awq_order(row) : row, in_word = 32 / l->bits;
    const int code =
        l->is_awq ? column * ROWS + place : (column / in_word * ROWS + row) * in_word + column % in_word;
    const int q = (int)gb_get_code(p->codes, (uint32_t)l->bits, (uint64_t)code);
    const int zero = (int)gb_get_code(p->zeros, (uint32_t)l->bits, (uint64_t)(group * ROWS + place));
    uint16_t scale;
    memcpy(&scale, p->scales + 2 * (group * ROWS + row), sizeof scale);
    return gb_float_from_f16(scale) * (float)(q - zero - l->zero_step);
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

static gumbel_status find(const packed_fixture *f, gb_packed *packed, gumbel_error *error) {
    const int64_t dims[] = {ROWS, COLUMNS};
    bool is_found = false;
    const gumbel_status status =
        gb_packed_find(&f->packing, f->checkpoint, "m.weight", 2, dims, packed, &is_found, error);
    assert_true(status != GUMBEL_OK || is_found);
    return status;
}

/* Reads rows first .. first + count - 1 at once; they are the tensor's from row `from` on. */
static void check_rows(const layout *l, const parts *p, const gb_packed *packed, int first, int count,
                       int from) {
    gb_planes planes;
    static gb_imported_row to[ROWS];
    assert_true(gb_format_planes(&packed->format, ROWS, COLUMNS, &planes));
    uint8_t *bytes = malloc((size_t)planes.size);
    assert_non_null(bytes);
    memset(bytes, 0xee, (size_t)planes.size);
    for (int i = 0; i < count; i++)
        to[i] =
            (gb_imported_row){.codes = bytes + planes.codes.offset + (uint64_t)i * planes.codes.row_bytes,
                              .scales = bytes + planes.scales.offset + (uint64_t)i * planes.scales.row_bytes,
                              .biases = bytes + planes.biases.offset + (uint64_t)i * planes.biases.row_bytes};
    gb_packed_rows(packed, (uint64_t)first, (uint64_t)count, to);
    for (int i = 0; i < count; i++) {
        float values[COLUMNS];
        gb_format_dequantize(&packed->format, &planes, bytes, (uint64_t)i, 0, COLUMNS, values);
        for (int c = 0; c < COLUMNS; c++) {
            const float expected = weight_at(l, p, from + i, c);
            assert_true(values[c] == expected);
        }
    }
    free(bytes);
}

/* Parts of the rows in another order, as of a tensor that holds several matrices. */
static void check_runs(const layout *l, const parts *p, gb_packed *packed) {
    gumbel_error error;
    const uint64_t firsts[] = {170, 3, 90};
    enum { RUN = 40 };
    assert_ok(gb_packed_take_runs(packed, firsts, 3, RUN, &error), &error);
    for (int i = 0; i < 3; i++)
        check_rows(l, p, packed, RUN * i, RUN, (int)firsts[i]);
    check_rows(l, p, packed, RUN + 7, RUN - 7, 3 + 7);
    gb_packed_release(packed, 0, (uint64_t)3 * RUN);
}

static void holds_every_weight(void **state) {
    (void)state;
    static const layout layouts[] = {
        {GPTQ, "int4 g64 f16", 4, 64, 1, false, 7},         {GPTQ, "int5 g32 f16", 4, 32, 1, false, -1},
        {GPTQ_V2, "int5 g64 f16", 4, 192, 0, false, -1},    {GPTQ_V2, "int4 g64 f16", 4, 64, 0, false, 8},
        {GPTQ, "int8 g32 f16", 8, 32, 1, false, 127},       {GPTQ, "int8 row f16", 8, 192, 1, false, 127},
        {GPTQ_V2, "int4 g64 f16+bias", 4, 64, 0, false, 0}, {AWQ, "int5 g64 f16", 4, 64, 0, true, -1},
        {ROUNDED, "int4 g32 f16", 4, 32, 0, true, 8},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char text[GB_FORMAT_TEXT];
        gb_packed packed;
        gumbel_error error;
        parts p;
        packed_fixture f = open_layout(&layouts[i], &p);
        assert_ok(find(&f, &packed, &error), &error);
        assert_string_equal(gb_format_text(&packed.format, text), layouts[i].format);
        check_rows(&layouts[i], &p, &packed, 0, ROWS, 0);
        check_rows(&layouts[i], &p, &packed, 131, 1, 131);
        check_rows(&layouts[i], &p, &packed, 3, 130, 3);
        check_runs(&layouts[i], &p, &packed);
        gb_packed_free(&packed);
        close_packed_fixture(&f);
    }
}

/* ---- What is refused ----------------------------------------------------------------------------------- */

static void refuses(const char *config, const char *header, size_t size, uint8_t fill, gumbel_status status,
                    const char *part) {
    packed_fixture f = open_packed_fixture(config, header, size);
    gb_packed packed;
    bool is_found;
    gumbel_error error;
    const int64_t dims[] = {8, 64};
    memset(f.bytes + f.data_begin, fill, size);
    assert_fails(gb_packed_find(&f.packing, f.checkpoint, "m.weight", 2, dims, &packed, &is_found, &error),
                 status, &error, part);
    close_packed_fixture(&f);
}

#define CODES "{'m.qweight':{'dtype':'I32','shape':[8,8],'data_offsets':[0,256]}"
#define SCALES ",'m.scales':{'dtype':'F16','shape':[2,8],'data_offsets':[256,288]}"
#define ZEROS ",'m.qzeros':{'dtype':'I32','shape':[2,1],'data_offsets':[288,296]}"

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    const gumbel_status format = GUMBEL_ERROR_FORMAT, unsupported = GUMBEL_ERROR_UNSUPPORTED;
    refuses(GPTQ, CODES "}", 256, 0, format, "tensor m.scales is missing, which belongs to m.qweight");
    refuses(GPTQ, CODES SCALES "}", 288, 0, format, "tensor m.qzeros is missing");
    refuses(GPTQ, CODES ",'m.scales':{'dtype':'F16','shape':[3,8],'data_offsets':[256,304]}}", 304, 0, format,
            "m.scales has 3 groups, which do not divide rows of 64");
    refuses(GPTQ, CODES SCALES ",'m.qzeros':{'dtype':'I32','shape':[2,2],'data_offsets':[288,304]}}", 304, 0,
            format, "m.qzeros has shape [2, 2], expected [2, 1]");
    refuses(GPTQ, "{'m.qweight':{'dtype':'I32','shape':[6,8],'data_offsets':[0,192]}}", 192, 0, unsupported,
            "m.qweight has codes of 3 bits, expected 4 or 8");
    refuses(GPTQ, "{'m.qweight':{'dtype':'I32','shape':[7,8],'data_offsets':[0,224]}}", 224, 0, format,
            "does not hold [8, 64] codes of 4 or 8 bits, transposed, in I32 words");
    refuses(GPTQ, "{'m.qweight':{'dtype':'I32','shape':[8,16],'data_offsets':[0,512]}}", 512, 0, format,
            "m.qweight has shape [8, 16], expected [8, 8]");
    refuses(GPTQ, "{'m.qweight':{'dtype':'U8','shape':[8,8],'data_offsets':[0,64]}}", 64, 0, format,
            "does not hold");
    refuses(AWQ, CODES "}", 256, 0, format, "m.qweight has shape [8, 8], expected [64, 1]");
    refuses(GPTQ,
            CODES ",'m.scales':{'dtype':'F16','shape':[4,8],'data_offsets':[256,320]},"
                  "'m.qzeros':{'dtype':'I32','shape':[4,1],'data_offsets':[320,336]}}",
            336, 0, unsupported, "groups of 16, expected groups of a multiple of 32");
}

static void refuses_sorted_columns(void **state) {
    (void)state;
    const gumbel_status unsupported = GUMBEL_ERROR_UNSUPPORTED;
    refuses(GPTQ, CODES SCALES ZEROS ",'m.g_idx':{'dtype':'I32','shape':[64],'data_offsets':[296,552]}}", 552,
            0, unsupported, "m.g_idx has columns sorted before they were grouped (desc_act)");
    refuses(GPTQ, CODES SCALES ZEROS ",'m.g_idx':{'dtype':'I32','shape':[32],'data_offsets':[296,424]}}", 424,
            0, GUMBEL_ERROR_FORMAT, "m.g_idx has shape [32], expected [64]");
    refuses(QUANTIZED("\"quant_method\":\"gptq\",\"desc_act\":true"), CODES SCALES ZEROS "}", 296, 0,
            unsupported, "m.qweight has columns sorted");
}

static void refuses_numbers_of_two_meanings(void **state) {
    (void)state;
    refuses(GPTQ, CODES SCALES ZEROS "}", 296, 0xff, GUMBEL_ERROR_UNSUPPORTED,
            "m.qzeros has a zero point that is stored as 15");
    refuses(GPTQ_V2, CODES SCALES ZEROS "}", 296, 0xff, GUMBEL_ERROR_UNSUPPORTED, "expected finite scales");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_every_weight),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(refuses_sorted_columns),
        cmocka_unit_test(refuses_numbers_of_two_meanings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
