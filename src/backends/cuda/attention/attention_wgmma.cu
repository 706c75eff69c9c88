/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of prefill over caches of bfloat16 or codes on Hopper: as attention_prefill.cu, with
 * products of warpgroups (wgmma), two of which multiply while a third copies tiles of keys and values ahead
 * (Shah et al., FlashAttention-3, 2024). Either has 64 queries; of heads of 512 both have the same, and each
 * scores half of a tile's keys and has half of the elements.
 */
#include "backends/cuda/attention/attention_prompt.cuh"
#include "backends/cuda/device/copy_pipeline.cuh"
#include "backends/cuda/device/wgmma.cuh"

using namespace gb_cuda;

enum { GROUP_ROWS = 64, MULTIPLIERS = 2, THREADS = (MULTIPLIERS + 1) * WARPGROUP };
enum { MULTIPLYING_WARPS = MULTIPLIERS * WARPGROUP / WARP };
enum { COPYING_REGISTERS = 40, MULTIPLYING_REGISTERS = 232 };
constexpr unsigned KEYS = 64; /* of a tile */
constexpr unsigned PART = 64; /* elements of a row that lie side by side: 128 bytes */

template <unsigned SIZE>
struct warpgroup_shape {
    static constexpr unsigned HALVES = SIZE > 256 ? 2 : 1;
    static constexpr unsigned ROWS = MULTIPLIERS / HALVES * GROUP_ROWS;
    static constexpr unsigned SCORES = KEYS / HALVES, COLUMNS = SIZE / HALVES; /* of a warpgroup */
    static constexpr unsigned STAGES = HALVES > 1 ? 2 : 4;                     /* tiles of keys or values */
};

template <unsigned SIZE>
struct warpgroup_memory {
    using shape = warpgroup_shape<SIZE>;
    uint16_t query[SIZE / PART][shape::ROWS * PART];
    uint16_t stages[shape::STAGES][SIZE / PART][KEYS * PART];
    uint16_t weights[shape::HALVES > 1 ? shape::ROWS *KEYS : PART];
    float largest[shape::HALVES][shape::ROWS], sum[shape::HALVES][shape::ROWS];
};

/* What a block walks: its queries, and the tiles of keys that any of them reads. */
struct walk {
    query_tile t;
    unsigned first, end;     /* positions that are read */
    unsigned common, lowest; /* all queries read those from `common` to `lowest` */
};

__device__ static walk begin_walk(const attention &a, const query_tile &t) {
    const unsigned lowest = (unsigned)a.positions[t.first], end = (unsigned)a.positions[t.end - 1] + 1;
    return walk{t, (unsigned)first_read(a, lowest), end, (unsigned)first_read(a, end - 1), lowest};
}

/* ---- The warpgroup that copies ------------------------------------------------------------------------- */

/* Four codes of a byte each as bfloat16: of 8 bits, or of 4 as they are stored. */
template <unsigned FORM>
__device__ static uint2 widen_four(uint32_t codes, float scale) {
    constexpr uint32_t EXPONENT = 0x4b000000; /* of 2^23, in whose last byte a code + ZERO comes to lie */
    constexpr uint32_t ZERO = FORM == AS_Q8 ? 128 : 8;
    constexpr float OFFSET = 8388608.0f + ZERO;
    const uint32_t unsigned_codes = FORM == AS_Q8 ? codes ^ 0x80808080 : codes;
    const float x[4] = {gb_float_from_bits(select_bytes<0x7440>(unsigned_codes, EXPONENT)) - OFFSET,
                        gb_float_from_bits(select_bytes<0x7441>(unsigned_codes, EXPONENT)) - OFFSET,
                        gb_float_from_bits(select_bytes<0x7442>(unsigned_codes, EXPONENT)) - OFFSET,
                        gb_float_from_bits(select_bytes<0x7443>(unsigned_codes, EXPONENT)) - OFFSET};
    return uint2{pack_bf16(x[0] * scale, x[1] * scale), pack_bf16(x[2] * scale, x[3] * scale)};
}

/* Where 16 codes of a row lie that a thread widens, number `number` of them: the first byte, the first
 * element of eight, and that of the other eight. */
