/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of one row in 8 bits with packed 4-bit matrices. The blocks of 128 columns of all tiles are one
 * sequence, of which each block of threads has an equal run: where a tile is cut, exact sums let the pieces
 * be added in any order. One warp copies weights ahead (copy_pipeline.cuh); a fragment of 16 outputs has
 * three others, which take stages in turns.
 *
 * Two of the eight columns of a tensor core's operand are a unit's: inputs are zero in all others, so that
 * the sums of a block's four units come out side by side and groups are scaled afterwards. Of a byte with
 * codes of two columns, w = 16 high + low, the first operand has w itself and w & 15: in a unit's first
 * column they meet the inputs of `high` and their negatives, which gives 16 high; in its second one nothing
 * and those of `low`.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_GEMV_ONE_ROW_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_GEMV_ONE_ROW_CUH

#include "backends/cuda/device/copy_pipeline.cuh"
#include "backends/cuda/gemm/int8/hadamard.cuh"
#include "backends/cuda/gemm/int8/rounding.cuh"
#include "backends/cuda/gemm/int8/weights.cuh"
#include "backends/cuda/norm/long_rows.cuh"

namespace gb_cuda {

enum {
    ROW_INPUT_BYTES = 2, /* of a column of the input */
    ROW_SUM_BITS = 40,
    ROW_TURNS = 2,        /* warps of a fragment */
    ROW_STAGE_BLOCKS = 2, /* of columns */
    ROW_MOST_STAGES = 12,
    /* In flight at a time: more would delay the inputs while these are not there, and afterwards let some
     * multiprocessors have memory's bandwidth before others. */
    ROW_EARLY_STAGES = 2,
    ROW_LATE_STAGES = 3,
};

/* Products of one row. */
struct int8_row_products {
    int8_matrix of[GB_CUDA_MOST_JOINED];
    unsigned long long *joined; /* [gridDim.x, GB_TILE_ROWS] zeros, as it leaves them: of the tile that a
                                 * block begins and others go on with, the sums so far, and above ROW_SUM_BITS
                                 * of how many pieces */
    uint32_t tiles, columns;    /* tiles: of outputs, of all matrices */
    uint32_t stages;            /* an even number, so that a place among them is always that of one turn */
    unsigned rotation;          /* 0: none */
    float factor;               /* of the row's scale */

    __host__ __device__ uint32_t blocks() const {
        return columns / GB_TILE_COLUMNS;
    }
};

/* Blocks begin .. end - 1 of a tile's columns. */
struct tile_piece {
    uint32_t tile, begin, end;
};

/* Which blocks of all tiles each block of threads has: a run of equal length, the first ones one more. */
struct even_runs {
    uint32_t length, longer;

    __device__ explicit even_runs(const int8_row_products &p)
        : length(p.tiles * p.blocks() / gridDim.x), longer(p.tiles * p.blocks() % gridDim.x) {}

    __device__ uint32_t begin_of(uint32_t block) const {
        return block * length + (block < longer ? block : longer);
    }

    /* The block of threads that has number `at`. */
    __device__ uint32_t owner_of(uint32_t at) const {
        const uint32_t of_longer = longer * (length + 1);
        return at < of_longer ? at / (length + 1) : longer + (at - of_longer) / length;
    }
};

struct row_barriers {
    copy_barrier full[ROW_MOST_STAGES], empty[ROW_MOST_STAGES];
    copy_barrier given[INT8_FRAGMENTS], taken[INT8_FRAGMENTS];
    copy_barrier met, has_inputs;
};

/* Bytes of the dynamic shared memory behind the stages. */
struct row_memory {
    uint32_t sums_at, given_at, size;

