/* SPDX-License-Identifier: Apache-2.0
 *
 * The chains of a layer's small ops in one launch: what is kept has the bits of the ops' own kernels, and so
 * has what is prepared for the product that follows.
 */
#include "cuda/device_memory.h"
#include "run/cuda/activations.h"
#include "run/math.h"

enum { MOST_TENSORS = 32, MOST_CALLS = 8 };

/* Ops and the tensors that they take and make. */
typedef struct chain {
    gb_node nodes[MOST_CALLS];
    gb_cuda_call calls[MOST_CALLS];
    bool is_kept[MOST_CALLS];
    uint32_t count;
    gb_cuda_tensor tensors[MOST_TENSORS];
    uint32_t tensor_count;
    gb_cuda_tensor product; /* the weight that the last result is prepared for */
    gb_cuda_tensor as;      /* the last result's bytes in the shape that it takes */
    size_t rows;
    gb_dtype weights;
    uint64_t random;
} chain;

static gb_cuda_tensor *add_tensor(chain *c, gb_cuda_tensor tensor) {
    assert_true(c->tensor_count < MOST_TENSORS);
    c->tensors[c->tensor_count] = tensor;
    return &c->tensors[c->tensor_count++];
}

static gb_cuda_tensor *random_floats(chain *c, int32_t rank, size_t a, size_t b, size_t width) {
    const size_t count = a * b * width;
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = 3 * next_float(&c->random);
    gb_cuda_tensor *made = add_tensor(c, device_tensor(GB_F32, values, rank, a, b, width));
    free(values);
    return made;
}

/* [rows, width], or with parts [rows, parts, width]. */
static gb_cuda_tensor *rows_of(chain *c, size_t parts, size_t width) {
    return parts ? random_floats(c, 3, c->rows, parts, width) : random_floats(c, 2, c->rows, width, 1);
}

static gb_cuda_tensor *norm_weight(chain *c, size_t width) {
    if (c->weights == GB_F32)
        return random_floats(c, 1, width, 1, 1);
    uint16_t *values = malloc(width * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < width; i++)
        values[i] = gb_bf16_from_float(next_float(&c->random));
    gb_cuda_tensor *made = add_tensor(c, device_tensor(GB_BF16, values, 1, width, 1, 1));
    free(values);
    return made;
}

/* The op's result, of the shape [rows, a] or [rows, a, b]. */
static gb_cuda_tensor *add_op(chain *c, gb_op op, gb_cuda_tensor *x, gb_cuda_tensor *y, size_t a, size_t b) {
    assert_true(c->count < MOST_CALLS);
    gb_cuda_tensor *made = add_tensor(c, device_tensor(GB_F32, NULL, b ? 3 : 2, c->rows, a, b ? b : 1));
    c->nodes[c->count] = (gb_node){.op = op};
    c->calls[c->count] = (gb_cuda_call){.node = &c->nodes[c->count], .operands = {x, y}, .results = {made}};
    c->count++;
    return made;
}

static gb_cuda_tensor *same_shape(chain *c, gb_op op, gb_cuda_tensor *x, gb_cuda_tensor *y) {
    return add_op(c, op, x, y, x->dims[1], x->rank > 2 ? x->dims[2] : 0);
}

static gb_cuda_tensor *keep(chain *c, gb_cuda_tensor *made) {
    c->is_kept[c->count - 1] = true;
    return made;
}

static gb_cuda_tensor *norm(chain *c, gb_cuda_tensor *x, bool has_weight) {
    gb_cuda_tensor *weight = has_weight ? norm_weight(c, x->dims[x->rank - 1]) : NULL;
    gb_cuda_tensor *made = same_shape(c, GB_OP_RMS_NORM, x, weight);
    gb_node *node = &c->nodes[c->count - 1];
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_EPSILON, GB_ATTRIBUTE_FLOAT, {.f = 1e-6}};
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_WEIGHT_OFFSET, GB_ATTRIBUTE_FLOAT, {.f = 1}};
    return made;
}

