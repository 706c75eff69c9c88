/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops that exist once per instruction set. Every set gives the same bits: sums whose lanes lie
 * along the summed dimension are 16 partial sums, lane l taking the elements l mod 16 in order, each product
 * rounded before it is added, the last 16 padded with zeros; then lanes l and l + 8 are added, l and l + 4,
 * l + 2, l + 1. No function allocates; all are thread-safe on different outputs. Outputs overlap no input
 * unless said so. Strides count elements.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_VECTOR_KERNELS_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_VECTOR_KERNELS_H

#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/format.h"

#include <stddef.h>
#include <stdint.h>

/* A weight in a format that is not dense. */
typedef struct gb_quantized_matrix {
    gb_format format;
    gb_planes planes;
    bool is_interleaved; /* in the packing of gb_packing_interleaved; otherwise canonical */
    const void *data;
} gb_quantized_matrix;

/* To 8 bits with a scale for each group or each row, or to bfloat16. */
typedef enum gb_rounding_kind { GB_ROUND_GROUPS, GB_ROUND_TOKENS, GB_ROUND_BFLOAT16 } gb_rounding_kind;

/* How inputs are rounded. */
typedef struct gb_rounding {
    gb_rounding_kind kind;
    size_t group;      /* inputs that share a scale; per token: that share a sum of codes */
    uint32_t rotation; /* per token: the block of the Hadamard transform before, or 0 */
} gb_rounding;

/* For a weight of that format with GB_ACTIVATION_INT8_PER_GROUP; per token with that rotation; and with
 * GB_ACTIVATION_BFLOAT16. */
gb_rounding gb_round_per_group(const gb_format *format);
gb_rounding gb_round_per_token(uint32_t rotation);
gb_rounding gb_round_to_bfloat16(void);

bool gb_rounding_equal(const gb_rounding *a, const gb_rounding *b);

/* Rows of x as 8-bit codes, once for all linears that read them: per group c and sx of linear_int8, per token
 * c and t of linear_exact. Or as bfloat16, with nothing but halves. */
typedef struct gb_activations {
    size_t rows, inputs;
    gb_rounding rounding;
    size_t group, groups; /* the rounding's group (the last one may have fewer inputs), and groups of a row */
    size_t stride;        /* from one row of codes or halves to the next: inputs, rounded up to 64 */
    uint16_t *halves;     /* [rows, stride], zeros past the inputs */
    int8_t *codes;        /* [rows, stride] c; those past the inputs are undefined */
    float *scales;        /* [rows, groups] sx; per token: [rows] t */
    float *sums;          /* [rows, groups] sx * (sum of c); per token: NULL */
    int32_t *code_sums;   /* [rows, groups] sum of c */
} gb_activations;

/* Bytes that activations of that size need in all; false on overflow. */
bool gb_activations_bytes(size_t rows, size_t inputs, const gb_rounding *rounding, uint64_t *bytes);

/* Places the arrays in memory of so many bytes, 64-byte aligned; they are filled by `quantize` or
 * `quantize_token`. */
gb_activations gb_place_activations(void *memory, size_t rows, size_t inputs, const gb_rounding *rounding);

/* Those of the rows from `row` on. */
gb_activations gb_activations_from(const gb_activations *activations, size_t row);

/* y[m * y_stride + o] = x row m . weight row o, each of `inputs` elements. With rows, token m has instead row
 * rows[m] of y and row rows[m] / x_reuse of x. */
typedef struct gb_linear {
    size_t tokens, inputs;
    const uint32_t *rows; /* [tokens], or NULL */
    uint32_t x_reuse;
    const float *x; /* for `linear` */
    size_t x_stride;
    const gb_activations *activations; /* for the other kinds of `linear`: x's rows */
    const void *weight;
    size_t weight_stride;
    gb_dtype dtype; /* of weight: f32, f16 or bf16 */
    float *y;
    size_t y_stride;
    const gb_quantized_matrix *quantized; /* or NULL; if given it takes the place of weight and dtype */
    size_t first_row;                     /* the row of quantized that is weight row 0 */
    size_t next_row;                      /* the one that the thread reads after this call, or GB_NO_ROW */
} gb_linear;

#define GB_NO_ROW SIZE_MAX