    __host__ __device__ explicit row_memory(uint32_t columns)
        : sums_at(columns * ROW_INPUT_BYTES), given_at(sums_at + columns / UNIT * (uint32_t)sizeof(int32_t)),
          size(given_at + (uint32_t)((ROW_TURNS - 1) * GB_TILE_ROWS * sizeof(int32_t))) {}
};

template <int GROUP>
struct int8_row_gemv {
    enum {
        WARPS = ROW_TURNS * INT8_FRAGMENTS, /* that multiply; the next one copies */
        THREADS = (WARPS + 1) * WARP,
        GROUPS = GB_TILE_COLUMNS / GROUP,
        GROUP_BYTES = GB_TILE_ROWS * GROUPS,
        GROUPS_AT = ROW_STAGE_BLOCKS * INT8_CODE_BYTES,
        UNIT_BYTES = UNIT * ROW_INPUT_BYTES,
        STAGE_BYTES = GROUPS_AT + ROW_STAGE_BLOCKS * GROUP_BYTES,
    };

    const int8_row_products &p;
    uint8_t *shared;
    row_barriers &barriers;
    uint8_t *x;         /* [units, 2, 4 quarters, 8]: what the two columns of a unit have */
    int32_t *unit_sums; /* [columns / UNIT] of x */
    float &x_scale;     /* in shared memory */
    uint32_t lane, warp, fragment, turn;
    copy_pipeline pipeline;
    uint32_t meetings = 0;
    uint2 inputs[ROW_STAGE_BLOCKS][INT8_UNITS]; /* of each unit: zeros in the lanes of others */

    __device__ int8_row_gemv(const int8_row_products &products, uint8_t *memory, row_barriers &of_block,
                             float &scale)
        : p(products), shared(memory), barriers(of_block), x(memory + p.stages * STAGE_BYTES),
          unit_sums(reinterpret_cast<int32_t *>(x + row_memory(p.columns).sums_at)), x_scale(scale),
          lane(threadIdx.x % WARP), warp(threadIdx.x / WARP), fragment(warp % INT8_FRAGMENTS),
          turn(warp / INT8_FRAGMENTS), pipeline(of_block.full, of_block.empty, p.stages), inputs() {}

    /* All threads call it before anything else. */
    __device__ void create_barriers() const {
        if (threadIdx.x == 0) {
            pipeline.create(COPY_ARRIVALS, INT8_FRAGMENTS);
            for (unsigned i = 0; i < INT8_FRAGMENTS; i++)
                copy_pipeline(barriers.given + i, barriers.taken + i, 1)
                    .create((ROW_TURNS - 1) * DONE_ARRIVALS, 1);
            begin_barrier(&barriers.met, WARPS);
            begin_barrier(&barriers.has_inputs, 1);
            finish_barriers();
        }
        __syncthreads();
    }

    __device__ bool copies() const {
        return warp == WARPS;
    }

    /* Does `work` for each piece of the block's run. */
    template <typename Work>
    __device__ void for_pieces(const Work &work) const {
        const even_runs runs(p);
        const uint32_t end = runs.begin_of(blockIdx.x + 1), blocks = p.blocks();
        for (uint32_t at = runs.begin_of(blockIdx.x); at < end;) {
            tile_piece piece = {at / blocks, at % blocks, blocks};
            if (piece.end - piece.begin > end - at)
                piece.end = piece.begin + end - at;
            work(piece);
            at += piece.end - piece.begin;
        }
    }

    /* Does `work` with the first block and the number of blocks of each stage of a piece. */
    template <typename Work>
    __device__ static void for_stages(const tile_piece &piece, const Work &work) {
        for (uint32_t at = piece.begin; at < piece.end; at += ROW_STAGE_BLOCKS) {
            const uint32_t left = piece.end - at;
            work(at, left < ROW_STAGE_BLOCKS ? left : (uint32_t)ROW_STAGE_BLOCKS);
        }
    }

    /* The matrix of a tile, and the tile's number among those of the matrix. */
    __device__ const int8_matrix &matrix_of(uint32_t tile, uint32_t *in_matrix) const {
        uint32_t m = 0;
#pragma unroll 1
        while (tile >= p.of[m].tiles_end)
            m++;
        *in_matrix = tile - (m ? p.of[m - 1].tiles_end : 0);
        return p.of[m];
    }

    /* ---- Copying ---- */