static gb_cuda_tensor *slice(chain *c, gb_cuda_tensor *x, size_t start, size_t width) {
    gb_cuda_tensor *made = x->rank > 2 ? add_op(c, GB_OP_SLICE, x, NULL, x->dims[1], width)
                                       : add_op(c, GB_OP_SLICE, x, NULL, width, 0);
    gb_node *node = &c->nodes[c->count - 1];
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_START, GB_ATTRIBUTE_INT, {.i = (int64_t)start}};
    return made;
}

typedef struct rotary {
    gb_cuda_tensor *positions, *frequencies;
    size_t pair_offset;
} rotary;

static rotary make_rotary(chain *c, size_t pairs, size_t pair_offset) {
    int32_t positions[64];
    assert_true(c->rows <= 64);
    for (size_t i = 0; i < c->rows; i++)
        positions[i] = (int32_t)(next_random(&c->random) % 5000);
    return (rotary){add_tensor(c, device_tensor(GB_I32, positions, 1, c->rows, 1, 1)),
                    random_floats(c, 1, pairs, 1, 1), pair_offset};
}

static gb_cuda_tensor *rotate(chain *c, const rotary *r, gb_cuda_tensor *x) {
    gb_cuda_tensor *made = same_shape(c, GB_OP_ROPE, x, r->positions);
    c->calls[c->count - 1].operands[2] = r->frequencies;
    gb_node *node = &c->nodes[c->count - 1];
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_PAIR_OFFSET, GB_ATTRIBUTE_INT, {.i = (int64_t)r->pair_offset}};
    return made;
}

/* The result is prepared in bytes for a product of rows of that many columns, or where the group is 0 as
 * bfloat16. */
static void prepare_for(chain *c, gb_cuda_tensor *made, size_t columns, uint32_t group) {
    c->product = (gb_cuda_tensor){.takes_bytes = group > 0, .format = {.group = group}};
    c->as = (gb_cuda_tensor){.data = made->data, .dtype = GB_F32, .rank = 2};
    c->as.dims[0] = gb_cuda_elements(made) / columns;
    c->as.dims[1] = columns;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->calls[i].results[0] == made) {
            c->calls[i].prepares = true;
            c->calls[i].prepares_as = &c->as;
            c->calls[i].prepares_for = &c->product;
        }
}

/* ---- The chains ---------------------------------------------------------------------------------------- */

/* Queries, keys and values of attention: heads of that size, of which `pairs` elements are turned. */
static void attention_heads(chain *c, size_t heads, size_t kv_heads, size_t size, size_t pairs,
                            size_t offset) {
    const rotary r = make_rotary(c, pairs, offset);
    keep(c, rotate(c, &r, norm(c, rows_of(c, heads, size), true)));
    keep(c, rotate(c, &r, norm(c, rows_of(c, kv_heads, size), true)));
    keep(c, norm(c, rows_of(c, kv_heads, size), false));
}
static void heads_of_256(chain *c) {
    attention_heads(c, 32, 16, 256, 128, 128);
}
static void heads_of_512(chain *c) {
    attention_heads(c, 32, 4, 512, 64, 256);
}
static void heads_of_128(chain *c) {
    attention_heads(c, 3, 1, 128, 64, 64);
}
static void heads_of_64(chain *c) {
    attention_heads(c, 5, 2, 64, 32, 32);
}

/* Queries stand beside their gates. */
static void gated_heads(chain *c) {
    const rotary r = make_rotary(c, 32, 32);
    keep(c, rotate(c, &r, norm(c, slice(c, rows_of(c, 16, 512), 0, 256), true)));
    keep(c, rotate(c, &r, norm(c, rows_of(c, 2, 256), true)));
}

static void turned_heads(chain *c) {
    const rotary r = make_rotary(c, 64, 64);
    keep(c, rotate(c, &r, rows_of(c, 7, 128)));
    keep(c, rotate(c, &r, rows_of(c, 1, 128)));
}

