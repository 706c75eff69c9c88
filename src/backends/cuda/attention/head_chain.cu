/* SPDX-License-Identifier: Apache-2.0
 *
 * Biases, norms and rotary positions of queries, keys and values, each part where there is one. A head is a
 * warp's, in registers; sines and cosines, which the heads of a row share, are the block's. The bits are
 * those of row_chain.cu.
 */
#include "backends/cuda/norm/row_chain.cuh"

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
    const void *bias; /* [heads * size]; NULL: there is none */
    gb_dtype bias_dtype;

    /* Without a bias -0, which leaves every sum as it is. */
    __device__ float load_bias(unsigned i) const {
        return bias ? load_float(bias, bias_dtype, i) : -0.0f;
    }
};

struct head_chain {
    head_part parts[MOST_PARTS];
    unsigned count;
    const float *frequencies; /* NULL: nothing is turned */
    const int32_t *positions;
    int32_t start; /* of the positions */
    unsigned pairs, pair_offset;
    float scale; /* of what is turned */
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
    float x[EACH], bias[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++)
        bias[j] = part.load_bias((is_there ? head : 0) * (EACH * WARP) + lane + j * WARP);
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
        x[j] = from[j * WARP] + bias[j];
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < c.pairs; i += HEADS_OF_BLOCK * WARP) {
        float2 turn;
        gb_sin_cos((float)(c.positions[row] + c.start) * c.frequencies[i], &turn.x, &turn.y);
        turn.x *= c.scale;
        turn.y *= c.scale;
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

/* ---- From a step to a chain ---------------------------------------------------------------------------- */

/* A tensor's ops; what is missing is NULL. */
struct head_calls {
    const gb_cuda_tensor *x;
    const gb_cuda_call *biased, *slice, *norm, *turn;

    const gb_cuda_call *last() const {
        return turn ? turn : norm ? norm : biased;
    }
};

static head_calls queries_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *parts = problem->parts;
    return {problem->operands[GB_HEADS_QUERY], parts[GB_HEADS_QUERY_BIASED], parts[GB_HEADS_QUERY_SLICE],
            parts[GB_HEADS_QUERY_NORM], parts[GB_HEADS_QUERY_TURN]};
}

static head_calls keys_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *parts = problem->parts;
    return {problem->operands[GB_HEADS_KEY], parts[GB_HEADS_KEY_BIASED], nullptr, parts[GB_HEADS_KEY_NORM],
            parts[GB_HEADS_KEY_TURN]};
}

static head_calls values_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *const *parts = problem->parts;
    return {problem->operands[GB_HEADS_VALUE], parts[GB_HEADS_VALUE_BIASED], nullptr,
            parts[GB_HEADS_VALUE_NORM], nullptr};
}

/* size: of all heads. */
static void add_part(head_chain *c, const head_calls &calls, unsigned size) {
    const gb_cuda_call *last = calls.last();
    if (!last)
        return;
    const gb_cuda_tensor *y = last->results[0];
    row_view view = view_of_rows(calls.x);
    if (calls.slice)
        view = slice_of(view, calls.slice);
    head_part &part = c->parts[c->count++];
    part = head_part{};
    part.x = view.data;
    part.y = data_of<float>(y);
    part.stride = view.stride;
    part.outer = view.inner ? view.outer : size;
    part.heads = row_width(y) / size;
    if (calls.biased) {
        part.bias = calls.biased->operands[1]->data;
        part.bias_dtype = calls.biased->operands[1]->dtype;
    }
    part.has_norm = calls.norm != nullptr;
    if (part.has_norm)
        part.norm = normalization_of(calls.norm);
    part.is_turned = calls.turn != nullptr;
    if (!part.is_turned)
        return;
    const gb_cuda_tensor *frequencies = calls.turn->operands[2];
    c->frequencies = data_of<const float>(frequencies);
    c->positions = data_of<const int32_t>(calls.turn->operands[1]);
    c->start = (int32_t)gb_node_int(calls.turn->node, GB_ATTRIBUTE_START);
    c->pairs = (unsigned)frequencies->dims[0];
    c->pair_offset = (unsigned)gb_node_int(calls.turn->node, GB_ATTRIBUTE_PAIR_OFFSET);
    c->scale = (float)gb_node_float(calls.turn->node, GB_ATTRIBUTE_SCALE);
}