    /* By the warp that copies: its first lane codes, its second one groups. */
    __device__ void copy_weights() {
        copy_pipeline landed = pipeline;
        uint32_t in_flight = 0;
        for_pieces([&](const tile_piece &piece) {
            uint32_t tile;
            const int8_matrix &m = matrix_of(piece.tile, &tile);
            for_stages(piece, [&](uint32_t at, uint32_t count) {
                const uint32_t most = has_inputs() ? (uint32_t)ROW_LATE_STAGES : (uint32_t)ROW_EARLY_STAGES;
                for (; in_flight >= most; in_flight--) {
                    landed.wait_until_full();
                    landed.next();
                }
                copy_stage(m, (size_t)tile * p.blocks() + at, count);
                in_flight++;
            });
        });
    }

    /* The same in all lanes. */
    __device__ bool has_inputs() const {
        return __shfl_sync(0xffffffffu, (int)has_ended(&barriers.has_inputs, 0), 0) != 0;
    }

    __device__ void copy_stage(const int8_matrix &m, size_t block, uint32_t count) {
        uint8_t *stage = shared + pipeline.stage * STAGE_BYTES;
        copy_barrier *full = &pipeline.full[pipeline.stage];
        pipeline.wait_until_empty();
        announce_by_warp(full, count * (INT8_CODE_BYTES + GROUP_BYTES));
        const copy_piece codes = {stage, m.codes + block * INT8_CODE_BYTES, count * INT8_CODE_BYTES},
                         groups = {stage + GROUPS_AT, m.groups + block * GROUP_BYTES, count * GROUP_BYTES};
        copy_by_warp(lane == 0 ? codes : groups, 2, full, true);
        end_copies(full);
        pipeline.next();
        __syncwarp(); /* no lane waits for a phase that another one has left behind */
    }

    /* ---- Inputs ---- */

    /* The multiplying warps wait for one another. */
    __device__ void meet() {
#if defined(__CUDACC__)
        asm volatile("bar.sync 1, %0;" ::"n"(WARPS * WARP) : "memory");
#else
        __syncwarp();
        if (lane == 0)
            arrive(&barriers.met);
        wait_for_phase(&barriers.met, meetings);
        meetings ^= 1;
#endif
    }

    /* Whether the warp has some in a round. */
    template <int EACH>
    __device__ bool has_columns(int round) const {
        return ((uint32_t)round * WARPS + warp) * WARP * EACH < p.columns;
    }

    /* Rounds the row. of: of each round a thread's columns, those of a round after those of the one before;
     * zeros past the row's end. largest: shared memory, a word for each warp. */
    template <int EACH, int ROUNDS>
    __device__ void round_row(row_part<EACH> *of, uint32_t *largest) {
        uint32_t magnitude = 0;
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            if (!has_columns<EACH>(r))
                break;
            hadamard_of_warp<EACH>(of[r].v, p.rotation);
            magnitude = larger<EACH>(magnitude, of[r].v);
        }
        magnitude = largest_of_lanes(magnitude, WARP);
        if (lane == 0)
            largest[warp] = magnitude;
        meet();
        const row_divisor by(largest_of_lanes(lane < WARPS ? largest[lane] : 0, WARP));
#pragma unroll
        for (int r = 0; r < ROUNDS && has_columns<EACH>(r); r++)
            store_codes<EACH>(by, ((uint32_t)r * WARPS * WARP + threadIdx.x) * EACH, of[r].v);
        if (threadIdx.x == 0)
            x_scale = p.rotation > 0 ? by.scale * p.factor : by.scale;
    }

    template <int EACH>
    __device__ void store_codes(const row_divisor &by, uint32_t column, const float v[EACH]) const {
        uint32_t words[2];
        int32_t sum = by.find_codes<EACH>(v, words);
        for (unsigned distance = 1; distance < UNIT / EACH; distance *= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, (int)distance);
        if (column >= p.columns)
            return;
        uint8_t *to = x + column / UNIT * UNIT_BYTES + column % UNIT / 8 * 8;
        if (EACH == 8)
            put_codes(reinterpret_cast<uint32_t *>(to), words[0], words[1]);
        else
            put_codes(reinterpret_cast<uint16_t *>(to) + column % 8 / 4, words[0], words[1]);
        if (column % UNIT == 0)
            unit_sums[column / UNIT] = sum;
    }