/* Inputs that share a scale in 8-bit activations, where the weight's rows have one scale each. */
enum { GB_INT8_ROW_GROUP = 128 };

enum { GB_LINEAR_SCRATCH = 704 * 1024 /* bytes, 64-byte aligned, content arbitrary */ };

/* Keys come in blocks that start at multiples of this position. */
enum { GB_ATTEND_BLOCK = 64, GB_ATTEND_QUERIES = 32 };

/* The keys or values of one kv head in one slot. */
typedef struct gb_cache_rows {
    const void *rows;  /* the head's elements of row 0; of q8 and q4 their codes */
    const void *room;  /* the same of the room's row 0; without a room unused */
    gb_dtype dtype;    /* f32, bf16, q8 or q4 */
    size_t stride;     /* from one row to the next; of q8 and q4 in bytes */
    size_t scales;     /* q8, q4: bytes from the head's codes of a row to their scales */
    size_t size;       /* elements of a head */
    uint32_t rotation; /* q8, q4: the block of the Hadamard transform of what was stored, or 0 */
} gb_cache_rows;

/* Some queries (of several heads and tokens) over the cache of one kv head in one slot; row r of the cache
 * holds the position that is r mod capacity, row r of the room position room_begin + r. y[q] = sum over j in
 * first[q] .. last[q] of softmax_j(scale * query[q] . key[j]) * value[j]: for each block of positions in turn
 * the running maximum m becomes that of its scores too, the running sum and y are multiplied by exp(m_before
 * - m), weights exp(score - m) are added to the sum (as 16 partial sums from the block's first key on) and
 * weighted values to y in the order of positions; at last y is divided by the sum. Codes count as the
 * elements that they stand for (tensor/cache_codes.h): the result has the bits of a cache of these in
 * float32. Where keys have a rotation b, each block of b elements of a query becomes gb_hadamard_scale(b) *
 * (H x), both steps rounded, and where values have one, so does y at the end. */
typedef struct gb_attend {
    size_t query_count; /* 1 .. GB_ATTEND_QUERIES */
    const float *query[GB_ATTEND_QUERIES];
    float *y[GB_ATTEND_QUERIES];
    size_t first[GB_ATTEND_QUERIES], last[GB_ATTEND_QUERIES];
    float sink[GB_ATTEND_QUERIES]; /* one more score, without a value; -INFINITY: none */
    gb_cache_rows keys, values;
    size_t capacity;   /* rows of the cache */
    size_t room_begin; /* positions from here on lie in the room; SIZE_MAX: none do */
    float scale;
} gb_attend;

/* Many queries of heads up to so long go through copies of keys and values in scratch, of so many bytes,
 * behind which rotated queries lie: bytes in all, 64-byte aligned, content arbitrary. */
enum {
    GB_ATTEND_PANEL_SIZE = 512,
    GB_ATTEND_COPIES = 320 * 1024,
    GB_ATTEND_SCRATCH = GB_ATTEND_COPIES + GB_ATTEND_QUERIES * GB_ATTEND_PANEL_SIZE * 4
};

/* One token's heads [heads, size]; see ops.def. */
typedef struct gb_rotation {
    const float *x;
    float *y;
    size_t heads, size;
    const float *frequencies;
    size_t frequency_count, pair_offset;
    float position, scale;
} gb_rotation;

/* What clamped_swiglu does beside a SwiGLU; see ops.def. */
typedef struct gb_swiglu_clamp {
    float alpha, limit;
} gb_swiglu_clamp;

/* Tokens of one slot through a causal convolution; see ops.def. x row -1 is tail's last row. Each sum goes
 * from the oldest x to the newest. */
typedef struct gb_conv {
    size_t tokens, channels, width; /* width 2 .. GB_MAX_CONV_WIDTH */
    const float *x;                 /* [tokens, channels] */
    const float *tail;              /* [width - 1, channels] */
    const void *weight;             /* [channels, width] */
    gb_dtype dtype;
    float *y; /* [tokens, channels] */
} gb_conv;

enum { GB_CONV_SCRATCH = 32 * 1024 /* bytes, 64-byte aligned, content arbitrary */ };

