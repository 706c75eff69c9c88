/* SPDX-License-Identifier: Apache-2.0
 *
 * The delta rule from chunk to chunk (delta_chunks.cuh). A block has 32 columns of a head's memory, two warps
 * sixteen of these, each warp half of the rows, in registers as a product's operand. Products with the memory
 * are sums of both halves; of what follows a warp has half of the tokens. One more warp copies ahead.
 */
#include "backends/cuda/delta/delta_chunks.cuh"
#include "backends/cuda/device/copy_pipeline.cuh"
#include "backends/cuda/device/mma_float.cuh"

using namespace gb_cuda;

namespace {

constexpr unsigned COLUMNS = 32, PAIRS = COLUMNS / BLOCK, WALKERS = 2 * PAIRS /* warps */;
constexpr unsigned THREADS = (WALKERS + 1) * WARP, STAGES = 2, UNITS = SIZE / 4;
constexpr unsigned HALF_BLOCKS = SIZE / 2 / BLOCK; /* of the memory's rows */
constexpr unsigned OWN_BLOCKS = CHUNK_BLOCKS / 2;  /* of the tokens */

struct walk_stage {
    chunk_keys keys;
    chunk_head head;
    float value[COLUMNS * CHUNK];
};

/* What a warp tells the other one of its pair, by lane: its half of the products with keys and queries. */
struct walk_exchange {
    float4 of_keys[2 * CHUNK_BLOCKS][WARP], of_queries[2 * CHUNK_BLOCKS][WARP];
};

struct walk_memory {
    walk_stage stages[STAGES];
    walk_exchange exchange[WALKERS];
    float4 changes[PAIRS][2 * CHUNK_BLOCKS][WARP];
};

struct walk_place {
    size_t run;
    unsigned head, key_head, column; /* the block's first one */
    unsigned begin, end;             /* the run's chunks, if it has so many */
};

__device__ walk_place place_of_block(const delta_chunks &v) {
    const unsigned head = blockIdx.y;
    const size_t run = blockIdx.z, before = chunks_before((size_t)v.net.run_first[run], run),
                 after = v.first + v.count;
    return {run,
            head,
            v.net.is_tiled ? head % v.net.key_heads : head / (v.net.heads / v.net.key_heads),
            blockIdx.x * COLUMNS,
            v.first > before ? (unsigned)(v.first - before) : 0,
            after > before ? (unsigned)(after - before) : 0};
}

/* ---- Copying ------------------------------------------------------------------------------------------- */

/* On Hopper, which alone runs the kernel. */
__device__ void copy_chunk(const delta_chunks &v, const walk_place &p, size_t chunk, walk_stage &to,
                           copy_barrier *full) {
#if !GB_LANES_COPY
    const chunk_head &head = v.heads[chunk * v.net.heads + p.head];
    const chunk_values &values = v.values[chunk * v.net.heads + p.head];
    arrive_expecting(full, sizeof to);
    copy_bulk(&to.keys, &v.keys[chunk * v.net.key_heads + p.key_head], sizeof to.keys, full);
    copy_bulk(&to.head, &head, sizeof to.head, full);
    copy_bulk(to.value, values.value + p.column * CHUNK, sizeof to.value, full);
#endif
}

__device__ void copy_all(const delta_chunks &v, const walk_place &p, copy_pipeline pipeline,
                         walk_stage *stages) {
    for (unsigned local = p.begin; local < p.end; local++) {
        const chunk_place chunk = chunk_of_run(v, p.run, local);
        if (chunk.begin >= chunk.end)
            return;
        pipeline.wait_until_empty();
        copy_chunk(v, p, chunk.number, stages[pipeline.stage], &pipeline.full[pipeline.stage]);
        pipeline.next();
    }
}

/* ---- A warp that walks --------------------------------------------------------------------------------- */

struct walker {
    const delta_chunks &v;
    const walk_place &p;
    walk_memory &shared;
    copy_barrier *met; /* of the pair */
    unsigned pair, half, g, t, lane;
    uint32_t parity = 0;
    block_sums memory[HALF_BLOCKS]; /* transposed: columns by rows */

    __device__ walker(const delta_chunks &chunks, const walk_place &place, walk_memory &of_block,
                      copy_barrier *barriers)
        : v(chunks), p(place), shared(of_block), met(&barriers[threadIdx.x / WARP / 2]),
          pair(threadIdx.x / WARP / 2), half(threadIdx.x / WARP % 2), g(threadIdx.x % WARP / 4),
          t(threadIdx.x % 4), lane(threadIdx.x % WARP) {}

