/* SPDX-License-Identifier: Apache-2.0
 *
 * What a chunk of a prompt (delta_chunks.cuh) needs beside the memory: a block of threads has one value head
 * of one chunk. It convolves its channels, finds the products of keys with keys and queries, and inverts I +
 * A by blocks of 16: those of the diagonal by substitution, the others from these.
 */
#include "backends/cuda/delta/delta_chunks.cuh"
#include "backends/cuda/device/mma_float.cuh"
#include "backends/cuda/device/quick_math.cuh"

using namespace gb_cuda;

namespace {

constexpr unsigned THREADS = 256, WARPS = THREADS / WARP, UNITS = SIZE / 4;

/* A square whose reads or writes of whole columns of units meet few banks twice. */
template <unsigned STRIDE>
using square = float[CHUNK][STRIDE];

typedef square<CHUNK + 8> product_square;
typedef square<CHUNK + 4> solving_square;

struct prepare_memory {
    union {
        struct {
            float key[CHUNK * SIZE], query[CHUNK * SIZE];
        } rows;
        struct {
            solving_square a, inverse; /* without the diagonal; of I + A */
            float product[CHUNK_BLOCKS - 1][BLOCK][BLOCK + 4];
        } solving;
    };
    product_square of_keys, of_queries; /* products with keys */
    double decay[CHUNK];                /* logarithms of g */
    float beta[CHUNK];
};

/* What a block works on. */
struct prepare_place {
    chunk_place chunk;
    unsigned key_head;
    int32_t slot;  /* whose states the run has before it */
    bool is_inner; /* all rows, and those before that are convolved with them, are tokens of the run */
};

/* ---- Convolution --------------------------------------------------------------------------------------- */

/* Of a channel, what the token has that is row number `row` of the chunk; zero where there is none. */
__device__ float load_x(const delta_chunks &v, const prepare_place &p, size_t channel, int row) {
    const int n = p.chunk.first + row, before = n - (int)p.chunk.run_first;
    if (row >= (int)p.chunk.end || before < -(int)TAIL)
        return 0;
    if (before >= 0)
        return v.net.x[(size_t)n * v.net.channels + channel];
    const float *tail = of_slot(v.net.tail, v.net.tail_slot_bytes, p.slot);
    return tail[(size_t)((int)TAIL + before) * v.net.channels + channel];
}

/* The same where it is a token of the run. */
__device__ float load_inner_x(const delta_chunks &v, const prepare_place &p, size_t channel, int row) {
    return v.net.x[(size_t)(p.chunk.first + row) * v.net.channels + channel];
}

/* Convolves ROWS rows of a channel from `first` on, and puts four at a time. */
template <bool IS_INNER, unsigned ROWS, typename Put>
__device__ void convolve_rows(const delta_chunks &v, const prepare_place &p, size_t channel, unsigned first,
                              Put put) {
    enum { AT_ONCE = 16 };
    const float4 taps = load_taps(v.net.weight, v.net.weight_dtype, channel);
    float x[TAIL + AT_ONCE];
    auto load = [&](int row) {
        return IS_INNER ? load_inner_x(v, p, channel, row) : load_x(v, p, channel, row);
    };
#pragma unroll
    for (unsigned i = 0; i < TAIL; i++)
        x[i] = load((int)(first + i) - (int)TAIL);
#pragma unroll 1
    for (unsigned begin = first; begin < first + ROWS; begin += AT_ONCE) {
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            x[TAIL + i] = load((int)(begin + i));
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i += 4) {
            float y[4];
#pragma unroll
            for (unsigned j = 0; j < 4; j++) {
                const float *of = x + i + j;
                const float sum =
                    fmaf(of[3], taps.w, fmaf(of[2], taps.z, fmaf(of[1], taps.y, of[0] * taps.x)));
                y[j] = IS_INNER || p.chunk.has(begin + i + j) ? quick_silu(sum) : 0.0f;
            }
            put(begin + i, y);
        }
#pragma unroll
        for (unsigned i = 0; i < TAIL; i++)
            x[i] = x[AT_ONCE + i];
    }
}