/* Tokens of one slot and one head through a gated delta net; see ops.def. Sums over d go in order, each
 * product rounded before it is added. */
typedef struct gb_delta {
    size_t tokens, key_size, value_size; /* D, E */
    const float *query, *key;            /* of the first token */
    size_t key_stride;                   /* from one token's to the next one's */
    const float *value;
    float *y;
    size_t value_stride;
    const float *decay, *beta;
    size_t gate_stride;
    float *memory;     /* [D, E], changed */
    bool is_corrected; /* what the key recalls is taken from the value */
    bool is_discarded; /* the change of the memory: it stays as it is; keys are GB_DELTA_DISCARDED at most */
} gb_delta;

/* Keys up to so long go through their tokens in scratch, of a discarded change up to the second number:
 * bytes, 64-byte aligned, content arbitrary. */
enum { GB_DELTA_COPIED = 256, GB_DELTA_DISCARDED = 2048, GB_DELTA_SCRATCH = GB_DELTA_DISCARDED * 256 };

typedef struct gb_vector_kernels {
    const char *name; /* of the instruction set */

    /* Rows first .. end - 1 of the weight. scratch: GB_LINEAR_SCRATCH bytes. */
    void (*linear)(const gb_linear *linear, size_t first, size_t end, void *scratch);

    /* Groups first .. end - 1 of one row x of activations. For each group g of the weight's format (of
     * GB_INT8_ROW_GROUP inputs, the last one perhaps fewer, where a row has one scale):
     *     sx = largest |x| / 127, one division; 0 where that is below 2^-126
     *     c = x / sx, rounded to the nearest integer, ties to even; 0 where sx is 0
     *     t = sx * (sum of c)
     * Where a group holds an infinity or a NaN sx is NaN, c is 0 and t is NaN. */
    void (*quantize)(const float *x, const gb_activations *to, size_t row, size_t first, size_t end);

    /* `linear` for a quantized weight with 8-bit activations. For each group g
     *     d = sum of c * (q - center), an integer, q the weight's codes
     * y begins at +0; for each g in the order of k, y = y + (sx * scale) * d, and then, with a format that
     * has biases, y = y + t * bias. Every product and sum is rounded to float32. */
    void (*linear_int8)(const gb_linear *linear, size_t first, size_t end, void *scratch);

    /* Row x of activations that are rounded per token, with rotation b:
     *     x becomes H x in every block of b inputs, if b is not 0: gb_hadamard of tensor/hadamard.h
     *     s = largest |x| / 127, one division; 0 where that is below 2^-126
     *     c = x / s, rounded to the nearest integer, ties to even; 0 where s is 0
     *     t = s * gb_hadamard_scale(b), or s where b is 0
     * Where the row holds an infinity or a NaN then, s and t are NaN and c is 0. scratch: GB_LINEAR_SCRATCH
     * bytes. */
    void (*quantize_token)(const float *x, const gb_activations *to, size_t row, void *scratch);

    /* `linear` for a weight of an integer format (gb_format_is_integer) with inputs rounded per token: with
     * w = (q - zero) * scale, or q - 128 of 8 bits, integers of 8 bits,
     *     d = sum over k of c * w, in int32, which does not overflow up to GB_MAX_INT32_INPUTS inputs
     *     y = ((float)d * t) * row scale
     * Every conversion and product is rounded to nearest even. The sum is exact, so its order is free. */
    void (*linear_exact)(const gb_linear *linear, size_t first, size_t end, void *scratch);

    /* Row x of activations in bfloat16, rounded to nearest even; what is below 2^-56 becomes 0. */
    void (*round_bfloat16)(const float *x, const gb_activations *to, size_t row);

    /* `linear` for a bfloat16 weight with inputs in bfloat16, of magnitudes that are 0 or at least 2^-56, so
     * that nothing here is subnormal, and whose products do not overflow: 16 partial sums, lane l taking the
     * pairs (2 i, 2 i + 1) with i mod 16 = l in order, of each pair the second product first, every sum
     * rounded, products exact; then the lanes as above. */
    void (*linear_bfloat16)(const gb_linear *linear, size_t first, size_t end, void *scratch);

    /* Inputs first .. first + count - 1 of a row as float32, with the bits of gb_format_dequantize. first is
     * a multiple of 8, and so is count unless codes are bytes. */
    void (*dequantize)(const gb_quantized_matrix *matrix, size_t row, size_t first, size_t count, float *to);

    /* Each block of `size` elements, a power of two that divides count, becomes gb_hadamard_scale(size) *
     * (H x), both steps rounded. */
    void (*hadamard)(float *x, size_t count, size_t size);

    /* scratch: GB_ATTEND_SCRATCH bytes. */
    void (*attend)(const gb_attend *attend, void *scratch);

    /* Stores elements in a row of a q8 or q4 cache. Each block of `rotation` of them (0: none) becomes
     * gb_hadamard_scale(rotation) * (H x), both steps rounded; then groups are rounded by gb_round_group of
     * tensor/cache_codes.h. count is a multiple of rotation and of GB_CODE_GROUP. */
    void (*store_codes)(const float *x, size_t count, gb_dtype dtype, uint32_t rotation, void *row);
    void (*rotate)(const gb_rotation *rotation);

    /* Channels first .. end - 1. scratch: GB_CONV_SCRATCH bytes. */
    void (*conv)(const gb_conv *conv, size_t first, size_t end, void *scratch);

    /* Columns first .. end - 1 of the memory; they do not depend on each other. scratch: GB_DELTA_SCRATCH
     * bytes. */
    void (*delta)(const gb_delta *delta, size_t first, size_t end, void *scratch);

    /* y = x * (scale / sqrt(sum of squares / count + epsilon)) * (weight_offset + weight); weight may be NULL
     * (the last factor is 1). */
    void (*rms_norm)(const float *x, size_t count, float epsilon, float scale, const void *weight,
                     gb_dtype weight_dtype, float weight_offset, float *y);

    /* y = x * (scale / sqrt(sum of squares + epsilon)) */
    void (*l2_normalize)(const float *x, size_t count, float epsilon, float scale, float *y);

    /* Element by element; y may be an input. */
    void (*add)(const float *a, const float *b, size_t count, float *y);
    void (*multiply)(const float *a, const float *b, size_t count, float *y);
    void (*scale)(const float *x, float factor, size_t count, float *y);
    void (*gelu_tanh)(const float *x, size_t count, float *y);
    void (*silu)(const float *x, size_t count, float *y);
    void (*clamped_swiglu)(const float *gate, const float *up, gb_swiglu_clamp clamp, size_t count, float *y);
    void (*sigmoid)(const float *x, size_t count, float *y);
    void (*softplus)(const float *x, size_t count, float *y);
    void (*relu_squared)(const float *x, size_t count, float *y);
    void (*soft_cap)(const float *x, float cap, size_t count, float *y);

    /* y += x * factor, the product rounded first. */
    void (*add_scaled)(const float *x, float factor, size_t count, float *y);

    /* y = exp(-(exp(a_log) * softplus(x + bias))) */
    void (*delta_decay)(const float *x, const float *a_log, const float *bias, size_t count, float *y);

    /* Adds up products of 8-bit numbers as fast as the set can, reading no memory but the nearest cache: the
     * limit of linear_int8. codes are 128 bytes below 16. Returns the sum modulo 2^32; *products is how many
     * there were, a multiple of rounds. */
    uint32_t (*peak)(const uint8_t *codes, uint64_t rounds, uint64_t *products);

    /* Adds up memory as words of 32 bits, as fast as it comes: the limit of decode. bytes is a multiple of
     * 256. */
    uint32_t (*read)(const void *memory, size_t bytes);

    /* From a float dtype to float32, exactly, and from float32 to f32 or bf16, rounded to nearest even. */
    void (*widen)(const void *from, gb_dtype dtype, size_t count, float *to);
    void (*narrow)(const float *from, gb_dtype dtype, size_t count, void *to);
} gb_vector_kernels;

/* The strongest set that this machine has, or the one of that name. Errors: ARGUMENT listing what there is.
 */
gumbel_status gb_choose_vector_kernels(const char *name, const gb_vector_kernels **kernels,
                                       gumbel_error *error);

/* The index-th set that this machine has, from weak to strong, or NULL past the last. */
const gb_vector_kernels *gb_available_vector_kernels(size_t index);

#endif
