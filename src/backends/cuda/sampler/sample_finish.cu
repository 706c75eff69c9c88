/* SPDX-License-Identifier: Apache-2.0
 *
 * The last launch of a sample step: the tokens that many blocks have drawn, and the draws that had to wait
 * for a threshold. Blocks share a row, and the last to be done has its token.
 */
#include "backends/cuda/device/last_block.cuh"
#include "backends/cuda/sampler/candidates.cuh"
#include "backends/cuda/sampler/draw.cuh"
#include "backends/cuda/sampler/log_mass.cuh"

using namespace gb_cuda;

/* Where top-p's threshold lies, by the masses of all bins. */
struct mass_cut {
    int bin;
    weight_sum above, limit; /* masses: of the bins above, and top-p's limit */
};

__device__ static mass_cut find_cut(const weight_sum *bins, float top_p, candidate_list *list) {
    enum { EACH = MASS_BINS / ROW_THREADS };
    weight_sum own = 0;
    for (unsigned i = 0; i < EACH; i++)
        own += bins[i * ROW_THREADS + threadIdx.x];
    const weight_sum limit = gb_mass_limit(block_total(own, list->of_warps), top_p);
    const found_bin found =
        find_bin<MASS_BINS>(0, limit, &list->select.finding, [&](unsigned bin) { return bins[bin]; });
    return {found.bin, found.above, limit};
}

/* Appends to the row's list what lies in the bin with the threshold; needs all lanes of the warp. */
__device__ static void list_logit(const sampling &a, size_t b, bool is_listed, uint32_t index) {
    const unsigned lane = threadIdx.x % WARP, votes = __ballot_sync(0xffffffffu, is_listed);
    uint32_t at = 0;
    if (votes == 0)
        return;
    if (lane == 0)
        at = atomicAdd(&a.rows[b].listed, (uint32_t)__popc(votes));
    at = __shfl_sync(0xffffffffu, at, 0) + (uint32_t)__popc(votes & ((1u << lane) - 1));
    if (is_listed)
        a.listed[b * a.size + at] = index;
}

/* What top-p keeps of the bin with the threshold, by the masses in it. Needs all threads. */
static __device__ __noinline__ weight_sum draw_listed(const uint32_t *listed, uint32_t count, drawing d,
                                                      weight_sum limit, row_settings r,
                                                      candidate_list *list) {
    const auto s_of = [&](uint32_t i) { return gb_scale(d.row[listed[i]], d.temperature); };
    if (count <= MOST_CANDIDATES) {
        for (uint32_t i = threadIdx.x; i < count; i += ROW_THREADS) {
            list->value[i] = s_of(i);
            list->index[i] = listed[i];
        }
        if (threadIdx.x == 0)
            list->count = count;
        const cut_rule rule = {d.size, 1.0f, d.max_s, 0, r.top_p, true, limit};
        return draw_candidates(list, rule, r);
    }
    const uint32_t threshold = select_in_block(count, limit, &list->select, [&](unsigned i, uint32_t *key) {
        const float s = s_of(i);
        *key = key_of(s);
        return (weight_sum)gb_mass(s, d.max_s);
    });
    weight_sum best = 0;
    for (uint32_t i = threadIdx.x; i < count; i += ROW_THREADS) {
        const float s = s_of(i);
        if (s < value_of(threshold) || !gb_is_above(r.floor, s, d.max_s, gb_mass(s, d.max_s)))
            continue;
        const weight_sum score = score_of(r.seed, d.size, s, listed[i]);
        best = score > best ? score : best;
    }
    return block_best(best, list->of_warps);
}

/* Writes what the step says of a row; one thread does. */
__device__ static void write_token(const sampling &a, size_t b, int32_t token) {
    a.token[b] = token;
    if (!a.wanted)
        return;
    const bool is_wanted = a.wanted[b];
    const float largest = is_wanted ? a.rows[b].largest : 0.0f;
    const float log_of_sum = is_wanted ? log_of_mass(a.rows[b].mass) : 0.0f;
    a.normalizer[b * 2] = largest;
    a.normalizer[b * 2 + 1] = log_of_sum;
    a.logprob[b] =
        is_wanted ? log_probability_of(a.logits + b * a.size, a.size, token, largest, log_of_sum) : 0.0f;
}

static __global__ void __launch_bounds__(ROW_THREADS) run_sample_finish(GB_GRID_CONSTANT sampling a) {
    __shared__ candidate_list list;
    const size_t b = blockIdx.y;
    const row_settings r = settings_of(a, b);
    wait_for_earlier();
    row_state &state = a.rows[b];
    const uint32_t kind = state.kind;
    weight_sum best = state.drawn;
    if (kind == ROW_IS_DONE || kind == ROW_IS_DRAWN) {
        if (blockIdx.x == 0 && threadIdx.x == 0)
            write_token(a, b, kind == ROW_IS_DONE ? a.token[b] : token_of(best));
        return;
    }
    drawing d = drawing_of(a, b, r, state.max_s, state.least);
    mass_cut cut = {-1, 0, 0};
    if (kind == ROW_IS_CUT)
        cut = find_cut(a.bins + b * MASS_BINS, r.top_p, &list);
    d.bin = cut.bin;
    d.is_even = kind == ROW_IS_EVEN;
    visit_part(d, [&](bool exists, uint32_t index, float x, uint32_t word) {
        float s;
        const bool competes = exists && is_in(d, x, &s);
        const bool is_listed = competes && cut.bin >= 0 && mass_bin(s, d.max_s) == cut.bin;
        list_logit(a, b, is_listed, index);
        if (competes && !is_listed)
            compete(d, s, index, word, &best);
    });
    best = block_best(best, list.of_warps);
    if (threadIdx.x == 0)
        atomicMax(&state.drawn, best);
    if (!is_last_block(&state.blocks_done, gridDim.x))
        return;
    best = state.drawn;
    if (kind == ROW_IS_CUT) {
        const weight_sum of_list =
            draw_listed(a.listed + b * a.size, state.listed, d, cut.limit - cut.above, r, &list);
        best = of_list > best ? of_list : best;
    }
    if (threadIdx.x == 0)
        write_token(a, b, token_of(best));
}

void gb_cuda::launch_finish(const sampling &a, dim3 grid, gb_cuda_launch_list *launches) {
    add_launch(launches, "sample_finish", run_sample_finish, grid, ROW_THREADS, 0, a);
}