/* Half of the threads have a channel of the queries each, the others one of the keys. */
template <bool IS_INNER>
__device__ void convolve_keys(const delta_chunks &v, const prepare_place &p, prepare_memory &shared) {
    const unsigned part = threadIdx.x / SIZE, d = threadIdx.x % SIZE;
    float *rows = part == QUERY ? shared.rows.query : shared.rows.key;
    convolve_rows<IS_INNER, CHUNK>(v, p, v.net.starts[part] + p.key_head * SIZE + d, 0,
                                   [&](unsigned row, const float y[4]) {
                                       for (unsigned j = 0; j < 4; j++)
                                           rows[unit_place(row + j, d / 4, UNITS) * 4 + d % 4] = y[j];
                                   });
}

/* Two threads have a channel of a head's values, half of the rows each. */
template <bool IS_INNER>
__device__ void convolve_values(const delta_chunks &v, const prepare_place &p, unsigned head) {
    constexpr unsigned HALF = CHUNK * SIZE / THREADS;
    const unsigned d = threadIdx.x % SIZE;
    float4 *to = reinterpret_cast<float4 *>(v.values[p.chunk.number * v.net.heads + head].value);
    convolve_rows<IS_INNER, HALF>(v, p, v.net.starts[VALUE] + head * SIZE + d, threadIdx.x / SIZE * HALF,
                                  [&](unsigned row, const float y[4]) {
                                      to[unit_place(d, row / 4, CHUNK / 4)] = float4{y[0], y[1], y[2], y[3]};
                                  });
}

/* Gives the rows of keys and queries their lengths, a warp a row. */
__device__ void normalize_keys(const delta_chunks &v, prepare_memory &shared) {
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll 1
    for (unsigned i = threadIdx.x / WARP; i < 2 * CHUNK; i += WARPS) {
        float4 *row = reinterpret_cast<float4 *>(i < CHUNK ? shared.rows.query : shared.rows.key) +
                      unit_place(i % CHUNK, lane, UNITS);
        const float4 x = *row;
        const float squares = (x.x * x.x + x.y * x.y) + (x.z * x.z + x.w * x.w);
        const float factor = norm_factor(v.net.unit[i / CHUNK], warp_sum(squares));
        *row = float4{x.x * factor, x.y * factor, x.z * factor, x.w * factor};
    }
}

__device__ void store_keys(const delta_chunks &v, const prepare_place &p, const prepare_memory &shared) {
    chunk_keys &to = v.keys[p.chunk.number * v.net.key_heads + p.key_head];
    for (unsigned i = threadIdx.x; i < CHUNK * UNITS; i += THREADS) {
        reinterpret_cast<float4 *>(to.key)[i] = reinterpret_cast<const float4 *>(shared.rows.key)[i];
        reinterpret_cast<float4 *>(to.query)[i] = reinterpret_cast<const float4 *>(shared.rows.query)[i];
    }
}

/* ---- Products ------------------------------------------------------------------------------------------ */

__device__ four_parts load_parts(const float *rows, unsigned row, unsigned unit) {
    return four_parts(reinterpret_cast<const float4 *>(rows)[unit_place(row, unit, UNITS)]);
}