struct sixteen_codes {
    unsigned byte, element, other;
};

template <unsigned FORM>
__device__ static sixteen_codes place_of_sixteen(unsigned number) {
    const unsigned e = number * 16, of_group = number / 2 * GB_CODE_GROUP + number % 2 * 8;
    return FORM == AS_Q8 ? sixteen_codes{e, e, e + 8} : sixteen_codes{number * 8, of_group, of_group + 16};
}

/* They as words of four bytes. */
template <unsigned FORM>
__device__ static uint4 load_sixteen(const uint8_t *from) {
    if constexpr (FORM == AS_Q8)
        return *reinterpret_cast<const uint4 *>(from);
    constexpr uint32_t LOWER = 0x0f0f0f0f;
    const uint2 two = *reinterpret_cast<const uint2 *>(from);
    return uint4{two.x & LOWER, two.y & LOWER, two.x >> 4 & LOWER, two.y >> 4 & LOWER};
}

/* The same of a tile of codes, 16 of a row at a time. scales: from a head's codes to their scales. */
template <unsigned SIZE, unsigned FORM>
__device__ static void widen_tile(const head_rows &rows, size_t scales, unsigned tile, const walk &w,
                                  uint16_t (*to)[KEYS * PART]) {
    constexpr unsigned ACROSS = SIZE / 16, AT_ONCE = WARPGROUP / ACROSS, LOADS = 4;
    const sixteen_codes mine = place_of_sixteen<FORM>(threadIdx.x % ACROSS);
    const unsigned first = threadIdx.x / ACROSS, row = tile % rows.capacity;
#pragma unroll 1
    for (unsigned done = 0; done < KEYS; done += AT_ONCE * LOADS) {
        uint4 codes[LOADS];
        uint16_t halves[LOADS];
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++) {
            const unsigned key = done + first + i * AT_ONCE;
            const bool is_there = tile + key >= w.first && tile + key < w.end;
            const uint8_t *from = row_of(rows, tile, row, key);
            const uint8_t *scale = from + scales + mine.element / GB_CODE_GROUP * 2;
            codes[i] = is_there ? load_sixteen<FORM>(from + mine.byte) : uint4{0, 0, 0, 0};
            halves[i] = is_there ? *reinterpret_cast<const uint16_t *>(scale) : (uint16_t)0;
        }
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++) {
            const unsigned key = done + first + i * AT_ONCE;
            const float scale = low_half(halves[i]);
            const uint2 four[4] = {widen_four<FORM>(codes[i].x, scale), widen_four<FORM>(codes[i].y, scale),
                                   widen_four<FORM>(codes[i].z, scale), widen_four<FORM>(codes[i].w, scale)};
#pragma unroll
            for (unsigned h = 0; h < 2; h++) {
                const unsigned e = h ? mine.other : mine.element;
                *reinterpret_cast<uint4 *>(to[e / PART] + place_in<PART>(key, e % PART)) =
                    uint4{four[2 * h].x, four[2 * h].y, four[2 * h + 1].x, four[2 * h + 1].y};
            }
        }
    }
}

/* A thread's pieces of a tile: of every AT_ONCE-th row. Positions first .. end - 1 are there, the tile's
 * others are zeros. */
template <unsigned SIZE>
__device__ static void copy_tile(const head_rows &rows, unsigned tile, const walk &w,
                                 uint16_t (*to)[KEYS * PART]) {
    constexpr unsigned ACROSS = SIZE / 8, AT_ONCE = WARPGROUP / ACROSS;
    const unsigned e = threadIdx.x % ACROSS * 8, first = threadIdx.x / ACROSS, row = tile % rows.capacity;
    const bool is_in_room = tile >= rows.room_begin,
               is_whole = is_in_room || (tile + KEYS <= rows.room_begin && row + KEYS <= rows.capacity);
    if (tile >= w.first && tile + KEYS <= w.end && is_whole) {
        const uint8_t *from = row_of(rows, tile, row, first) + e * 2;
#pragma unroll 8
        for (unsigned i = 0; i < KEYS / AT_ONCE; i++, from += rows.stride * AT_ONCE)
            copy_16(to[e / PART] + place_in<PART>(first + i * AT_ONCE, e % PART), from);
        return;
    }
#pragma unroll 4
    for (unsigned i = 0; i < KEYS / AT_ONCE; i++) {
        const unsigned key = first + i * AT_ONCE;
        copy_16(to[e / PART] + place_in<PART>(key, e % PART), row_of(rows, tile, row, key) + e * 2,
                tile + key >= w.first && tile + key < w.end);
    }
}