/* The size of all heads, or 0 where they differ, or a norm is of something else. */
static unsigned size_of_heads(const gb_cuda_problem *problem) {
    size_t size = 0;
    for (uint32_t i = 0; i < problem->count; i++) {
        const gb_cuda_call *call = problem->parts[i];
        if (!call || call->node->op == GB_OP_ADD_BIAS)
            continue;
        const gb_cuda_tensor *y = call->results[0];
        if (y->rank != 3 || call->epilogue || (size > 0 && y->dims[2] != size))
            return 0;
        size = y->dims[2];
    }
    return (unsigned)size;
}

static head_chain chain_of(const gb_cuda_problem *problem) {
    const unsigned size = size_of_heads(problem);
    head_chain c = {};
    add_part(&c, queries_of(problem), size);
    add_part(&c, keys_of(problem), size);
    add_part(&c, values_of(problem), size);
    return c;
}

/* Whether nothing later reads what is before a tensor's last op. */
static bool keeps_last(const gb_cuda_problem *problem, const head_calls &calls) {
    for (uint32_t i = 0; i < problem->count; i++) {
        const gb_cuda_call *part = problem->parts[i];
        const bool is_before = part && part != calls.last() &&
                               (part == calls.biased || part == calls.slice || part == calls.norm);
        if (is_before && gb_cuda_is_live(problem, i))
            return false;
    }
    return true;
}

/* Whether kernels have its ops: heads have that size, and a bias is of all that is sliced, and stored as the
 * rows that it is added to. */
static bool is_supported(const gb_cuda_problem *problem, const head_calls &calls, unsigned size) {
    const gb_cuda_call *last = calls.last();
    return (!last || row_width(last->results[0]) % size == 0) && !(calls.biased && calls.slice) &&
           !(calls.biased && calls.biased->epilogue) && keeps_last(problem, calls);
}

template <int EACH, int PAIR>
static void launch(const head_chain &c, gb_dtype dtype, unsigned rows, gb_cuda_launch_list *launches) {
    unsigned heads = 0;
    for (unsigned i = 0; i < c.count; i++)
        heads += c.parts[i].heads;
    auto kernel =
        dtype == GB_BF16 ? run_head_chain<EACH, PAIR, uint16_t> : run_head_chain<EACH, PAIR, uint32_t>;
    const dim3 grid(blocks_for(heads, HEADS_OF_BLOCK), rows);
    add_launch(launches, "head_chain", kernel, grid, HEADS_OF_BLOCK * WARP, 0, c);
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

typedef void (*head_launch)(const head_chain &c, gb_dtype dtype, unsigned rows,
                            gb_cuda_launch_list *launches);

/* What launches heads of that size whose pairs are so far apart, or NULL. */
static head_launch launch_of(unsigned size, unsigned pair) {
    static const struct {
        unsigned size, pair;
        head_launch launch;
    } launches[] = {{64, 32, launch<2, 1>},
                    {128, 64, launch<4, 2>},
                    {256, 128, launch<8, 4>},
                    {256, 32, launch<8, 1>},
                    {512, 256, launch<16, 8>}};
    for (const auto &of : launches)
        if (of.size == size && of.pair == pair)
            return of.launch;
    return nullptr;
}

static head_launch launch_of(const gb_cuda_problem *problem, const head_chain &c) {
    const unsigned size = size_of_heads(problem);
    return launch_of(size, c.frequencies ? c.pair_offset : size / 2);
}

bool gb_cuda_supports_heads(const gb_cuda_problem *problem) {
    const unsigned size = size_of_heads(problem);
    if (size == 0)
        return false;
    const head_chain c = chain_of(problem);
    gb_dtype dtype;
    return c.pairs <= MOST_PAIRS && find_dtype(c, &dtype) && launch_of(problem, c) &&
           is_supported(problem, queries_of(problem), size) &&
           is_supported(problem, keys_of(problem), size) && is_supported(problem, values_of(problem), size);
}

void gb_cuda_head_chain(const gb_cuda_problem *problem) {
    const head_chain c = chain_of(problem);
    const gb_cuda_call *first = nullptr;
    gb_dtype dtype;
    for (uint32_t i = 0; i < problem->count && !first; i++)
        first = problem->parts[i];
    find_dtype(c, &dtype);
    launch_of(problem, c)(c, dtype, (unsigned)first->results[0]->dims[0], first->launches);
}