static gb_cuda_tensor *gate(chain *c, gb_op activation, gb_cuda_tensor *x, gb_cuda_tensor *other) {
    return keep(c, same_shape(c, GB_OP_MULTIPLY, same_shape(c, activation, x, NULL), other));
}

static void gelu_gate(chain *c) {
    prepare_for(c, gate(c, GB_OP_GELU_TANH, rows_of(c, 0, 21504), rows_of(c, 0, 21504)), 21504, 64);
}
static void silu_gate(chain *c) {
    prepare_for(c, gate(c, GB_OP_SILU, rows_of(c, 0, 1408), rows_of(c, 0, 1408)), 1408, 128);
}
static void unprepared_gate(chain *c) {
    gate(c, GB_OP_SILU, rows_of(c, 0, 334), rows_of(c, 0, 334));
}

static gb_cuda_tensor *expert_gate(chain *c) {
    gb_cuda_tensor *both = rows_of(c, 8, 1024);
    gb_cuda_tensor *x = slice(c, both, 0, 512), *other = slice(c, both, 512, 512);
    return gate(c, GB_OP_SILU, x, other);
}
static void experts_gate(chain *c) {
    prepare_for(c, expert_gate(c), 512, 64);
}
/* The shared expert's is not prepared here. */
static void two_gates(chain *c) {
    gb_cuda_tensor *experts = expert_gate(c);
    gate(c, GB_OP_SILU, rows_of(c, 0, 512), rows_of(c, 0, 512));
    prepare_for(c, experts, 512, 64);
}

static void attention_gate(chain *c) {
    gb_cuda_tensor *x = slice(c, rows_of(c, 16, 512), 256, 256);
    gb_cuda_tensor *factor = same_shape(c, GB_OP_SIGMOID, x, NULL);
    gb_cuda_tensor *y = keep(c, same_shape(c, GB_OP_MULTIPLY, rows_of(c, 16, 256), factor));
    prepare_for(c, y, 4096, 64);
}

static void residual(chain *c) {
    gb_cuda_tensor *sum = keep(c, same_shape(c, GB_OP_ADD, rows_of(c, 0, 2048), rows_of(c, 0, 2048)));
    prepare_for(c, keep(c, norm(c, sum, true)), 2048, 64);
}
static void norms_around(chain *c) {
    gb_cuda_tensor *x = norm(c, rows_of(c, 0, 5376), true);
    gb_cuda_tensor *sum = keep(c, same_shape(c, GB_OP_ADD, rows_of(c, 0, 5376), x));
    prepare_for(c, keep(c, norm(c, sum, true)), 5376, 64);
}
static void norms_with_scale(chain *c) {
    gb_cuda_tensor *x = norm(c, rows_of(c, 0, 5376), true);
    gb_cuda_tensor *sum = same_shape(c, GB_OP_ADD, rows_of(c, 0, 5376), x);
    gb_cuda_tensor *scaled = keep(c, same_shape(c, GB_OP_SCALE, sum, random_floats(c, 1, 1, 1, 1)));
    prepare_for(c, keep(c, norm(c, scaled, true)), 5376, 128);
}

typedef struct chain_case {
    const char *name;
    void (*make)(chain *c);
} chain_case;

static const chain_case cases[] = {
    {"heads of 256", heads_of_256},
    {"heads of 512", heads_of_512},
    {"heads of 128", heads_of_128},
    {"heads of 64", heads_of_64},
    {"gated heads", gated_heads},
    {"turned heads", turned_heads},
    {"gelu gate", gelu_gate},
    {"silu gate", silu_gate},
    {"experts' gate", experts_gate},
    {"two gates", two_gates},
    {"attention's gate", attention_gate},
    {"unprepared gate", unprepared_gate},
    {"residual", residual},
    {"norms around", norms_around},
    {"norms with scale", norms_with_scale},
};

static void make_chain(chain *c, const chain_case *made, size_t rows, gb_dtype weights) {
    *c = (chain){.rows = rows, .weights = weights, .random = 11};
    made->make(c);
}