template <unsigned SIZE, unsigned FORM>
__device__ static void copy_tiles(const attention &a, const walk &w, copy_pipeline pipeline,
                                  warpgroup_memory<SIZE> &shared) {
    const head_rows rows[] = {rows_of(a, a.keys, w.t), rows_of(a, a.values, w.t)};
    const size_t scales = scales_behind(a.keys, w.t.kv_head);
    for (unsigned tile = w.first / KEYS * KEYS; tile < w.end; tile += KEYS)
#pragma unroll
        for (unsigned i = 0; i < 2; i++) {
            pipeline.wait_until_empty();
            if constexpr (HAS_CODES<FORM>) {
                widen_tile<SIZE, FORM>(rows[i], scales, tile, w, shared.stages[pipeline.stage]);
                arrive(&pipeline.full[pipeline.stage]);
            } else {
                copy_tile<SIZE>(rows[i], tile, w, shared.stages[pipeline.stage]);
                arrive_when_copied(&pipeline.full[pipeline.stage]);
            }
            pipeline.next();
        }
}

/* ---- The warpgroups that multiply ---------------------------------------------------------------------- */

/* What a warp has to do: 16 rows of the block's queries, and its share of keys and elements. */
struct share {
    unsigned group_row, warp_row, half; /* of its warpgroup the first row; its own */
};

template <unsigned SIZE>
__device__ static share find_share() {
    const unsigned warp = __shfl_sync(0xffffffffu, threadIdx.x / WARP, 0) - WARPGROUP / WARP,
                   group = warp / (WARPGROUP / WARP);
    const unsigned group_row = warpgroup_shape<SIZE>::HALVES > 1 ? 0 : group * GROUP_ROWS;
    return share{group_row, group_row + warp % (WARPGROUP / WARP) * 16,
                 warpgroup_shape<SIZE>::HALVES > 1 ? group : 0};
}

/* Eight elements of a query, of which a warp has whole blocks of the rotation. */
__device__ static uint4 pack_query(const float4 *from, unsigned rotation) {
    const float4 first = from[0], second = from[1];
    float x[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
    rotate_eight(x, rotation);
    return uint4{pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7])};
}

template <unsigned SIZE>
__device__ static void load_queries(const attention &a, const query_tile &t, warpgroup_memory<SIZE> &shared) {
    constexpr unsigned ACROSS = SIZE / 8, AT_ONCE = MULTIPLIERS * WARPGROUP / ACROSS;
    const unsigned e = threadIdx.x % ACROSS * 8, first = (threadIdx.x - WARPGROUP) / ACROSS;
#pragma unroll 16
    for (unsigned i = 0; i < warpgroup_shape<SIZE>::ROWS / AT_ONCE; i++) {
        const unsigned row = first + i * AT_ONCE;
        const query_place p = place_of(t, row);
        const float *x = a.query + place_of_element(a, p.is_there ? p.token : 0, p.is_there ? p.head : 0, e);
        const uint4 packed = pack_query(reinterpret_cast<const float4 *>(x), a.keys.rotation);
        *reinterpret_cast<uint4 *>(shared.query[e / PART] + place_in<PART>(row, e % PART)) =
            p.is_there && is_own_half(a, p.head, e) ? packed : uint4{0, 0, 0, 0};
    }
}

