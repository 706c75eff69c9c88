/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed matrices tensor by tensor: the choice of an exact format, and files whose tensors are missing, of
 * another shape or dtype, or say what no format holds.
 */
#include "export/packed/fp8.h"
#include "export/packed/packed.h"
#include "support/assertions.h"
#include "support/checkpoints/packed_fixture.h"
#include "tensor/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 4, COLUMNS = 64 };

static const char MLX[] = "{\"quantization\":{\"bits\":4,\"group_size\":32}}";
static const char COMPRESSED[] = "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\"}}";
static const char SILENT[] = "{}";

static gumbel_status find(const packed_fixture *f, gb_packed *packed, bool *is_found, gumbel_error *error) {
    const int64_t dims[] = {ROWS, COLUMNS};
    return gb_packed_find(&f->packing, f->checkpoint, "m.weight", 2, dims, packed, is_found, error);
}

static void refuses(const char *config, const char *header, size_t data_size, gumbel_status status,
                    const char *part) {
    packed_fixture f = open_packed_fixture(config, header, data_size);
    gb_packed packed;
    bool is_found;
    gumbel_error error;
    assert_fails(find(&f, &packed, &is_found, &error), status, &error, part);
    close_packed_fixture(&f);
}

/* ---- MLX ----------------------------------------------------------------------------------------------- */

static void refuses_bad_mlx(void **state) {
    (void)state;
    const gumbel_status format = GUMBEL_ERROR_FORMAT, unsupported = GUMBEL_ERROR_UNSUPPORTED;
    refuses(MLX, "{'m.weight':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]}}", 128, format,
            "file: tensor m.scales is missing, which belongs to m.weight");
    refuses(MLX,
            "{'m.weight':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]},"
            "'m.scales':{'dtype':'F16','shape':[4,2],'data_offsets':[128,144]}}",
            144, format, "tensor m.biases is missing");
    refuses(MLX,
            "{'m.weight':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]},"
            "'m.scales':{'dtype':'F16','shape':[4,2],'data_offsets':[128,144]},"
            "'m.biases':{'dtype':'BF16','shape':[4,2],'data_offsets':[144,160]}}",
            160, format, "tensor m.biases has dtype BF16, expected F16");
    refuses(MLX,
            "{'m.weight':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]},"
            "'m.scales':{'dtype':'F16','shape':[2,4],'data_offsets':[128,144]},"
            "'m.biases':{'dtype':'F16','shape':[4,2],'data_offsets':[144,160]}}",
            160, unsupported, "tensor m.weight has codes of 4 bits in groups of 16");
    refuses(MLX,
            "{'m.weight':{'dtype':'U32','shape':[8,4],'data_offsets':[0,128]},"
            "'m.scales':{'dtype':'F16','shape':[8,1],'data_offsets':[128,144]},"
            "'m.biases':{'dtype':'F16','shape':[8,1],'data_offsets':[144,160]}}",
            160, unsupported, "tensor m.weight has codes of 2 bits in groups of 64");
    refuses(MLX,
            "{'m.weight':{'dtype':'U32','shape':[4,9],'data_offsets':[0,144]},"
            "'m.scales':{'dtype':'F16','shape':[4,2],'data_offsets':[144,160]}}",
            160, unsupported, "tensor m.weight has codes of 0 bits");
    refuses(MLX,
            "{'m.weight':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]},"
            "'m.scales':{'dtype':'U8','shape':[4,1],'data_offsets':[128,132]}}",
            132, unsupported, "tensor m.scales has dtype U8 beside codes of 4 bits in groups of 64");
    refuses(MLX,
            "{'m.weight':{'dtype':'U32','shape':[4,0],'data_offsets':[0,0]},"
            "'m.scales':{'dtype':'F16','shape':[4,0],'data_offsets':[0,0]}}",
            0, unsupported, "codes of 0 bits in groups of 0");
    refuses(MLX,
            "{'m.weight':{'dtype':'U32','shape':[],'data_offsets':[0,4]},"
            "'m.scales':{'dtype':'F16','shape':[4,2],'data_offsets':[4,20]}}",
            20, unsupported, "codes of 0 bits");
}