    /* Blocks of tokens that the warp has: the outer ones, which together have as many products as the inner
     * ones, or these. */
    __device__ unsigned own_block(unsigned i) const {
        return half == 0 ? i * (CHUNK_BLOCKS - 1) : 1 + i;
    }

    __device__ void meet() {
        meet_warps<2>(met, parity, 1 + pair);
    }

    __device__ float *column_in(float *state, unsigned odd) const {
        return state + (size_t)p.head * SIZE * SIZE + p.column + pair * BLOCK + 2 * g + odd;
    }

    __device__ float4 load_rows(const float *column, unsigned block) const {
        const float *at = column + ((half * HALF_BLOCKS + block) * BLOCK + 4 * t) * SIZE;
        return {at[0], at[SIZE], at[2 * SIZE], at[3 * SIZE]};
    }

    __device__ void store_rows(float *column, unsigned block, const float4 &x) const {
        float *at = column + ((half * HALF_BLOCKS + block) * BLOCK + 4 * t) * SIZE;
        at[0] = x.x, at[SIZE] = x.y, at[2 * SIZE] = x.z, at[3 * SIZE] = x.w;
    }

    __device__ void load_memory(float *state) {
#pragma unroll
        for (unsigned d = 0; d < HALF_BLOCKS; d++)
            memory[d] = block_sums(load_rows(column_in(state, 0), d), load_rows(column_in(state, 1), d));
    }

    __device__ void store_memory(float *state) const {
#pragma unroll
        for (unsigned d = 0; d < HALF_BLOCKS; d++) {
            store_rows(column_in(state, 0), d, memory[d].even);
            store_rows(column_in(state, 1), d, memory[d].odd);
        }
    }

    /* The product of the memory's half with the tokens of a block. */
    __device__ block_sums multiply_memory(const operand_parts parts[HALF_BLOCKS], const float *rows,
                                          unsigned block) const {
        tile_sums sums[2] = {};
#pragma unroll
        for (unsigned d = 0; d < HALF_BLOCKS; d++)
#pragma unroll
            for (unsigned e = 0; e < 2; e++) {
                const unsigned unit = (half * HALF_BLOCKS + d) * 4 + t;
                sums[e].add(parts[d], four_parts(reinterpret_cast<const float4 *>(
                                          rows)[unit_place(block * BLOCK + 2 * g + e, unit, UNITS)]));
            }
        return block_sums(sums);
    }

    /* The product of blocks 0 .. block of an operand with that row of blocks of a matrix. */
    __device__ block_sums multiply_lower(const operand_parts parts[CHUNK_BLOCKS], const float *matrix,
                                         unsigned block) const {
        tile_sums sums[2] = {};
#pragma unroll
        for (unsigned j = 0; j < CHUNK_BLOCKS; j++)
#pragma unroll
            for (unsigned e = 0; e < 2; e++)
                if (j <= block)
                    sums[e].add(parts[j], four_parts(reinterpret_cast<const float4 *>(
                                              matrix)[lower_place(block, j, 2 * g + e, t)]));
        return block_sums(sums);
    }

    /* Tells the other warp the products of the memory's half with all keys and queries. */
    __device__ void recall(const walk_stage &stage) {
        walk_exchange &mine = shared.exchange[2 * pair + half];
        operand_parts parts[HALF_BLOCKS];
#pragma unroll
        for (unsigned d = 0; d < HALF_BLOCKS; d++)
            parts[d] = memory[d].parts();
#pragma unroll 1
        for (unsigned b = 0; b < CHUNK_BLOCKS; b++) {
            const block_sums of_keys = multiply_memory(parts, stage.keys.key, b),
                             of_queries = multiply_memory(parts, stage.keys.query, b);
            put(mine.of_keys, b, of_keys);
            put(mine.of_queries, b, of_queries);
        }
        meet();
    }

    __device__ void put(float4 (*to)[WARP], unsigned block, const block_sums &x) const {
        to[2 * block][lane] = x.even;
        to[2 * block + 1][lane] = x.odd;
    }

    __device__ block_sums get(const float4 (*from)[WARP], unsigned block) const {
        return block_sums(from[2 * block][lane], from[2 * block + 1][lane]);
    }