/* Begins the scores of the warpgroup's queries and its keys of a tile. */
template <unsigned SIZE>
__device__ static void start_scores(const warpgroup_memory<SIZE> &shared, unsigned stage, const share &of,
                                    float (&scores)[warpgroup_shape<SIZE>::SCORES / 2]) {
    constexpr unsigned SCORES = warpgroup_shape<SIZE>::SCORES;
#pragma unroll
    for (unsigned i = 0; i < SCORES / 2; i++)
        scores[i] = 0;
    begin_products();
#pragma unroll
    for (unsigned part = 0; part < SIZE / PART; part++)
#pragma unroll
        for (unsigned step = 0; step < PART / 16; step++)
            start_products_of<SCORES>(
                scores, operand_b(shared.query[part] + of.group_row * PART) + step * B_STEP,
                operand_b(shared.stages[stage][part] + of.half * SCORES * PART) + step * B_STEP);
    end_products();
}

/* Begins y += weights * values of a tile. */
template <unsigned SIZE>
__device__ static void start_values(const warpgroup_memory<SIZE> &shared, unsigned stage, const share &of,
                                    const uint32_t (&weights)[KEYS / 16][4],
                                    float (&y)[warpgroup_shape<SIZE>::COLUMNS / 2]) {
    constexpr unsigned COLUMNS = warpgroup_shape<SIZE>::COLUMNS;
    begin_products();
#pragma unroll
    for (unsigned step = 0; step < KEYS / 16; step++)
        start_products_by_columns<COLUMNS>(
            y, weights[step],
            columns_b(shared.stages[stage][of.half * COLUMNS / PART], step * 16, KEYS * PART * 2));
    end_products();
}

/* Weights of 16 queries and a tile's keys, as a of products: the warp's own scores. */
__device__ static void pack_own(const float (&scores)[KEYS / 2], uint32_t (&weights)[KEYS / 16][4]) {
#pragma unroll
    for (unsigned i = 0; i < KEYS / 4; i++) {
        weights[i / 4][i % 4] = pack_bf16(scores[2 * i], scores[2 * i + 1]);
        keep_in_place(weights[i / 4][i % 4]);
    }
}

/* The same of scores that two warps have halves of, by way of shared memory. */
template <typename Meet>
__device__ static void exchange(const float (&scores)[KEYS / 4], const share &of, uint16_t *shared,
                                const Meet &meet, uint32_t (&weights)[KEYS / 16][4]) {
    const unsigned lane = threadIdx.x % WARP, row = of.warp_row + lane / 4;
#pragma unroll
    for (unsigned i = 0; i < KEYS / 16; i++)
#pragma unroll
        for (unsigned r = 0; r < 2; r++)
            *reinterpret_cast<uint32_t *>(shared + place_in<KEYS>(row + r * 8, of.half * KEYS / 2 + i * 8) +
                                          lane % 4 * 2) =
                pack_bf16(scores[i * 4 + 2 * r], scores[i * 4 + 2 * r + 1]);
    meet();
#pragma unroll
    for (unsigned step = 0; step < KEYS / 16; step++) {
        load_matrices<false>(weights[step],
                             shared + place_in<KEYS>(of.warp_row + lane % 16, step * 16 + lane / 16 * 8));
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            keep_in_place(weights[step][i]);
    }
}

template <unsigned SIZE, typename Meet>
__device__ static void store(const attention &a, const query_tile &t, const share &of, const queries &q,
                             warpgroup_memory<SIZE> &shared, const Meet &meet,
                             float (&y)[warpgroup_shape<SIZE>::COLUMNS / 2]) {
    constexpr unsigned COLUMNS = warpgroup_shape<SIZE>::COLUMNS;
    rotate_sums<COLUMNS>(a.values.rotation, y);
    float sums[2] = {quad_sum(q.sum[0]), quad_sum(q.sum[1])};
    if constexpr (warpgroup_shape<SIZE>::HALVES > 1) {
        put_largest(shared.sum[of.half], of.warp_row, sums);
        meet();
    }
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        const unsigned row = of.warp_row + threadIdx.x % WARP / 4 + r * 8;
        float sum = sums[r];
        if constexpr (warpgroup_shape<SIZE>::HALVES > 1)
            sum = shared.sum[0][row] + shared.sum[1][row];
        const query_place p = place_of(t, row);
        store_query<COLUMNS>(a, p, of.half * COLUMNS, r, divisor_of(a, p.head, sum, q.largest[r] * a.scale),
                             y);
    }
}