static void refuses_bad_sizes_by_name(void **state) {
    (void)state;
    static const char TENSORS[] = "{'m.weight':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]},"
                                  "'m.scales':{'dtype':'F16','shape':[4,2],'data_offsets':[128,144]},"
                                  "'m.biases':{'dtype':'F16','shape':[4,2],'data_offsets':[144,160]}}";
    static const struct {
        const char *scheme, *part;
        gumbel_status status;
    } cases[] = {
        {"{\"bits\":4,\"group_size\":64}", "m.scales has shape [4, 2], expected [4, 1]", GUMBEL_ERROR_FORMAT},
        {"{\"bits\":8,\"group_size\":32}", "m.weight has shape [4, 8], expected [4, 16]",
         GUMBEL_ERROR_FORMAT},
        {"{\"bits\":4,\"group_size\":128}", "rows of 64 weights, which groups of 128 do not divide",
         GUMBEL_ERROR_FORMAT},
        {"{\"bits\":3,\"group_size\":32}", "codes of 3 bits in groups of 32", GUMBEL_ERROR_UNSUPPORTED},
        {"{\"bits\":4,\"group_size\":1048576}", "groups of 1048576", GUMBEL_ERROR_UNSUPPORTED},
        {"{\"bits\":4,\"group_size\":1048577}", "m.group_size", GUMBEL_ERROR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char config[256];
        snprintf(config, sizeof config, "{\"quantization\":{\"bits\":4,\"group_size\":32,\"m\":%s}}",
                 cases[i].scheme);
        refuses(config, TENSORS, 160, cases[i].status, cases[i].part);
    }
}

static void takes_wide_scales_only_where_exact(void **state) {
    (void)state;
    static const char TENSORS[] = "{'m.weight':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]},"
                                  "'m.scales':{'dtype':'F32','shape':[4,2],'data_offsets':[128,160]},"
                                  "'m.biases':{'dtype':'F32','shape':[4,2],'data_offsets':[160,192]}}";
    static const struct {
        float scale;
        gb_dtype expected;
    } cases[] = {{0x1p-100f, GB_BF16}, {0x1.004p-3f, GB_F16}, {0x1.00002p-3f, GB_DTYPE_NONE}};
    for (size_t i = 0; i < 3; i++) {
        packed_fixture f = open_packed_fixture(MLX, TENSORS, 192);
        gb_packed packed;
        bool is_found;
        gumbel_error error;
        memcpy(f.bytes + f.data_begin + 128 + 12, &cases[i].scale, sizeof cases[i].scale);
        gumbel_status status = find(&f, &packed, &is_found, &error);
        if (cases[i].expected == GB_DTYPE_NONE) {
            assert_fails(status, GUMBEL_ERROR_UNSUPPORTED, &error,
                         "m.scales and its biases would be rounded");
        } else {
            assert_ok(status, &error);
            assert_int_equal(packed.format.scale, cases[i].expected);
        }
        close_packed_fixture(&f);
    }
}

/* ---- compressed-tensors -------------------------------------------------------------------------------- */

static void refuses_bad_compressed(void **state) {
    (void)state;
    const gumbel_status format = GUMBEL_ERROR_FORMAT, unsupported = GUMBEL_ERROR_UNSUPPORTED;
#define PACKED "{'m.weight_packed':{'dtype':'I32','shape':[4,8],'data_offsets':[0,128]}"
#define SCALE ",'m.weight_scale':{'dtype':'BF16','shape':[4,2],'data_offsets':[128,144]}"
    refuses(COMPRESSED, PACKED "}", 128, format, "tensor m.weight_scale is missing");
    refuses(COMPRESSED, "{'m.weight_packed':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]}}", 128,
            format, "does not hold [4, 64] codes of 4 or 8 bits in I32 words");
    refuses(COMPRESSED, "{'m.weight_packed':{'dtype':'I32','shape':[4,6],'data_offsets':[0,96]}}", 96, format,
            "does not hold [4, 64] codes");
    refuses(COMPRESSED, "{'m.weight_packed':{'dtype':'I32','shape':[5,8],'data_offsets':[0,160]}}", 160,
            format, "does not hold [4, 64] codes");
    refuses(COMPRESSED, PACKED ",'m.weight_scale':{'dtype':'BF16','shape':[4,3],'data_offsets':[128,152]}}",
            152, format, "m.weight_scale has 3 groups, which do not divide rows of 64");
    refuses(COMPRESSED, PACKED ",'m.weight_scale':{'dtype':'BF16','shape':[4,4],'data_offsets':[128,160]}}",
            160, unsupported, "groups of 16, expected groups of a multiple of 32");
    refuses(COMPRESSED, PACKED ",'m.weight_scale':{'dtype':'BF16','shape':[2,2],'data_offsets':[128,136]}}",
            136, format, "m.weight_scale has shape [2, 2], expected [4, 2]");
    refuses(COMPRESSED,
            PACKED SCALE ",'m.weight_zero_point':{'dtype':'I32','shape':[4,2],'data_offsets':[144,176]}}",
            176, format, "m.weight_zero_point has shape [4, 2], expected [1, 2]");
    refuses(COMPRESSED,
            PACKED SCALE ",'m.weight_g_idx':{'dtype':'I32','shape':[64],'data_offsets':[144,400]}}", 400,
            unsupported, "m.weight_g_idx orders the columns");
    refuses(COMPRESSED,
            PACKED SCALE ",'m.weight_shape':{'dtype':'I64','shape':[2],'data_offsets':[144,160]}}", 160,
            format, "m.weight_shape says [0, 0], expected [4, 64]");
}

/* Zero points of 4-bit codes with one scale in all groups. */
typedef struct zero_case {
    uint16_t scale; /* bfloat16 or float16 */
    const char *dtype;
    uint8_t zeros[ROWS]; /* of the rows */
    const char *format;
} zero_case;

static void check_zero_case(const zero_case *c) {
    char header[1024], text[GB_FORMAT_TEXT];
    snprintf(header, sizeof header,
             PACKED ",'m.weight_scale':{'dtype':'%s','shape':[4,2],'data_offsets':[128,144]},"
                    "'m.weight_zero_point':{'dtype':'I32','shape':[1,2],'data_offsets':[144,152]}}",
             c->dtype);
    packed_fixture f = open_packed_fixture(COMPRESSED, header, 152);
    uint8_t *data = f.bytes + f.data_begin;
    for (int i = 0; i < 128; i++)
        data[i] = (uint8_t)(37 * i + 5);
    for (int i = 0; i < 2 * ROWS; i++)
        memcpy(data + 128 + 2 * i, &c->scale, 2);
    for (int row = 0; row < ROWS; row++)
        for (int group = 0; group < 2; group++)
            gb_put_code(data + 144 + 4 * group, 4, (uint64_t)row, c->zeros[row]);
    gb_packed packed;
    bool is_found;
    gumbel_error error;
    assert_ok(find(&f, &packed, &is_found, &error), &error);
    assert_true(is_found);
    assert_string_equal(gb_format_text(&packed.format, text), c->format);

    uint8_t planes_bytes[1024] = {0};
    gb_planes planes;
    assert_true(gb_format_planes(&packed.format, 1, COLUMNS, &planes) && planes.size <= sizeof planes_bytes);
    float scale = strcmp(c->dtype, "BF16") == 0 ? gb_float_from_bf16(c->scale) : gb_float_from_f16(c->scale);
    for (int row = 0; row < ROWS; row++) {
        float values[COLUMNS];
        gb_imported_row to = {.codes = planes_bytes + planes.codes.offset,
                              .scales = planes_bytes + planes.scales.offset,
                              .biases = planes_bytes + planes.biases.offset};
        gb_packed_rows(&packed, (uint64_t)row, 1, &to);
        gb_format_dequantize(&packed.format, &planes, planes_bytes, 0, 0, COLUMNS, values);
        for (int i = 0; i < COLUMNS; i++) {
            int code = (int)gb_get_code(data + 32 * row, 4, (uint64_t)i);
            float expected = (float)(code - (int)c->zeros[row]) * scale;
            assert_memory_equal(&values[i], &expected, sizeof expected);
        }
    }
    close_packed_fixture(&f);
}

static void holds_every_zero_point(void **state) {
    (void)state;
    static const zero_case cases[] = {
        {0x3dffu, "BF16", {8, 8, 8, 8}, "int4 g32 bf16"},
        {0x3d80u, "BF16", {0, 7, 9, 15}, "int4 g32 bf16+bias"}, /* a power of two */
        {0x3dffu, "BF16", {0, 7, 9, 15}, "int4 g32 f16+bias"},
        {0x3dfdu, "BF16", {1, 5, 11, 13}, "int4 g32 f16+bias"},
        {0x00ffu, "BF16", {0, 7, 9, 15}, "int5 g32 bf16"}, /* too small for float16 */
        {0x2fffu, "F16", {0, 7, 9, 15}, "int5 g32 f16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_zero_case(&cases[i]);
}

/* Two experts of four rows, of which the second one is described by second. */
static void check_stack(const char *second, gumbel_status expected, const char *part) {
    char header[1024];
    snprintf(header, sizeof header,
             "{'m.experts.0.up.weight_packed':{'dtype':'I32','shape':[4,8],'data_offsets':[0,128]},"
             "'m.experts.0.up.weight_scale':{'dtype':'BF16','shape':[4,2],'data_offsets':[128,144]}%s}",
             second);
    packed_fixture f = open_packed_fixture(COMPRESSED, header, 288);
    gb_packed packed;
    bool is_found = false;
    gumbel_error error;
    const int64_t dims[] = {2, ROWS, COLUMNS};
    assert_true(gb_packed_has(&f.packing, f.checkpoint, "m.switch_mlp.up.weight"));
    gumbel_status status = gb_packed_find(&f.packing, f.checkpoint, "m.switch_mlp.up.weight", 3, dims,
                                          &packed, &is_found, &error);
    if (expected == GUMBEL_OK) {
        assert_ok(status, &error);
        assert_true(is_found);
        assert_int_equal(packed.rows, 2 * ROWS);
    } else {
        assert_fails(status, expected, &error, part);
    }
    gb_packed_free(&packed);
    close_packed_fixture(&f);
}

static void stacks_single_experts(void **state) {
    (void)state;
    check_stack(",'m.experts.1.up.weight_packed':{'dtype':'I32','shape':[4,8],'data_offsets':[144,272]},"
                "'m.experts.1.up.weight_scale':{'dtype':'BF16','shape':[4,2],'data_offsets':[272,288]}",
                GUMBEL_OK, NULL);
    check_stack("", GUMBEL_ERROR_FORMAT, "tensor m.experts.1.up.weight is missing or not packed");
    check_stack(",'m.experts.1.up.weight_packed':{'dtype':'I32','shape':[4,8],'data_offsets':[144,272]},"
                "'m.experts.1.up.weight_scale':{'dtype':'F16','shape':[4,2],'data_offsets':[272,288]}",
                GUMBEL_ERROR_UNSUPPORTED, "m.experts.1.up.weight_packed is not packed as expert 0's is");
    check_stack(",'m.experts.1.up.weight_packed':{'dtype':'I32','shape':[4,8],'data_offsets':[144,272]},"
                "'m.experts.1.up.weight_scale':{'dtype':'BF16','shape':[4,1],'data_offsets':[272,280]}",
                GUMBEL_ERROR_UNSUPPORTED, "m.experts.1.up.weight_packed is not packed as expert 0's is");
}

/* ---- torchao ------------------------------------------------------------------------------------------- */

#define ABOUT(kind, block)                                                                                   \
    "'__metadata__':{'m.weight':'{\\'_type\\':\\'" kind "\\',\\'_data\\':{\\'block_size\\':" block "}}'}"
#define INT4_DATA "'m._weight_qdata':{'dtype':'U8','shape':[4,32],'data_offsets':[0,128]}"

static void refuses_bad_torchao(void **state) {
    (void)state;
    const gumbel_status format = GUMBEL_ERROR_FORMAT, unsupported = GUMBEL_ERROR_UNSUPPORTED;
    refuses(SILENT, "{" INT4_DATA "}", 128, format, "no metadata of the file says of which kind m.weight is");
    refuses(SILENT, "{'__metadata__':{'m.weight':'[1'}," INT4_DATA "}", 128, format, "no metadata");
    refuses(SILENT, "{" ABOUT("Float8Tensor", "[1,32]") "," INT4_DATA "}", 128, unsupported,
            "part of torchao's Float8Tensor, which is not supported");
    refuses(SILENT, "{" ABOUT("Int4Tensor", "[1,32]") "," INT4_DATA "}", 128, format,
            "tensor m._weight_scale is missing");
    refuses(SILENT, "{" ABOUT("Int4Tensor", "[32,1]") "," INT4_DATA "}", 128, format,
            "has a block size other");
    refuses(SILENT, "{" ABOUT("Int4Tensor", "[1,24]") "," INT4_DATA "}", 128, format,
            "has a block size other");
    refuses(SILENT, "{" ABOUT("Int4Tensor", "[1,-32]") "," INT4_DATA "}", 128, format, "block size");
    refuses(SILENT, "{" ABOUT("Int4Tensor", "\\'x\\'") "," INT4_DATA "}", 128, format, "block size");
    refuses(SILENT, "{" ABOUT("IntxUnpackedToInt8Tensor", "[1,32]") "," INT4_DATA "}", 128, format,
            "m._weight_qdata has dtype U8, expected I8");
    refuses(SILENT,
            "{" ABOUT("Int4Tensor", "[1,32]") ",'m._weight_qdata':{'dtype':'U8','shape':[4,64],"
                                              "'data_offsets':[0,256]}}",
            256, format, "has shape [4, 64], expected [4, 32]");
    refuses(SILENT,
            "{" ABOUT("Int4Tensor",
                      "[1,32]") "," INT4_DATA
                                ",'m._weight_scale':{'dtype':'BF16','shape':[4,2],'data_offsets':[128,144]}}",
            144, format, "m._weight_scale has shape [4, 2], expected [2, 4]");
}

static void refuses_fractional_zero_points(void **state) {
    (void)state;
    packed_fixture f = open_packed_fixture(
        SILENT,
        "{" ABOUT("Int4Tensor",
                  "[1,32]") "," INT4_DATA
                            ",'m._weight_scale':{'dtype':'BF16','shape':[2,4],'data_offsets':[128,144]},"
                            "'m._weight_zero_point':{'dtype':'BF16','shape':[2,4],'data_offsets':[144,160]}}",
        160);
    for (int i = 0; i < 8; i++) {
        const uint16_t scale = 0x3dff, zero = 0x40ef; /* 7.46875 */
        memcpy(f.bytes + f.data_begin + 128 + 2 * i, &scale, 2);
        memcpy(f.bytes + f.data_begin + 144 + 2 * i, &zero, 2);
    }
    gb_packed packed;
    bool is_found;
    gumbel_error error;
    assert_fails(find(&f, &packed, &is_found, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "m._weight_scale and its zero points would be rounded");
    close_packed_fixture(&f);
}

static void leaves_other_tensors(void **state) {
    (void)state;
    static const char *const configs[] = {MLX, COMPRESSED, SILENT};
    for (size_t i = 0; i < 3; i++) {
        packed_fixture f = open_packed_fixture(
            configs[i], "{'m.weight':{'dtype':'F32','shape':[4,64],'data_offsets':[0,1024]}}", 1024);
        gb_packed packed;
        bool is_found = true;
        gumbel_error error;
        assert_ok(find(&f, &packed, &is_found, &error), &error);
        assert_false(is_found);
        close_packed_fixture(&f);
    }
}

/* ---- MLX's modes of floats ------------------------------------------------------------------------------
 */

static const char NVFP4[] = "{\"quantization\":{\"bits\":4,\"group_size\":16,\"mode\":\"nvfp4\"}}";
static const char MXFP8[] = "{\"quantization\":{\"bits\":8,\"group_size\":32,\"mode\":\"mxfp8\",\"m\":true}}";

/* Of E4M3, with NaN for its two codes that are no numbers. */
static double e4m3_number(uint8_t code) {
    const int exponent = code >> 3 & 15, fraction = code & 7;
    const double magnitude = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    return (code & 127) == 127 ? NAN : code & 128 ? -magnitude : magnitude;
}

static double e2m1_number(uint32_t code) {
    static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

/* Every scale that is a number, 16 at a time. */
static void check_nvfp4(uint8_t first_scale) {
    packed_fixture f =
        open_packed_fixture(NVFP4,
                            "{'m.weight':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]},"
                            "'m.scales':{'dtype':'U8','shape':[4,4],'data_offsets':[128,144]}}",
                            144);
    uint8_t *data = f.bytes + f.data_begin, bytes[512] = {0};
    gb_packed packed;
    gb_planes planes;
    bool is_found;
    gumbel_error error;
    for (int i = 0; i < 128; i++)
        data[i] = (uint8_t)(37 * i + 5);
    for (int i = 0; i < 16; i++)
        data[128 + i] = ((first_scale + i) & 127) == 127 ? 0 : (uint8_t)(first_scale + i);
    assert_ok(find(&f, &packed, &is_found, &error), &error);
    assert_true(is_found && packed.format.bits == 4 && packed.format.group == 16);
    assert_true(gb_format_planes(&packed.format, 1, COLUMNS, &planes) && planes.size <= sizeof bytes);
    for (int row = 0; row < ROWS; row++) {
        float values[COLUMNS];
        const gb_imported_row to = {.codes = bytes + planes.codes.offset,
                                    .scales = bytes + planes.scales.offset};
        gb_packed_rows(&packed, (uint64_t)row, 1, &to);
        gb_format_dequantize(&packed.format, &planes, bytes, 0, 0, COLUMNS, values);
        for (int i = 0; i < COLUMNS; i++)
            assert_true((double)values[i] == e2m1_number(gb_get_code(data + 32 * row, 4, (uint64_t)i)) *
                                                 e4m3_number(data[128 + 4 * row + i / 16]));
    }
    gb_packed_free(&packed);
    close_packed_fixture(&f);
}

static void reads_nvfp4_of_mlx(void **state) {
    (void)state;
    for (int first = 0; first < 256; first += 16)
        check_nvfp4((uint8_t)first);
}

static packed_fixture open_mxfp8(uint8_t first_code, uint8_t exponent) {
    packed_fixture f =
        open_packed_fixture(MXFP8,
                            "{'m.weight':{'dtype':'U32','shape':[4,16],'data_offsets':[0,256]},"
                            "'m.scales':{'dtype':'U8','shape':[4,2],'data_offsets':[256,264]}}",
                            264);
    for (int i = 0; i < 256; i++)
        f.bytes[f.data_begin + (size_t)i] = (uint8_t)(first_code + i);
    for (int i = 0; i < 8; i++)
        f.bytes[f.data_begin + 256 + (size_t)i] = (uint8_t)(exponent + i);
    return f;
}

static void check_mxfp8(uint8_t first_code, uint8_t exponent) {
    packed_fixture f = open_mxfp8(first_code, exponent);
    const uint8_t *data = f.bytes + f.data_begin;
    const int64_t dims[] = {ROWS, COLUMNS};
    gb_fp8_found found;
    gb_packed packed;
    bool is_found;
    gumbel_error error;
    assert_ok(find(&f, &packed, &is_found, &error), &error);
    assert_true(!is_found && !gb_packed_has_any(&f.packing, f.checkpoint));
    assert_ok(gb_fp8_find(&f.packing, f.checkpoint, "m.weight", dims, &found, &is_found, &error), &error);
    assert_true(is_found);
    const gb_stacked_bytes codes = {.parts = &found.matrix.codes};
    for (int row = 0; row < ROWS; row++) {
        float values[COLUMNS];
        gb_fp8_read(&(gb_fp8_tensors){&found.matrix, 1}, &codes, COLUMNS, (uint64_t)row, 0, COLUMNS, values);
        for (int i = 0; i < COLUMNS; i++) {
            const double wide = ldexp(e4m3_number(data[64 * row + i]), data[256 + 2 * row + i / 32] - 127);
            const float expected = gb_float_from_bf16(gb_bf16_from_float((float)wide));
            assert_true(values[i] == expected || (isnan(values[i]) && isnan(expected)));
        }
    }
    close_packed_fixture(&f);
}

static void reads_mxfp8_of_mlx(void **state) {
    (void)state;
    for (int exponent = 0; exponent < 248; exponent += 8)
        check_mxfp8((uint8_t)(7 * exponent), (uint8_t)exponent);
}

static void refuses_bad_modes_of_floats(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{'m.weight':{'dtype':'U32','shape':[4,16],'data_offsets':[0,256]},"
         "'m.scales':{'dtype':'U8','shape':[4,4],'data_offsets':[256,272]}}",
         "tensor m.scales has shape [4, 4], expected [4, 2]"},
        {"{'m.weight':{'dtype':'U32','shape':[4,17],'data_offsets':[0,272]},"
         "'m.scales':{'dtype':'U8','shape':[4,2],'data_offsets':[272,280]}}",
         "tensor m.weight has shape [4, 17], expected [4, 16]"},
        {"{'m.weight':{'dtype':'U32','shape':[4,16],'data_offsets':[0,256]}}", "tensor m.scales is missing"}};
    static const size_t sizes[] = {272, 280, 256};
    const int64_t dims[] = {ROWS, COLUMNS};
    for (size_t i = 0; i < 2; i++) {
        packed_fixture f = open_packed_fixture(MXFP8, cases[i][0], sizes[i]);
        gb_fp8_found found;
        bool is_found;
        gumbel_error error;
        assert_fails(gb_fp8_find(&f.packing, f.checkpoint, "m.weight", dims, &found, &is_found, &error),
                     GUMBEL_ERROR_FORMAT, &error, cases[i][1]);
        close_packed_fixture(&f);
    }
    refuses(MXFP8, cases[2][0], sizes[2], GUMBEL_ERROR_FORMAT, cases[2][1]);
    packed_fixture f =
        open_packed_fixture(NVFP4,
                            "{'m.weight':{'dtype':'U32','shape':[4,8],'data_offsets':[0,128]},"
                            "'m.scales':{'dtype':'U8','shape':[4,4],'data_offsets':[128,144]}}",
                            144);
    gb_packed packed;
    bool is_found;
    gumbel_error error;
    f.bytes[f.data_begin + 135] = 0x7f;
    assert_fails(find(&f, &packed, &is_found, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "tensor m.scales and its zero points would be rounded: expected finite scales");
    close_packed_fixture(&f);
}

/* ---- MXFP4 --------------------------------------------------------------------------------------------- */

enum { EXPERTS = 2 };

static const char MXFP4[] = "{\"quantization_config\":{\"quant_method\":\"mxfp4\"}}";

/* The number that bits of E2M1 and an exponent stand for. */
static float mx_number(uint32_t code, uint8_t exponent) {
    static const float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const float magnitude = ldexpf(magnitudes[code & 7], (int)exponent - 127);
    return code & 8 ? -magnitude : magnitude;
}

static uint8_t exponent_of(int row, int group) {
    static const uint8_t exponents[] = {0, 1, 2, 100, 127, 130, 253, 254};
    return exponents[(row * 2 + group) % 8];
}

/* [EXPERTS, ROWS, COLUMNS] called name; rows are in turns where is_in_turns. */
static void check_mxfp4(const char *name, bool is_in_turns) {
    char header[512];
    snprintf(header, sizeof header,
             "{'%s_blocks':{'dtype':'U8','shape':[2,4,2,16],'data_offsets':[0,256]},"
             "'%s_scales':{'dtype':'U8','shape':[2,4,2],'data_offsets':[256,272]}}",
             name, name);
    packed_fixture f = open_packed_fixture(MXFP4, header, 272);
    uint8_t *data = f.bytes + f.data_begin, planes_bytes[512] = {0};
    for (int i = 0; i < 256; i++)
        data[i] = (uint8_t)(37 * i + 5);
    for (int row = 0; row < EXPERTS * ROWS; row++)
        for (int group = 0; group < 2; group++)
            data[256 + 2 * row + group] = exponent_of(row, group);
    const int64_t dims[] = {EXPERTS, ROWS, COLUMNS};
    gb_packed packed;
    gb_planes planes;
    bool is_found;
    gumbel_error error;
    assert_ok(gb_packed_find(&f.packing, f.checkpoint, name, 3, dims, &packed, &is_found, &error), &error);
    assert_true(is_found && gb_packed_has(&f.packing, f.checkpoint, name));
    assert_true(gb_format_planes(&packed.format, 1, COLUMNS, &planes) && planes.size <= sizeof planes_bytes);
    for (int row = 0; row < EXPERTS * ROWS; row++) {
        const int expert = row / ROWS, r = row % ROWS;
        const int from = expert * ROWS + (!is_in_turns ? r : r < 2 ? 2 * r : 2 * (r - 2) + 1);
        const gb_imported_row to = {.codes = planes_bytes + planes.codes.offset,
                                    .scales = planes_bytes + planes.scales.offset};
        float values[COLUMNS];
        gb_packed_rows(&packed, (uint64_t)row, 1, &to);
        gb_format_dequantize(&packed.format, &planes, planes_bytes, 0, 0, COLUMNS, values);
        for (int i = 0; i < COLUMNS; i++)
            assert_true(values[i] ==
                        mx_number(gb_get_code(data + 32 * from, 4, (uint64_t)i), exponent_of(from, i / 32)));
    }
    gb_packed_free(&packed);
    close_packed_fixture(&f);
}

static void reads_mxfp4(void **state) {
    (void)state;
    check_mxfp4("m.gate_up_proj", true);
    check_mxfp4("m.down_proj", false);
}

static void refuses_bad_mxfp4(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t size;
        gumbel_status status;
        const char *part;
    } cases[] = {
        {"{'m.x_proj_blocks':{'dtype':'U8','shape':[2,4,2,16],'data_offsets':[0,256]}}", 256,
         GUMBEL_ERROR_FORMAT, "tensor m.x_proj_scales is missing"},
        {"{'m.x_proj_blocks':{'dtype':'U8','shape':[2,4,32],'data_offsets':[0,256]}}", 256,
         GUMBEL_ERROR_FORMAT, "tensor m.x_proj_blocks has shape [2, 4, 32], expected [2, 4, 2, 16]"},
        {"{'m.x_proj_blocks':{'dtype':'I8','shape':[2,4,2,16],'data_offsets':[0,256]}}", 256,
         GUMBEL_ERROR_FORMAT, "does not hold experts' rows of 64 weights in groups of 32"},
        {"{'m.x_proj_blocks':{'dtype':'U8','shape':[2,4,2,16],'data_offsets':[0,256]},"
         "'m.x_proj_scales':{'dtype':'U8','shape':[2,4,2],'data_offsets':[256,272]}}",
         272, GUMBEL_ERROR_UNSUPPORTED, "expected finite scales"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        packed_fixture f = open_packed_fixture(MXFP4, cases[i].header, cases[i].size);
        const int64_t dims[] = {EXPERTS, ROWS, COLUMNS};
        gb_packed packed;
        bool is_found;
        gumbel_error error;
        if (cases[i].size > 256)
            f.bytes[f.data_begin + 260] = 255;
        assert_fails(
            gb_packed_find(&f.packing, f.checkpoint, "m.x_proj", 3, dims, &packed, &is_found, &error),
            cases[i].status, &error, cases[i].part);
        gb_packed_free(&packed);
        close_packed_fixture(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_mlx),
        cmocka_unit_test(refuses_bad_sizes_by_name),
        cmocka_unit_test(takes_wide_scales_only_where_exact),
        cmocka_unit_test(refuses_bad_compressed),
        cmocka_unit_test(holds_every_zero_point),
        cmocka_unit_test(stacks_single_experts),
        cmocka_unit_test(refuses_bad_torchao),
        cmocka_unit_test(refuses_fractional_zero_points),
        cmocka_unit_test(leaves_other_tensors),
        cmocka_unit_test(reads_nvfp4_of_mlx),
        cmocka_unit_test(reads_mxfp8_of_mlx),
        cmocka_unit_test(refuses_bad_modes_of_floats),
        cmocka_unit_test(reads_mxfp4),
        cmocka_unit_test(refuses_bad_mxfp4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