    /* The whole memory's products with the keys, or the queries, of a block. */
    __device__ block_sums recalled(float4 (walk_exchange::*which)[2 * CHUNK_BLOCKS][WARP],
                                   unsigned block) const {
        block_sums sums = get(shared.exchange[2 * pair].*which, block);
        sums.add(get(shared.exchange[2 * pair + 1].*which, block));
        return sums;
    }

    __device__ float4 load_values(const walk_stage &stage, unsigned odd, unsigned block) const {
        return reinterpret_cast<const float4 *>(
            stage.value)[unit_place(pair * BLOCK + 2 * g + odd, block * 4 + t, CHUNK / 4)];
    }

    /* V - g K S of a block. */
    __device__ block_sums rest_of(const walk_stage &stage, unsigned block) const {
        const float4 decay = reinterpret_cast<const float4 *>(stage.head.decay)[block * 4 + t];
        block_sums rest = recalled(&walk_exchange::of_keys, block);
        rest.multiply(float4{-decay.x, -decay.y, -decay.z, -decay.w});
        rest.add(block_sums(load_values(stage, 0, block), load_values(stage, 1, block)));
        return rest;
    }

    /* Finds all of U. */
    __device__ void solve(const walk_stage &stage) {
        operand_parts parts[CHUNK_BLOCKS];
#pragma unroll
        for (unsigned b = 0; b < CHUNK_BLOCKS; b++)
            parts[b] = rest_of(stage, b).parts();
#pragma unroll 1
        for (unsigned i = 0; i < OWN_BLOCKS; i++)
            put(shared.changes[pair], own_block(i), multiply_lower(parts, stage.head.solution, own_block(i)));
        meet();
    }

    __device__ void store_answer(const chunk_place &chunk, unsigned row, float even, float odd) const {
        const size_t n = (size_t)(chunk.first + (int)row);
        float *y = v.net.y + (n * v.net.heads + p.head) * SIZE + p.column + pair * BLOCK + 2 * g;
        if (chunk.has(row))
            *reinterpret_cast<float2 *>(y) = float2{even, odd};
    }

    /* Y of the warp's tokens. */
    __device__ void answer(const walk_stage &stage, const chunk_place &chunk) const {
        operand_parts parts[CHUNK_BLOCKS];
#pragma unroll
        for (unsigned b = 0; b < CHUNK_BLOCKS; b++)
            parts[b] = get(shared.changes[pair], b).parts();
#pragma unroll 1
        for (unsigned i = 0; i < OWN_BLOCKS; i++) {
            const unsigned block = own_block(i), row = block * BLOCK + 4 * t;
            block_sums y = recalled(&walk_exchange::of_queries, block);
            y.multiply(reinterpret_cast<const float4 *>(stage.head.decay)[block * 4 + t]);
            y.add(multiply_lower(parts, stage.head.weights, block));
            store_answer(chunk, row, y.even.x, y.odd.x);
            store_answer(chunk, row + 1, y.even.y, y.odd.y);
            store_answer(chunk, row + 2, y.even.z, y.odd.z);
            store_answer(chunk, row + 3, y.even.w, y.odd.w);
        }
    }

    /* Two columns of the keys of four tokens, as operands. */
    __device__ void load_columns(const float *keys, unsigned block, unsigned d, four_parts of[2]) const {
        const unsigned row = block * BLOCK + 4 * t, unit = (half * HALF_BLOCKS + d) * 4 + g / 2;
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const float2 two =
                *reinterpret_cast<const float2 *>(keys + unit_place(row + i, unit, UNITS) * 4 + g % 2 * 2);
            of[0].of[i] = split(two.x);
            of[1].of[i] = split(two.y);
        }
    }

    /* The memory after the chunk. */
    __device__ void update(const walk_stage &stage) {
        const float decay = stage.head.decay[CHUNK - 1];
        operand_parts parts[CHUNK_BLOCKS];
#pragma unroll
        for (unsigned b = 0; b < CHUNK_BLOCKS; b++) {
            block_sums changes = get(shared.changes[pair], b);
            changes.multiply(reinterpret_cast<const float4 *>(stage.head.rest)[b * 4 + t]);
            parts[b] = changes.parts();
        }
#pragma unroll
        for (unsigned d = 0; d < HALF_BLOCKS; d++) {
            tile_sums sums[2] = {};
#pragma unroll
            for (unsigned b = 0; b < CHUNK_BLOCKS; b++) {
                four_parts columns[2];
                load_columns(stage.keys.key, b, d, columns);
                sums[0].add(parts[b], columns[0]);
                sums[1].add(parts[b], columns[1]);
            }
            memory[d].multiply(float4{decay, decay, decay, decay});
            memory[d].add(block_sums(sums));
        }
    }