/* ---- Walking ------------------------------------------------------------------------------------------- */

/* The tile at `tile` is read by all queries. */
__device__ static bool is_read_by_all(const walk &w, unsigned tile) {
    return tile >= w.common && tile + KEYS <= w.lowest + 1;
}

/* A warpgroup's scores of a tile become weights. */
__device__ static void weigh_own(const walk &w, unsigned tile, float scale, queries &q,
                                 float (&scores)[KEYS / 2], float (&corrections)[2]) {
    float largest[2];
    mask<KEYS>(q, tile, is_read_by_all(w, tile), scores, largest);
    weigh<KEYS>(q, largest, scale, scores, corrections);
}

/* Waits until a stage has been copied: by other threads, so that the tensor cores are to see it. */
__device__ static void wait_for_stage(const copy_pipeline &pipeline) {
    pipeline.wait_until_full();
    finish_writing();
}

/* The tensor cores have read the stage. Keys and values have stages by turns. */
__device__ static void leave_stage(copy_pipeline &pipeline) {
    pipeline.release(threadIdx.x % WARP);
    pipeline.next();
    pipeline.next();
}

/* Tile after tile. The scores of the next one are multiplied before the values of this one, and become
 * weights while these are. */
template <unsigned SIZE>
__device__ static void walk_alone(float scale, const walk &w, copy_pipeline keys, const share &of,
                                  const warpgroup_memory<SIZE> &shared, queries &q,
                                  float (&y)[warpgroup_shape<SIZE>::COLUMNS / 2]) {
    copy_pipeline values = keys;
    values.next();
    unsigned tile = w.first / KEYS * KEYS;
    float scores[KEYS / 2], corrections[2];
    uint32_t weights[KEYS / 16][4];
    wait_for_stage(keys);
    start_scores<SIZE>(shared, keys.stage, of, scores);
    wait_for_products<0>();
    leave_stage(keys);
    weigh_own(w, tile, scale, q, scores, corrections);
    for (tile += KEYS; tile < w.end; tile += KEYS) {
        pack_own(scores, weights);
        wait_for_stage(keys);
        start_scores<SIZE>(shared, keys.stage, of, scores);
        wait_for_stage(values);
        start_values<SIZE>(shared, values.stage, of, weights, y);
        wait_for_products<1>();
        leave_stage(keys);
        weigh_own(w, tile, scale, q, scores, corrections);
        wait_for_products<0>();
        leave_stage(values);
        correct<warpgroup_shape<SIZE>::COLUMNS>(y, corrections);
    }
    pack_own(scores, weights);
    wait_for_stage(values);
    start_values<SIZE>(shared, values.stage, of, weights, y);
    wait_for_products<0>();
    leave_stage(values);
}

/* The same of two warpgroups with the same queries. */
template <unsigned SIZE, typename Meet>
__device__ static void walk_together(float scale, const walk &w, copy_pipeline keys, const share &of,
                                     warpgroup_memory<SIZE> &shared, const Meet &meet, queries &q,
                                     float (&y)[warpgroup_shape<SIZE>::COLUMNS / 2]) {
    constexpr unsigned SCORES = warpgroup_shape<SIZE>::SCORES;
    copy_pipeline values = keys;
    values.next();
    for (unsigned tile = w.first / KEYS * KEYS; tile < w.end; tile += KEYS) {
        float scores[SCORES / 2], largest[2], corrections[2];
        uint32_t weights[KEYS / 16][4];
        wait_for_stage(keys);
        start_scores<SIZE>(shared, keys.stage, of, scores);
        wait_for_products<0>();
        leave_stage(keys);
        mask<SCORES>(q, tile + of.half * SCORES, is_read_by_all(w, tile), scores, largest);
        put_largest(shared.largest[of.half], of.warp_row, largest);
        meet();
        take_largest(shared.largest[1 - of.half], of.warp_row, largest);
        weigh<SCORES>(q, largest, scale, scores, corrections);
        exchange(scores, of, shared.weights, meet, weights);
        correct<warpgroup_shape<SIZE>::COLUMNS>(y, corrections);
        wait_for_stage(values);
        start_values<SIZE>(shared, values.stage, of, weights, y);
        wait_for_products<0>();
        leave_stage(values);
    }
}