/* A warp has sixteen rows of one product, on and left of the diagonal. */
__device__ void multiply_keys(prepare_memory &shared) {
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const float *rows = warp < CHUNK_BLOCKS ? shared.rows.key : shared.rows.query;
    product_square &to = warp < CHUNK_BLOCKS ? shared.of_keys : shared.of_queries;
    const unsigned row = warp % CHUNK_BLOCKS * BLOCK + 2 * g;
#pragma unroll 1
    for (unsigned j = 0; j <= warp % CHUNK_BLOCKS; j++) {
        tile_sums sums[2] = {};
#pragma unroll 2
        for (unsigned d = 0; d < SIZE / BLOCK; d++) {
            const operand_parts a = {load_parts(rows, row, d * 4 + t), load_parts(rows, row + 1, d * 4 + t)};
#pragma unroll
            for (unsigned e = 0; e < 2; e++)
                sums[e].add(a, load_parts(shared.rows.key, j * BLOCK + 2 * g + e, d * 4 + t));
        }
        const block_sums c(sums);
        *reinterpret_cast<float4 *>(&to[row][j * BLOCK + 4 * t]) = c.even;
        *reinterpret_cast<float4 *>(&to[row + 1][j * BLOCK + 4 * t]) = c.odd;
    }
}

/* ---- Decays -------------------------------------------------------------------------------------------- */

__device__ double log_decay_of(const delta_chunks &v, const prepare_place &p, unsigned head, unsigned row) {
    if (!p.chunk.has(row))
        return 0;
    const size_t of_head = (size_t)(p.chunk.first + (int)row) * v.net.heads + head;
    return (double)delta_log_decay(v.net.decay[of_head], load_float(v.net.rate, v.net.rate_dtype, head),
                                   load_float(v.net.bias, v.net.bias_dtype, head));
}

/* A warp, two rows a lane. */
__device__ void find_decays(const delta_chunks &v, const prepare_place &p, unsigned head,
                            prepare_memory &shared) {
    const unsigned lane = threadIdx.x;
    const double first = log_decay_of(v, p, head, 2 * lane),
                 both = first + log_decay_of(v, p, head, 2 * lane + 1);
    double sum = both;
    for (unsigned distance = 1; distance < WARP; distance *= 2) {
        const double before = __shfl_up_sync(0xffffffffu, sum, distance);
        sum += lane >= distance ? before : 0;
    }
    shared.decay[2 * lane] = sum - both + first;
    shared.decay[2 * lane + 1] = sum;
}

__device__ void find_beta(const delta_chunks &v, const prepare_place &p, unsigned head, unsigned row,
                          prepare_memory &shared) {
    const size_t of_head = (size_t)(p.chunk.first + (int)row) * v.net.heads + head;
    shared.beta[row] = p.chunk.has(row) ? sigmoid(v.net.beta[of_head]) : 0.0f;
}

/* Stores g and c(last, s). */
__device__ void store_decays(unsigned row, const prepare_memory &shared, chunk_head &to) {
    to.decay[row] = quick_exp((float)shared.decay[row]);
    to.rest[row] = quick_exp((float)(shared.decay[CHUNK - 1] - shared.decay[row]));
}

__device__ const float4 &four_of(const float *row) {
    return *reinterpret_cast<const float4 *>(row);
}

/* What is left at row t of what the tokens s .. s + 3 put in; nothing before them. */
__device__ float4 decays_between(const prepare_memory &shared, unsigned t, unsigned s) {
    float decay[4];
#pragma unroll
    for (unsigned j = 0; j < 4; j++)
        decay[j] = s + j <= t ? quick_exp((float)(shared.decay[t] - shared.decay[s + j])) : 0.0f;
    return {decay[0], decay[1], decay[2], decay[3]};
}

__device__ float4 multiply_four(const float4 &x, const float4 &y) {
    return {x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w};
}

/* Stores P and finds A, a quarter of a row of a block a thread; what A has above its diagonal is not read. */
__device__ void weigh_products(prepare_memory &shared, chunk_head &to) {
    float4 *weights = reinterpret_cast<float4 *>(to.weights);
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < CHUNK * CHUNK / 4; i += THREADS) {
        const unsigned row = i / (CHUNK / 4), s = i % (CHUNK / 4) * 4;
        if (s / BLOCK > row / BLOCK)
            continue;
        const float beta = shared.beta[row];
        const float4 decay = decays_between(shared, row, s);
        weights[lower_place(row / BLOCK, s / BLOCK, row % BLOCK, s % BLOCK / 4)] =
            multiply_four(four_of(&shared.of_queries[row][s]), decay);
        *reinterpret_cast<float4 *>(&shared.solving.a[row][s]) = multiply_four(
            multiply_four(four_of(&shared.of_keys[row][s]), decay), float4{beta, beta, beta, beta});
    }
}

