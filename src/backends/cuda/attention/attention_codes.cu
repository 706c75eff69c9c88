/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of decode over caches of codes, as attention_decode.cu is over floats. Rows of codes come so fast
 * that one block would wait for its own threads: a multiprocessor has two.
 */
#include "backends/cuda/attention/attention_codes.cuh"
#include "backends/cuda/attention/attention_finish.cuh"

using namespace gb_cuda;

/* Two for each round on its way, and one for the values in use. */
enum { MOST_STAGES = 7, LEAST_STAGES = 3 };

template <typename S>
struct code_memory {
    union {
        code_round<S::SIZE> round;
        sums_memory<S::SIZE> all; /* when the products are done */
    };
    own_rows<S::SIZE, S::FORM> own;
    launch_rounds rounds;
};

/* The ring lies before the rest. */
template <typename S>
static constexpr size_t shared_bytes(unsigned stages) {
    return stages * (size_t)CODE_STAGE<S::SIZE, S::FORM> + sizeof(code_memory<S>);
}

/* Rounds on their way while another's values are in use. */
__device__ static unsigned rounds_ahead(unsigned stages) {
    return (stages - 1) / 2;
}

/* ---- Spans --------------------------------------------------------------------------------------------- */

/* A thread's sums of its piece so far, and the softmax of its query. */
template <typename S>
struct progress {
    code_sums<S> of_span, of_all;
    softmax all;
};

/* A span is complete. place: of parts, if other blocks have some. */
template <typename S>
__device__ static void close_span(const decoding &d, const piece &p, unsigned span, unsigned queries,
                                  unsigned place, const softmax &so_far, progress<S> &at) {
    const softmax of_span = {so_far.largest, query_sum<S>(so_far.sum)};
    join_halves_of_keys<S>(at.of_span);
    if (span == 0 || p.first > 0) {
        at.all = of_span;
        at.of_all = at.of_span;
    } else {
        const factors counted = add_softmax(at.all, of_span);
#pragma unroll
        for (unsigned i = 0; i < S::SUMS; i++)
            at.of_all.y[i] = add_sum(at.of_all.y[i], at.of_span.y[i], counted);
    }
    if (!is_left(p, span))
        return;
    if (threadIdx.x < 4 * S::QUERIES && threadIdx.x % 4 == 0)
        totals_of_part(d.parts, place, span)[S::query()] = at.all;
    store_code_sums<S>(at.of_all, queries, sums_of_part<S::SIZE>(d.parts, place, span));
}

/* A piece's sums are complete. Whether those of all of the token's spans are added up: then they are in
 * shared.all. */
template <typename S>
__device__ static bool close_piece(const decoding &d, const piece &p, const team_share &share,
                                   unsigned queries, unsigned place, const progress<S> &at,
                                   code_memory<S> &shared) {
    __syncthreads(); /* the products are done with this memory */
    if (!p.has_all())
        return gather_last<S::SIZE>(d, p, share, queries, place, shared.all);
    store_code_sums<S>(at.of_all, queries, shared.all.sums[0]);
    if (threadIdx.x < 4 * S::QUERIES && threadIdx.x % 4 == 0)
        shared.all.totals[S::query()] = at.all;
    return true;
}

/* The stages that the products are at. */
template <typename S>
struct code_ring {
    uint8_t *ring;
    unsigned stages, stage;

    /* The next stage. */
    __device__ uint8_t *take() {
        uint8_t *rows = ring + stage * CODE_STAGE<S::SIZE, S::FORM>;
        stage = stage + 1 < stages ? stage + 1 : 0;
        return rows;
    }
};

/* A round of keys, of which `count` are the span's and number `own`, if there is one, is the token's own. */
template <typename S>
__device__ static void attend_round(code_ring<S> &ring, code_copies<S::SIZE, S::FORM> &copies, unsigned own,
                                    unsigned count, softmax &so_far, code_sums<S> &sums,
                                    code_memory<S> &shared) {
    uint8_t *keys = ring.take(), *values = ring.take();
    if (rounds_ahead(ring.stages) > 2)
        wait_for_copies<2>();
    else if (rounds_ahead(ring.stages) > 1)
        wait_for_copies<1>();
    else
        wait_for_copies<0>();
    if (own != NO_POSITION) {
        __syncthreads(); /* others have copied zeros there */
        stage_own<S::SIZE, S::FORM>(keys, values, own, shared.own);
    }
    __syncthreads();
    score_codes<S>(keys, shared.round);
    __syncthreads();
    copies.begin_next(ring.ring, ring.stages); /* where these keys and the last round's values were */
    const code_weights<S> weights = weigh_codes<S>(shared.round, count, so_far);
    add_code_values<S>(values, weights, sums);
}