    __device__ void walk(const walk_stage &stage, const chunk_place &chunk) {
        recall(stage);
        solve(stage);
        answer(stage, chunk);
        meet(); /* before either tells what the next chunk recalls */
        update(stage);
    }

    __device__ void walk_all(copy_pipeline pipeline) {
        const size_t first = (size_t)v.net.run_first[p.run], last = (size_t)v.net.run_first[p.run + 1] - 1;
        const int32_t to = v.net.slots.to[last], from = p.begin > 0 ? to : v.net.slots.from[first];
        load_memory(of_slot(v.net.memory, v.net.memory_slot_bytes, from));
#pragma unroll 1
        for (unsigned local = p.begin; local < p.end; local++) {
            const chunk_place chunk = chunk_of_run(v, p.run, local);
            if (chunk.begin >= chunk.end)
                break;
            pipeline.wait_until_full();
            walk(shared.stages[pipeline.stage], chunk);
            pipeline.release(lane);
            pipeline.next();
        }
        store_memory(of_slot(v.net.memory, v.net.memory_slot_bytes, to));
    }
};

/* ---- The convolution's tail ---------------------------------------------------------------------------- */

/* Stores what a run leaves of some channels, when no other launch reads that any more. */
__device__ void store_tails(const delta_chunks &v, const walk_place &p) {
    const size_t first = (size_t)v.net.run_first[p.run], after = (size_t)v.net.run_first[p.run + 1];
    const float *from = of_slot(v.net.tail, v.net.tail_slot_bytes, v.net.slots.from[first]);
    float *to = of_slot(v.net.tail, v.net.tail_slot_bytes, v.net.slots.to[after - 1]);
    const size_t step = (size_t)gridDim.x * gridDim.y * THREADS;
    for (size_t c = ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * THREADS + threadIdx.x; c < v.net.channels;
         c += step) {
        float last[TAIL];
        for (unsigned r = 0; r < TAIL; r++) {
            const size_t row = r + after - first; /* of the tail and the run, one after the other */
            last[r] = row < TAIL ? from[row * v.net.channels + c]
                                 : v.net.x[(first + row - TAIL) * v.net.channels + c];
        }
        for (unsigned r = 0; r < TAIL; r++)
            to[r * v.net.channels + c] = last[r];
    }
}

/* Grid: [parts of the columns, value heads, runs]. */
__global__ void __launch_bounds__(THREADS, 1) run_delta_walk(GB_GRID_CONSTANT delta_chunks v) {
    GB_DYNAMIC_SHARED(walk_memory, shared);
    __shared__ copy_barrier full[STAGES], empty[STAGES], met[PAIRS];
    const copy_pipeline pipeline(full, empty, STAGES);
    if (threadIdx.x == 0) {
        pipeline.create(1, WALKERS);
        for (unsigned i = 0; i < PAIRS; i++)
            begin_barrier(&met[i], 2);
        finish_barriers();
    }
    __syncthreads();
    wait_for_earlier();
    const walk_place p = place_of_block(v);
    if (v.are_last)
        store_tails(v, p);
    const chunk_place first = chunk_of_run(v, p.run, p.begin);
    if (p.begin >= p.end || first.begin >= first.end)
        return;
    if (threadIdx.x < WALKERS * WARP)
        walker(v, p, *shared, met).walk_all(pipeline);
    else if (threadIdx.x == WALKERS * WARP)
        copy_all(v, p, pipeline, shared->stages);
}

} // namespace

const size_t gb_cuda_delta_walk_bytes = sizeof(walk_memory);

void gb_cuda_delta_walk(const delta_chunks &chunks, gb_cuda_launch_list *launches) {
    add_launch(launches, "delta_walk", run_delta_walk, dim3(SIZE / COLUMNS, chunks.net.heads, chunks.runs),
               THREADS, sizeof(walk_memory), chunks);
}
