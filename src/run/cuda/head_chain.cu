/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands between the products of an attention layer and its attention: queries', keys' and values' heads
 * are normalized and turned by their positions, each part of it where it is there. A head is a warp's and
 * stays in registers, its elements by lanes; sines and cosines, which all heads of a row share, are the
 * block's. Functions and orders of sums are those of row_chain.cu, and so are the bits.
 */
#include "run/cuda/device/row_chain.cuh"

using namespace gb_cuda;

enum { MOST_PARTS = 3, HEADS_OF_BLOCK = 4, MOST_PAIRS = 256 };

/* The heads of a tensor: [rows, heads, size]. */
struct head_part {
    const float *x;
    float *y;       /* in rows of heads * size */
    size_t stride;  /* of x, from row to row */
    unsigned outer; /* and from head to head */
    unsigned heads;
    bool has_norm, is_turned;
    normalization norm;
};

struct head_chain {
    head_part parts[MOST_PARTS];
    unsigned count;
    const float *frequencies; /* NULL: nothing is turned */
    const int32_t *positions;
    unsigned pairs, pair_offset;
};

/* The lane's elements lane, lane + 32, .. of the head as they are before they are turned. */
template <int EACH, typename Element>
__device__ static void normalize_head(const normalization &norm, const Element *weight, float x[EACH]) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++)
        sum += x[j] * x[j];
    const float factor = norm_factor(norm, warp_sum(sum));
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const float value = x[j] * factor;
        const float of_weight = sizeof(Element) == 2 ? low_bf16(weight[j]) : gb_float_from_bits(weight[j]);
        x[j] = norm.weight ? value * (norm.weight_offset + of_weight) : value;
    }
}

/* Pairs are PAIR * 32 elements apart. */
template <int EACH, int PAIR, typename Element>
static __global__ void __launch_bounds__(HEADS_OF_BLOCK *WARP) run_head_chain(GB_GRID_CONSTANT head_chain c) {
    __shared__ float2 turns[MOST_PAIRS];
    let_next_begin();
    const unsigned lane = threadIdx.x % WARP, row = blockIdx.y;
    unsigned head = blockIdx.x * HEADS_OF_BLOCK + threadIdx.x / WARP, number = 0;
    while (number < c.count - 1 && head >= c.parts[number].heads)
        head -= c.parts[number++].heads;
    const head_part &part = c.parts[number];
    const bool is_there = head < part.heads;
    Element weight[EACH] = {};
    float x[EACH];
    if (part.norm.weight)
#pragma unroll
        for (int j = 0; j < EACH; j++)
            weight[j] = static_cast<const Element *>(part.norm.weight)[lane + j * WARP];
    constexpr unsigned LINE = CACHE_LINE / sizeof(float);
    if (threadIdx.x * LINE < c.pairs)
        prefetch_line(c.frequencies + threadIdx.x * LINE);
    wait_for_earlier();
    const float *from = part.x + row * part.stride + (is_there ? head : 0) * part.outer + lane;
#pragma unroll
    for (int j = 0; j < EACH; j++)
        x[j] = from[j * WARP];
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < c.pairs; i += HEADS_OF_BLOCK * WARP) {
        float2 turn;
        gb_sin_cos((float)c.positions[row] * c.frequencies[i], &turn.x, &turn.y);
        turns[i] = turn;
    }
    if (part.has_norm)
        normalize_head<EACH>(part.norm, weight, x);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < PAIR; j++)
        if (part.is_turned && lane + j * WARP < c.pairs) {
            const float2 turn = turns[lane + j * WARP]; /* sine, cosine */
            const float a = x[j], b = x[j + PAIR];
            x[j] = a * turn.y - b * turn.x;
            x[j + PAIR] = b * turn.y + a * turn.x;
        }
    float *to = part.y + ((size_t)row * part.heads + head) * (EACH * WARP) + lane;
    if (is_there)
#pragma unroll
        for (int j = 0; j < EACH; j++)
            to[j * WARP] = x[j];
}

/* ---- Finding it in a chain ----------------------------------------------------------------------------- */

/* The heads that a view from outside the chain has, of that size each. */
static bool set_rows(head_part *part, const row_chain &chain, unsigned k, unsigned size) {
    const chain_op &op = chain.ops[k];
    const row_view &view = op.a;
    if (!is_made_before(chain, k, view) || (view.inner && view.inner != size))
        return false;
    part->x = view.data;
    part->stride = view.stride;
    part->outer = view.inner ? view.outer : size;
    part->heads = op.width / size;
    return true;
}