/* ---- Inversion ----------------------------------------------------------------------------------------- */

/* A column of the inverse of a block of the diagonal. */
__device__ void invert_column(const solving_square &a, unsigned block, unsigned column,
                              solving_square &inverse) {
    float x[BLOCK];
#pragma unroll
    for (unsigned r = 0; r < BLOCK; r++) {
        float sum = r == column ? 1.0f : 0.0f;
#pragma unroll
        for (unsigned k = 0; k < r; k++)
            sum = fmaf(-a[block * BLOCK + r][block * BLOCK + k], x[k], sum);
        x[r] = sum;
        inverse[block * BLOCK + r][block * BLOCK + column] = sum;
    }
}

__device__ float4 add_product(const float4 &sum, float x, const float4 &y) {
    return {fmaf(x, y.x, sum.x), fmaf(x, y.y, sum.y), fmaf(x, y.z, sum.z), fmaf(x, y.w, sum.w)};
}

/* The blocks `distance` below the diagonal: -(block of the diagonal) (A times what is above). A thread has a
 * quarter of a row. */
__device__ void invert_below(unsigned distance, prepare_memory &shared) {
    constexpr unsigned OF_BLOCK = BLOCK * BLOCK / 4;
    solving_square &inverse = shared.solving.inverse;
    const unsigned j = threadIdx.x / OF_BLOCK, i = j + distance, r = threadIdx.x % OF_BLOCK / 4,
                   c = threadIdx.x % 4 * 4;
    const bool is_there = i < CHUNK_BLOCKS;
    float4 sum = {};
#pragma unroll 8
    for (unsigned k = j * BLOCK; is_there && k < i * BLOCK; k++)
        sum = add_product(sum, shared.solving.a[i * BLOCK + r][k], four_of(&inverse[k][j * BLOCK + c]));
    if (is_there)
        *reinterpret_cast<float4 *>(&shared.solving.product[j][r][c]) = sum;
    __syncthreads();
    sum = {};
#pragma unroll
    for (unsigned k = 0; k < BLOCK && is_there; k++)
        sum = add_product(sum, -inverse[i * BLOCK + r][i * BLOCK + k],
                          four_of(&shared.solving.product[j][k][c]));
    if (is_there)
        *reinterpret_cast<float4 *>(&inverse[i * BLOCK + r][j * BLOCK + c]) = sum;
    __syncthreads();
}

__device__ void invert(prepare_memory &shared) {
    static_assert(CHUNK_BLOCKS * BLOCK * BLOCK / 4 <= THREADS, "a thread has one quarter of a row");
    if (threadIdx.x < CHUNK)
        invert_column(shared.solving.a, threadIdx.x / BLOCK, threadIdx.x % BLOCK, shared.solving.inverse);
    __syncthreads();
#pragma unroll 1
    for (unsigned distance = 1; distance < CHUNK_BLOCKS; distance++)
        invert_below(distance, shared);
}