/* Goes through a piece, whose rows are on their way. */
template <typename S>
__device__ static void attend_piece(const decoding &d, const piece &p, const team_share &share,
                                    code_ring<S> &ring, code_copies<S::SIZE, S::FORM> &copies,
                                    code_memory<S> &shared) {
    query_tile t = heads_of(d.a, share.number);
    t.first = p.token;
    t.end = t.first + 1;
    positions_left left = positions_of(p, S::KEYS);
    const unsigned queries = count_of(t), place = share.team_with(p.round) * share.across + share.number;
    const bool has_own = d.appends && left.end == p.spans.end;
    eight_numbers own = {};
    if (has_own) /* on their way while queries are staged */
        own = load_numbers(find_own<S::SIZE>(d.a, t));
    stage_code_queries<S>(d.a, t, shared.round);
    if (has_own)
        append_own<S::SIZE, S::FORM>(d.a, t, own, shared.own);
    progress<S> at = {};
    for (unsigned span = p.first; span < p.end; span++) {
        const unsigned after = left.j + p.spans.size * S::KEYS, end = after < left.end ? after : left.end;
        softmax so_far = {-INFINITY, 0};
        at.of_span = {};
        for (; left.j < end; left.j += S::KEYS) {
            const bool adds_own = has_own && left.j + S::KEYS >= left.end;
            attend_round<S>(ring, copies, adds_own ? left.end - 1 - left.j : NO_POSITION, end - left.j,
                            so_far, at.of_span, shared);
        }
        close_span<S>(d, p, span, queries, place, so_far, at);
    }
    if (close_piece<S>(d, p, share, queries, place, at, shared))
        finish<S::SIZE>(d, t, shared.all);
    __syncthreads();
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

template <unsigned SIZE, unsigned FORM, bool ARE_FEW>
static __global__ void __launch_bounds__(SPAN_THREADS, 2) run_attention_codes(GB_GRID_CONSTANT decoding d) {
    using S = code_shape<SIZE, FORM, ARE_FEW>;
    GB_DYNAMIC_SHARED(uint8_t, memory);
    code_memory<S> &shared = *reinterpret_cast<code_memory<S> *>(memory + d.stages * CODE_STAGE<SIZE, FORM>);
    let_next_begin();
    fetch_parameters(d);
    count_rounds(d.a, S::KEYS, shared.rounds);
    const team_share share = share_of(d.a, shared.rounds);
    block_work work(d.a, shared.rounds, share, d.appends);
    code_copies<SIZE, FORM> copies(work);
    if (!d.appends) /* the kernel before this one wrote to the caches */
        wait_for_earlier();
#pragma unroll 1
    for (unsigned i = 0; i < rounds_ahead(d.stages); i++)
        copies.begin_next(memory, d.stages);
    if (d.appends)
        wait_for_earlier();
    code_ring<S> ring = {memory, d.stages, 0};
    for (piece p = work.take(); p.first < p.end; p = work.take())
        attend_piece<S>(d, p, share, ring, copies, shared);
    wait_for_copies<0>();
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* How many blocks a multiprocessor has room for, at most two, and the stages of each; none where there is too
 * little for one. */
struct code_room {
    unsigned blocks, stages;
};

template <typename S>
static code_room find_room() {
    constexpr size_t RESERVED = 1024; /* of each block, by the device */
    for (unsigned blocks = 2; blocks > 0; blocks--) {
        const size_t most = (most_shared_bytes() + RESERVED) / blocks - RESERVED;
        for (unsigned stages = MOST_STAGES; stages >= LEAST_STAGES; stages -= 2)
            if (shared_bytes<S>(stages) <= most)
                return code_room{blocks, stages};
    }
    return code_room{0, 0};
}

/* f of how a call's blocks share rounds, as a type. */
template <unsigned FORM, bool ARE_FEW, typename F>
static auto with_size(const attention &a, F f) {
    return with_head_size(a,
                          [&](auto size) { return f(code_shape<decltype(size)::value, FORM, ARE_FEW>()); });
}
template <unsigned FORM, typename F>
static auto with_queries(const attention &a, F f) {
    return a.tile_heads <= SPAN_QUERIES / 2 ? with_size<FORM, true>(a, f) : with_size<FORM, false>(a, f);
}
template <typename F>
static auto with_shape(const attention &a, F f) {
    return a.form == AS_Q8 ? with_queries<AS_Q8>(a, f) : with_queries<AS_Q4>(a, f);
}

unsigned gb_cuda::code_decode_blocks(const attention &a) {
    attention tiled = a;
    set_tiles(tiled, SPAN_QUERIES);
    return with_shape(tiled, [](auto shape) { return find_room<decltype(shape)>().blocks; });
}

void gb_cuda::launch_code_decode(decoding d, unsigned blocks, gb_cuda_launch_list *launches) {
    with_shape(d.a, [&](auto shape) {
        using S = decltype(shape);
        d.stages = find_room<S>().stages;
        add_launch(launches, "attention_codes", run_attention_codes<S::SIZE, S::FORM, (S::HALVES > 1)>,
                   blocks, SPAN_THREADS, shared_bytes<S>(d.stages), d);
    });
}