template <unsigned SIZE, typename Meet>
__device__ static void multiply_tiles(const attention &a, const walk &w, const copy_pipeline &pipeline,
                                      warpgroup_memory<SIZE> &shared, const Meet &meet) {
    const share of = find_share<SIZE>();
    const float scale = a.scale * LOG2_E; /* of powers of 2 */
    queries q;
    float y[warpgroup_shape<SIZE>::COLUMNS / 2] = {};
    find_queries(a, w.t, of.warp_row, q);
    load_queries<SIZE>(a, w.t, shared);
    finish_writing();
    meet();
    if constexpr (warpgroup_shape<SIZE>::HALVES > 1)
        walk_together<SIZE>(scale, w, pipeline, of, shared, meet, q, y);
    else
        walk_alone<SIZE>(scale, w, pipeline, of, shared, q, y);
    store<SIZE>(a, w.t, of, q, shared, meet, y);
}

/* Tile gridDim.x - 1 - blockIdx.x, so that those with the most keys begin first; kv head and part blockIdx.y.
 */
template <unsigned SIZE, unsigned FORM>
static __global__ void __launch_bounds__(THREADS, 1) run_attention_wgmma(attention a) {
#if defined(GB_HAS_WGMMA)
    constexpr unsigned STAGES = warpgroup_shape<SIZE>::STAGES;
    __shared__ copy_barrier full[STAGES], empty[STAGES], met;
    GB_DYNAMIC_SHARED(uint8_t, memory);
    warpgroup_memory<SIZE> &shared = *reinterpret_cast<warpgroup_memory<SIZE> *>(align_b(memory));
    const copy_pipeline pipeline(full, empty, STAGES);
    if (threadIdx.x == 0) {
        pipeline.create(WARPGROUP, MULTIPLYING_WARPS);
        begin_barrier(&met, MULTIPLYING_WARPS);
        finish_barriers();
    }
    wait_for_earlier();
    __syncthreads();
    const query_tile t = find_tile(a, gridDim.x - 1 - blockIdx.x, blockIdx.y);
    if (t.first == t.end)
        return;
    const walk w = begin_walk(a, t);
    if (threadIdx.x < WARPGROUP) {
        give_registers_back<COPYING_REGISTERS>();
        copy_tiles<SIZE, FORM>(a, w, pipeline, shared);
    } else {
        take_registers<MULTIPLYING_REGISTERS>();
        uint32_t parity = 0;
        multiply_tiles<SIZE>(a, w, pipeline, shared, [&] { meet_warps<MULTIPLYING_WARPS>(&met, parity); });
    }
#endif
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

template <unsigned SIZE, unsigned FORM>
static void launch(attention a, gb_cuda_launch_list *launches) {
    set_tiles(a, warpgroup_shape<SIZE>::ROWS);
    const dim3 grid((unsigned)(a.tokens / a.tile_tokens + a.run_count), (unsigned)(a.keys.heads * a.parts));
    add_launch(launches, "attention_wgmma", run_attention_wgmma<SIZE, FORM>, grid, THREADS,
               sizeof(warpgroup_memory<SIZE>) + B_ALIGNMENT, a);
}

template <unsigned FORM>
static void launch_size(const attention &a, gb_cuda_launch_list *launches) {
    if (a.keys.size == 128)
        launch<128, FORM>(a, launches);
    else if (a.keys.size == 256)
        launch<256, FORM>(a, launches);
    else
        launch<512, FORM>(a, launches);
}

void gb_cuda::attend_wgmma(const attention &a, gb_cuda_launch_list *launches) {
    if (a.form == AS_Q8)
        launch_size<AS_Q8>(a, launches);
    else if (a.form == AS_Q4)
        launch_size<AS_Q4>(a, launches);
    else
        launch_size<AS_BF16>(a, launches);
}