    /* What a quarter of a unit's columns has in both columns of the operand, or half of that. */
    template <typename Word>
    __device__ static void put_codes(Word *to, uint32_t even, uint32_t odd) {
        constexpr unsigned WORDS = 4 / sizeof(Word), SECOND = UNIT / sizeof(Word);
        to[0] = (Word)odd;
        to[WORDS] = (Word)negatives(odd);
        to[SECOND] = 0;
        to[SECOND + WORDS] = (Word)even;
    }

    /* Of four bytes, none of which is -128. */
    __device__ static uint32_t negatives(uint32_t bytes) {
        const uint32_t inverted = ~bytes;
        return ((inverted & 0x7f7f7f7fu) + 0x01010101u) ^ (inverted & 0x80808080u);
    }

    /* ---- Multiplying ---- */

    /* make_inputs() waits for the kernels before and calls round_row. */
    template <typename MakeInputs>
    __device__ void multiply_all(const MakeInputs &make_inputs) {
        make_inputs();
        meet();
        if (threadIdx.x == 0)
            arrive(&barriers.has_inputs);
        copy_pipeline exchange(barriers.given + fragment, barriers.taken + fragment, 1);
        uint32_t number = 0;
        for_pieces([&](const tile_piece &piece) {
            int32_t sums[2] = {0, 0};
            for_stages(piece, [&](uint32_t at, uint32_t count) {
                if (number++ % ROW_TURNS == turn) {
                    pipeline.wait_until_full();
                    if (count == ROW_STAGE_BLOCKS)
                        add_stage<ROW_STAGE_BLOCKS>(at, sums);
                    else
                        add_stage<1>(at, sums);
                    pipeline.release(lane);
                }
                pipeline.next();
            });
            add_lanes(sums);
            const int32_t sum = lane % 4 == 0 ? sums[0] : sums[1];
            if (turn > 0)
                give_sum(exchange, sum);
            else
                finish(piece, exchange, sum);
        });
    }

    /* In each of four neighbouring lanes, their sum. */
    __device__ static void add_lanes(int32_t sums[2]) {
        for (int h = 0; h < 2; h++)
            for (int distance = 1; distance < 4; distance *= 2)
                sums[h] += __shfl_xor_sync(0xffffffffu, sums[h], distance);
    }

    /* Adds COUNT blocks of columns to the sums of rows r and r + 8, each of which four lanes share. */
    template <int COUNT>
    __device__ void add_stage(uint32_t block, int32_t sums[2]) {
        const uint8_t *stage = shared + pipeline.stage * STAGE_BYTES;
        load_inputs<COUNT>(block);
        int32_t of_units[COUNT][4] = {};
#pragma unroll
        for (int b = 0; b < COUNT; b++) {
            const uint4 *codes =
                reinterpret_cast<const uint4 *>(stage + b * INT8_CODE_BYTES + fragment * INT8_FRAGMENT_BYTES);
            const uint4 pairs[2] = {codes[lane], codes[WARP + lane]};
#pragma unroll
            for (int u = 0; u < INT8_UNITS; u++) {
                const uint4 pair = pairs[u / 2];
                const uint32_t first = u % 2 ? pair.z : pair.x, second = u % 2 ? pair.w : pair.y;
                const uint32_t weights[4] = {first, second, first & 0x0f0f0f0fu, second & 0x0f0f0f0fu};
                multiply_add_bytes(of_units[b], weights, inputs[b][u].x, inputs[b][u].y, of_units[b]);
            }
        }
#pragma unroll
        for (int b = 0; b < COUNT; b++)
            scale_units(stage + GROUPS_AT + b * GROUP_BYTES, block + (uint32_t)b, of_units[b], sums);
    }