/* Stores the inverse times B. */
__device__ void store_solution(const prepare_memory &shared, chunk_head &to) {
    float4 *solution = reinterpret_cast<float4 *>(to.solution);
    for (unsigned i = threadIdx.x; i < CHUNK * CHUNK / 4; i += THREADS) {
        const unsigned row = i / (CHUNK / 4), s = i % (CHUNK / 4) * 4;
        if (s / BLOCK > row / BLOCK)
            continue;
        const float4 x = four_of(&shared.solving.inverse[row][s]);
        solution[lower_place(row / BLOCK, s / BLOCK, row % BLOCK, s % BLOCK / 4)] =
            float4{x.x * shared.beta[s], x.y * shared.beta[s + 1], x.z * shared.beta[s + 2],
                   x.w * shared.beta[s + 3]};
    }
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

/* The run that has a chunk. */
__device__ size_t run_of(const delta_chunks &v, size_t chunk) {
    size_t low = 0, after = v.runs;
    while (after - low > 1) {
        const size_t middle = (low + after) / 2;
        if (chunks_before((size_t)v.net.run_first[middle], middle) <= chunk)
            low = middle;
        else
            after = middle;
    }
    return low;
}

__device__ prepare_place place_of_block(const delta_chunks &v) {
    const size_t chunk = v.first + blockIdx.y, run = run_of(v, chunk), first = (size_t)v.net.run_first[run];
    const chunk_place place = chunk_of_run(v, run, (unsigned)(chunk - chunks_before(first, run)));
    const bool is_whole = place.begin == 0 && place.end == CHUNK;
    return {place, blockIdx.x, v.net.slots.from[first],
            is_whole && place.first >= (int)(place.run_first + TAIL)};
}

/* Value head number i of those that go with the block's key head. */
__device__ unsigned head_of(const delta_chunks &v, const prepare_place &p, unsigned i) {
    return v.net.is_tiled ? i * v.net.key_heads + p.key_head
                          : p.key_head * (v.net.heads / v.net.key_heads) + i;
}

template <bool IS_INNER>
__device__ void prepare_keys(const delta_chunks &v, const prepare_place &p, prepare_memory &shared) {
    convolve_keys<IS_INNER>(v, p, shared);
    __syncthreads();
    normalize_keys(v, shared);
    __syncthreads();
    multiply_keys(shared);
    store_keys(v, p, shared);
}

/* All threads have done with the rows of keys, and with the head before. */
template <bool IS_INNER>
__device__ void prepare_head(const delta_chunks &v, const prepare_place &p, unsigned head,
                             prepare_memory &shared) {
    chunk_head &to = v.heads[p.chunk.number * v.net.heads + head];
    if (threadIdx.x < WARP)
        find_decays(v, p, head, shared);
    else if (threadIdx.x >= THREADS - CHUNK)
        find_beta(v, p, head, threadIdx.x - (THREADS - CHUNK), shared);
    convolve_values<IS_INNER>(v, p, head);
    __syncthreads();
    if (threadIdx.x < CHUNK)
        store_decays(threadIdx.x, shared, to);
    weigh_products(shared, to);
    __syncthreads();
    invert(shared);
    store_solution(shared, to);
}

template <bool IS_INNER>
__device__ void prepare(const delta_chunks &v, const prepare_place &p, prepare_memory &shared) {
    prepare_keys<IS_INNER>(v, p, shared);
#pragma unroll 1
    for (unsigned i = 0; i < v.net.heads / v.net.key_heads; i++) {
        __syncthreads();
        prepare_head<IS_INNER>(v, p, head_of(v, p, i), shared);
    }
}

/* Grid: [key heads, chunks]. */
__global__ void __launch_bounds__(THREADS, 2) run_delta_prepare(GB_GRID_CONSTANT delta_chunks v) {
    GB_DYNAMIC_SHARED(prepare_memory, memory);
    wait_for_earlier();
    const prepare_place p = place_of_block(v);
    if (p.is_inner)
        prepare<true>(v, p, *memory);
    else if (p.chunk.begin < p.chunk.end)
        prepare<false>(v, p, *memory);
}

} // namespace

void gb_cuda_delta_prepare(const delta_chunks &chunks, gb_cuda_launch_list *launches) {
    add_launch(launches, "delta_prepare", run_delta_prepare,
               dim3(chunks.net.key_heads, (unsigned)chunks.count), THREADS, sizeof(prepare_memory), chunks);
}