static void free_chain(chain *c) {
    for (uint32_t i = 0; i < c->tensor_count; i++)
        free_on_device(&c->tensors[i]);
}

/* ---- Against the ops one by one ------------------------------------------------------------------------ */

static gb_cuda_kernel kernel_of(gb_op op) {
    static const struct {
        gb_op op;
        gb_cuda_kernel kernel;
    } kernels[] = {
        {GB_OP_ADD, gb_cuda_add},     {GB_OP_MULTIPLY, gb_cuda_multiply},
        {GB_OP_SCALE, gb_cuda_scale}, {GB_OP_GELU_TANH, gb_cuda_gelu_tanh},
        {GB_OP_SILU, gb_cuda_silu},   {GB_OP_SIGMOID, gb_cuda_sigmoid},
        {GB_OP_SLICE, gb_cuda_slice}, {GB_OP_RMS_NORM, gb_cuda_rms_norm},
        {GB_OP_ROPE, gb_cuda_rope},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].op == op)
            return kernels[i].kernel;
    fail_msg("op %d", (int)op);
    return NULL;
}

typedef struct outcome {
    uint8_t *bytes; /* what is kept, and what is prepared */
    size_t size;
} outcome;

static outcome fetch_outcome(const chain *c, const gb_cuda_scratch *scratch, size_t prepared_bytes) {
    outcome made = {.size = prepared_bytes};
    for (uint32_t i = 0; i < c->count; i++)
        made.size += c->is_kept[i] ? gb_cuda_elements(c->calls[i].results[0]) * sizeof(float) : 0;
    made.bytes = malloc(made.size);
    assert_non_null(made.bytes);
    assert_cuda(cudaMemcpy(made.bytes, scratch->prepared, prepared_bytes, cudaMemcpyDeviceToHost));
    size_t at = prepared_bytes;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->is_kept[i]) {
            fetch_tensor(c->calls[i].results[0], made.bytes + at);
            at += gb_cuda_elements(c->calls[i].results[0]) * sizeof(float);
        }
    return made;
}

static outcome run_chain(const chain_case *which, size_t rows, gb_dtype weights, bool is_one_launch) {
    chain c;
    make_chain(&c, which, rows, weights);
    const gb_cuda_call *list[MOST_CALLS];
    const bool prepares = c.as.rank > 0;
    const size_t prepared_bytes =
        prepares ? gb_cuda_prepared_bytes(c.as.dims[0], c.as.dims[1], GB_QUANTIZED) : 0;
    void *zeros = calloc(1, prepared_bytes + 1);
    assert_non_null(zeros);
    gb_cuda_scratch scratch = {.prepared = device_copy(zeros, prepared_bytes + 1)};
    free(zeros);
    for (uint32_t i = 0; i < c.count; i++) {
        c.calls[i].scratch = &scratch;
        list[i] = &c.calls[i];
    }
    if (is_one_launch)
        gb_cuda_row_chain(list, c.is_kept, c.count);
    for (uint32_t i = 0; !is_one_launch && i < c.count; i++)
        kernel_of(c.nodes[i].op)(list[i]);
    const outcome made = fetch_outcome(&c, &scratch, prepared_bytes);
    assert_cuda(cudaFree(scratch.prepared));
    free_chain(&c);
    return made;
}

static void check_case(const chain_case *which, size_t rows, gb_dtype weights) {
    const outcome expected = run_chain(which, rows, weights, false);
    const outcome found = run_chain(which, rows, weights, true);
    assert_int_equal(expected.size, found.size);
    for (size_t i = 0; i < found.size; i++)
        if (expected.bytes[i] != found.bytes[i])
            fail_msg("%s, %zu rows: byte %zu of %zu is %u, expected %u", which->name, rows, i, found.size,
                     found.bytes[i], expected.bytes[i]);
    free(expected.bytes);
    free(found.bytes);
}

static void same_bits_as_alone(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case(&cases[i], 1, GB_BF16);
        check_case(&cases[i], 3, GB_F32);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_as_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