    /* A lane's part of each block's inputs is of one unit. */
    template <int COUNT>
    __device__ void load_inputs(uint32_t block) {
        const uint8_t *from = x + block * INT8_UNITS * UNIT_BYTES + lane * sizeof(uint2);
#pragma unroll
        for (int b = 0; b < COUNT; b++)
#pragma unroll
            for (uint32_t u = 0; u < INT8_UNITS; u++)
                if (lane / 8 == u)
                    inputs[b][u] = *reinterpret_cast<const uint2 *>(from + b * INT8_UNITS * UNIT_BYTES);
    }

    /* A lane has the sums of one unit. */
    __device__ void scale_units(const uint8_t *groups, uint32_t block, const int32_t of_units[4],
                                int32_t sums[2]) const {
        const uint32_t unit = lane % 4;
        const uint32_t both = reinterpret_cast<const uint16_t *>(
            groups +
            fragment * GROUPS * GB_FRAGMENT_ROWS)[unit * UNIT / GROUP * (GB_FRAGMENT_ROWS / 2) + lane / 4];
        const int32_t of_inputs = unit_sums[block * INT8_UNITS + unit];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const gb_group_integers group = gb_get_group_integers(4, (uint8_t)(both >> (8 * h)));
            const int32_t sum = (of_units[2 * h] >> 4) + of_units[2 * h + 1];
            sums[h] += (sum - (int32_t)group.zero * of_inputs) * (int32_t)group.scale;
        }
    }

    /* ---- Results ---- */

    /* Of a fragment's rows r and r + 8 a quad's first lane has one and its second lane the other. */
    __device__ bool has_output() const {
        return lane % 4 < 2;
    }
    __device__ uint32_t output_in_tile() const {
        return fragment * GB_FRAGMENT_ROWS + lane % 4 * 8 + lane / 4;
    }

    /* Where the warp of a turn behind the first one hands its sum over. */
    __device__ int32_t &given(uint32_t by) const {
        int32_t *all = reinterpret_cast<int32_t *>(x + row_memory(p.columns).given_at);
        return all[(by - 1) * GB_TILE_ROWS + output_in_tile()];
    }

    __device__ void give_sum(copy_pipeline &exchange, int32_t sum) const {
        exchange.wait_until_empty();
        if (has_output())
            given(turn) = sum;
        arrive_by_warp(exchange.full, lane);
        exchange.next();
    }

    __device__ int32_t take_sum(copy_pipeline &exchange) const {
        exchange.wait_until_full();
        int32_t sum = 0;
        for (uint32_t by = 1; by < ROW_TURNS && has_output(); by++)
            sum += given(by);
        exchange.release(lane);
        exchange.next();
        return sum;
    }

    __device__ void finish(const tile_piece &piece, copy_pipeline &exchange, int32_t sum) const {
        uint32_t tile;
        const int8_matrix &m = matrix_of(piece.tile, &tile);
        const size_t output = (size_t)tile * GB_TILE_ROWS + output_in_tile();
        const uint16_t scale = has_output() ? m.row_scales[output] : 0; /* on its way while sums are joined */
        sum += take_sum(exchange);
        const bool is_whole = piece.end - piece.begin == p.blocks();
        if (has_output() && (is_whole || join(piece.tile, &sum)))
            m.y[output] = int8_result(sum, x_scale, gb_widen_half(scale, GB_F16));
    }

    /* Adds a piece's sum to those of the tile's other pieces; false but for the last one, which has all. One
     * exchange with memory does it, because the number of pieces stands above their sum. */
    __device__ bool join(uint32_t tile, int32_t *sum) const {
        const even_runs runs(p);
        const uint32_t first = runs.owner_of(tile * p.blocks()),
                       last = runs.owner_of((tile + 1) * p.blocks() - 1);
        unsigned long long *to = p.joined + (size_t)first * GB_TILE_ROWS + output_in_tile();
        const unsigned long long mine = (1ull << ROW_SUM_BITS) + (unsigned long long)(int64_t)*sum;
        const unsigned long long all = atomicAdd(to, mine) + mine;
        *sum = (int32_t)(uint32_t)all;
        if ((all - (unsigned long long)(int64_t)*sum) >> ROW_SUM_BITS != last - first + 1)
            return false;
        *to = 0;
        return true;
    }
};

} // namespace gb_cuda

#endif