static bool set_turn(head_chain *c, head_part *part, const chain_op &op) {
    const float *frequencies = static_cast<const float *>(op.norm.weight);
    if (c->frequencies && (c->frequencies != frequencies || c->positions != op.positions ||
                           c->pairs != op.count || c->pair_offset != op.pair_offset))
        return false;
    c->frequencies = frequencies;
    c->positions = op.positions;
    c->pairs = op.count;
    c->pair_offset = op.pair_offset;
    part->is_turned = true;
    return op.count <= MOST_PAIRS;
}

static bool is_of_heads(const chain_op &op, unsigned size) {
    return !op.prepared.values &&
           ((op.kind == CHAIN_NORM && op.norm.size == size) || (op.kind == CHAIN_ROTATE && op.size == size));
}

/* Takes the ops from k on that are of one tensor's heads; the number of them, or 0. */
static unsigned take_part(head_chain *c, const row_chain &chain, unsigned k, unsigned size) {
    if (c->count == MOST_PARTS || !is_of_heads(chain.ops[k], size))
        return 0;
    head_part *part = &c->parts[c->count++];
    const chain_op &first = chain.ops[k];
    *part = head_part{};
    if (!set_rows(part, chain, k, size))
        return 0;
    part->y = first.kept;
    if (first.kind == CHAIN_ROTATE)
        return set_turn(c, part, first) && first.kept ? 1 : 0;
    part->has_norm = true;
    part->norm = first.norm;
    const bool goes_on = k + 1 < chain.count && chain.ops[k + 1].kind == CHAIN_ROTATE &&
                         is_of_heads(chain.ops[k + 1], size) && is_result(chain.ops[k + 1].a, first);
    if (!goes_on)
        return first.kept ? 1 : 0;
    part->y = chain.ops[k + 1].kept;
    return set_turn(c, part, chain.ops[k + 1]) && !first.kept && part->y ? 2 : 0;
}

template <int EACH, int PAIR>
static void launch(const head_chain &c, gb_dtype dtype, unsigned rows, cudaStream_t stream) {
    unsigned heads = 0;
    for (unsigned i = 0; i < c.count; i++)
        heads += c.parts[i].heads;
    auto kernel =
        dtype == GB_BF16 ? run_head_chain<EACH, PAIR, uint16_t> : run_head_chain<EACH, PAIR, uint32_t>;
    const dim3 grid(blocks_for(heads, HEADS_OF_BLOCK), rows);
    GB_LAUNCH(kernel, grid, HEADS_OF_BLOCK * WARP, 0, stream, c);
}

/* The one dtype of the norms' weights; of none, float32. */
static bool find_dtype(const head_chain &c, gb_dtype *dtype) {
    bool is_known = false;
    *dtype = GB_F32;
    for (unsigned i = 0; i < c.count; i++) {
        if (!c.parts[i].norm.weight)
            continue;
        if (is_known && c.parts[i].norm.dtype != *dtype)
            return false;
        *dtype = c.parts[i].norm.dtype;
        is_known = true;
    }
    return *dtype == GB_F32 || *dtype == GB_BF16;
}

bool gb_cuda_head_chain(const row_chain &chain, unsigned rows, cudaStream_t stream) {
    head_chain c = {};
    gb_dtype dtype;
    const chain_op &op = chain.ops[0];
    const unsigned size = op.kind == CHAIN_NORM ? (unsigned)op.norm.size : op.size;
    for (unsigned k = 0, taken; k < chain.count; k += taken)
        if ((taken = take_part(&c, chain, k, size)) == 0)
            return false;
    if (!find_dtype(c, &dtype))
        return false;
    const unsigned pair = c.frequencies ? c.pair_offset : size / 2;
    auto of_size = [&](unsigned of_head, unsigned of_pair) { return size == of_head && pair == of_pair; };
    if (of_size(64, 32))
        launch<2, 1>(c, dtype, rows, stream);
    else if (of_size(128, 64))
        launch<4, 2>(c, dtype, rows, stream);
    else if (of_size(256, 128))
        launch<8, 4>(c, dtype, rows, stream);
    else if (of_size(256, 32))
        launch<8, 1>(c, dtype, rows, stream);
    else if (of_size(512, 256))
        launch<16, 8>(c, dtype, rows, stream);
    else
        return false;
    return true;
}
