/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of decode on tensor cores, over caches of floats; over codes: attention_codes.cu. A token's
 * positions are cut into spans by its own position alone (split-K); a block of threads on each multiprocessor
 * has its share of those of all tokens (attention_share.cuh). It goes through them for all query heads of a
 * kv head, the next rounds of keys on their way (attention_rows.cuh), and adds up what it has
 * (attention_sums.cuh).
 */
#include "backends/cuda/attention/attention_finish.cuh"
#include "backends/cuda/attention/attention_rows.cuh"

using namespace gb_cuda;

constexpr unsigned MOST_STAGES = 6;

template <unsigned SIZE>
struct decode_memory {
    union {
        round_memory<SIZE> round;
        sums_memory<SIZE> all; /* when the products are done */
    };
    factors counted[SPAN_QUERIES]; /* what the next span counts for */
    launch_rounds rounds;
};

/* The ring lies before the rest. */
template <unsigned SIZE, unsigned FORM>
static constexpr size_t shared_bytes(unsigned stages) {
    return stages * (size_t)STAGE_BYTES<FORM> + sizeof(decode_memory<SIZE>);
}

/* ---- Spans --------------------------------------------------------------------------------------------- */

/* A thread's sums of its piece so far, and the softmax of its warp's query. */
template <unsigned SIZE>
struct progress {
    lane_sums<SIZE> of_span, of_all;
    softmax all;
};

/* A span's softmax is complete, in the query's warp. place: of parts, if other blocks have some. */
template <unsigned SIZE>
__device__ static void close_softmax(const decoding &d, const piece &p, unsigned span, const softmax &so_far,
                                     unsigned place, progress<SIZE> &at, decode_memory<SIZE> &shared) {
    const softmax of_span = {so_far.largest, warp_sum(so_far.sum)};
    factors counted = {0, 1};
    if (span == 0 || p.first > 0)
        at.all = of_span;
    else
        counted = add_softmax(at.all, of_span);
    if (threadIdx.x % WARP == 0)
        shared.counted[threadIdx.x / WARP] = counted;
    if (is_left(p, span))
        leave_total(d.parts, place, span, at.all);
}

/* A span's sums are complete. */
template <unsigned SIZE>
__device__ static void close_span(const decoding &d, const piece &p, unsigned span, unsigned queries,
                                  unsigned place, progress<SIZE> &at, const decode_memory<SIZE> &shared) {
    if (span == 0 || p.first > 0)
        at.of_all = at.of_span;
    else
        add_sums(at.of_all, at.of_span, shared.counted);
    if (is_left(p, span))
        store_sums<SIZE>(at.of_all, queries, sums_of_part<SIZE>(d.parts, place, span));
}

/* A piece's sums are complete. Whether those of all of the token's spans are added up: then they are in
 * shared.all. */
template <unsigned SIZE>
__device__ static bool close_piece(const decoding &d, const piece &p, const team_share &share,
                                   unsigned queries, unsigned place, const progress<SIZE> &at,
                                   decode_memory<SIZE> &shared) {
    __syncthreads(); /* the products are done with this memory */
    if (!p.has_all())
        return gather_last<SIZE>(d, p, share, queries, place, shared.all);
    store_sums<SIZE>(at.of_all, queries, shared.all.sums[0]);
    if (threadIdx.x % WARP == 0 && threadIdx.x / WARP < queries)
        shared.all.totals[threadIdx.x / WARP] = at.all;
    return true;
}

/* The stage of the ring that the products are at. */
template <unsigned FORM>
struct row_stage {
    uint8_t *ring;
    unsigned stages, stage;

    __device__ uint8_t *rows() const {
        return ring + stage * STAGE_BYTES<FORM>;
    }
    __device__ void next() {
        stage = stage + 1 < stages ? stage + 1 : 0;
    }
};

/* A round of keys, of which `count` are the span's and number `own`, if there is one, is the token's own.
 * close: what is done when its softmax is, by the query's warp. */
template <unsigned SIZE, unsigned FORM, typename Close>
__device__ static void attend_round(row_stage<FORM> &ring, row_copies<SIZE, FORM> &copies,
                                    const eight<FORM> &elements, unsigned own, unsigned count,
                                    unsigned queries, softmax &so_far, lane_sums<SIZE> &sums,
                                    round_memory<SIZE> &shared, Close close) {
    lane_keys<FORM> keys;
    const bool has_own = own != NO_POSITION;
    wait_for_rows(ring.stages - 2);
    if (has_own)
        __syncthreads(); /* others have copied zeros there */
    if (has_own && has_own_key<SIZE>())
        store_own<SIZE, FORM>(ring.rows(), own, true, elements);
    __syncthreads();
    load_keys<SIZE, FORM>(ring.rows(), keys);
    score<SIZE, FORM>(keys, shared);
    __syncthreads();
#pragma unroll 1
    for (unsigned i = 0; i < 2; i++) /* where these keys and the last round's values were */
        copies.begin_next(ring.ring, ring.stages);
    ring.next();
    if (threadIdx.x / WARP < queries) {
        weigh<SIZE>(shared, count, so_far);
        close(so_far);
    }
    wait_for_rows(ring.stages - 1);
    if (has_own)
        __syncthreads();
    if (has_own && has_own_value<SIZE>())
        store_own<SIZE, FORM>(ring.rows(), own, false, elements);
    __syncthreads();
    add_values<SIZE, FORM>(ring.rows(), shared, sums);
    ring.next();
}

/* Goes through a piece, whose rows are on their way. */
template <unsigned SIZE, unsigned FORM>
__device__ static void attend_piece(const decoding &d, const piece &p, const team_share &share,
                                    row_stage<FORM> &ring, row_copies<SIZE, FORM> &copies,
                                    decode_memory<SIZE> &shared) {
    constexpr unsigned KEYS = decode_shape<SIZE>::KEYS;
    query_tile t = heads_of(d.a, share.number);
    t.first = p.token;
    t.end = t.first + 1;
    positions_left left = positions_of(p, KEYS);
    const unsigned queries = count_of(t), place = share.team_with(p.round) * share.across + share.number;
    const bool has_own = d.appends && left.end == p.spans.end;
    eight<FORM> own = {};
    if (has_own)
        own = load_own<SIZE, FORM>(d.a, t);
    stage_queries<SIZE>(d.a, t, shared.round);
    if (has_own)
        append_own<SIZE, FORM>(d.a, t, own);
    progress<SIZE> at = {};
    for (unsigned span = p.first; span < p.end; span++) {
        const unsigned after = left.j + p.spans.size * KEYS, end = after < left.end ? after : left.end;
        softmax so_far = {-INFINITY, 0};
        at.of_span = {};
        for (; left.j < end; left.j += KEYS) {
            const bool is_last = left.j + KEYS >= end, adds_own = has_own && left.j + KEYS >= left.end;
            attend_round<SIZE, FORM>(ring, copies, own, adds_own ? left.end - 1 - left.j : NO_POSITION,
                                     end - left.j, queries, so_far, at.of_span, shared.round,
                                     [&](const softmax &complete) {
                                         if (is_last)
                                             close_softmax<SIZE>(d, p, span, complete, place, at, shared);
                                     });
        }
        close_span<SIZE>(d, p, span, queries, place, at, shared);
    }
    if (close_piece<SIZE>(d, p, share, queries, place, at, shared))
        finish<SIZE>(d, t, shared.all);
    __syncthreads();
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

template <unsigned SIZE, unsigned FORM>
static __global__ void __launch_bounds__(SPAN_THREADS, 1) run_attention_decode(GB_GRID_CONSTANT decoding d) {
    GB_DYNAMIC_SHARED(uint8_t, memory);
    decode_memory<SIZE> &shared =
        *reinterpret_cast<decode_memory<SIZE> *>(memory + d.stages * STAGE_BYTES<FORM>);
    let_next_begin();
    fetch_parameters(d);
    count_rounds(d.a, decode_shape<SIZE>::KEYS, shared.rounds);
    const team_share share = share_of(d.a, shared.rounds);
    block_work work = {
        &d.a,     &shared.rounds, share.number, share.first_of(share.team), share.first_of(share.team + 1),
        d.appends};
    row_copies<SIZE, FORM> copies(work);
    if (!d.appends) /* the kernel before this one wrote to the caches */
        wait_for_earlier();
#pragma unroll 1
    for (unsigned i = 0; i + 1 < d.stages; i++)
        copies.begin_next(memory, d.stages);
    if (d.appends)
        wait_for_earlier();
    row_stage<FORM> ring = {memory, d.stages, 0};
    for (piece p = work.take(decode_shape<SIZE>::KEYS); p.first < p.end;
         p = work.take(decode_shape<SIZE>::KEYS))
        attend_piece<SIZE, FORM>(d, p, share, ring, copies, shared);
    wait_for_rows(0);
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* Teams of as many blocks as the multiprocessors have at a time, but not more than there can be spans. */
static unsigned count_blocks(const attention &a) {
    const size_t across = a.keys.heads * a.parts, spans = a.tokens * MOST_SPANS;
    const size_t together = gb_dtype_has_codes(a.keys.dtype) ? code_decode_blocks(a) : 1;
    const size_t most = gb_cuda_find_facts()->multiprocessors * together / across,
                 teams = most > 0 ? most : 1;
    return (unsigned)((spans < teams ? spans : teams) * across);
}

uint64_t gb_cuda::attend_decode_scratch(const attention &a) {
    attention tiled = a;
    set_tiles(tiled, SPAN_QUERIES);
    return (uint64_t)count_blocks(tiled) * MOST_SPANS * SPAN_QUERIES *
           (a.values.size * sizeof(float) + sizeof(softmax));
}

/* What blocks share lies in the scratch. */
static shared_parts parts_in(const gb_cuda_scratch *scratch, const attention &a, unsigned blocks) {
    auto *sums = reinterpret_cast<float4 *>(scratch->bytes);
    const size_t rows = (size_t)blocks * MOST_SPANS * SPAN_QUERIES;
    return shared_parts{sums, reinterpret_cast<softmax *>(sums + rows * (a.values.size / 4)),
                        scratch->arrivals};
}

/* Stages that a block has memory for; 0: fewer than two. */
template <unsigned SIZE, unsigned FORM>
static unsigned count_stages() {
    unsigned stages = MOST_STAGES / TERMS_OF<FORM>;
    while (stages > 1 && shared_bytes<SIZE, FORM>(stages) > most_shared_bytes())
        stages--;
    return stages > 1 ? stages : 0;
}

/* f of the size of the heads and the form of cached floats, as types. */
template <typename F>
static auto with_shape(const attention &a, F f) {
    const auto with_form = [&](auto form) {
        return with_head_size(a, [&](auto size) { return f(size, form); });
    };
    return a.form == AS_TWO_TERMS ? with_form(fixed<AS_TWO_TERMS>()) : with_form(fixed<AS_BF16>());
}

bool gb_cuda::decode_fits(const attention &a) {
    if (gb_dtype_has_codes(a.keys.dtype))
        return code_decode_blocks(a) > 0;
    return with_shape(a, [](auto size, auto form) {
        return count_stages<decltype(size)::value, decltype(form)::value>() > 0;
    });
}

template <unsigned SIZE, unsigned FORM>
static void launch_decode(decoding d, unsigned blocks, gb_cuda_launch_list *launches) {
    d.stages = count_stages<SIZE, FORM>();
    add_launch(launches, "attention_decode", run_attention_decode<SIZE, FORM>, blocks, SPAN_THREADS,
               shared_bytes<SIZE, FORM>(d.stages), d);
}

/* The call's tokens first .. first + count - 1. */
static attention some_tokens(attention a, size_t first, size_t count) {
    a.query += first * a.heads * a.head_size;
    if (a.key) {
        a.key += first * a.keys.heads * a.keys.size;
        a.value += first * a.keys.heads * a.values.size;
    }
    a.y += first * a.heads * a.head_size;
    a.positions += first;
    a.slots += first;
    a.tokens = count;
    return a;
}

void gb_cuda::attend_decode(attention a, const prepared_rows &prepared, const gb_cuda_scratch *scratch,
                            gb_cuda_launch_list *launches) {
    set_tiles(a, SPAN_QUERIES);
    a.tile_tokens = 1;
    decoding d = {};
    /* Else several blocks read what one stores, or a warp would rotate keys and values in different ways. */
    d.appends = a.key && a.parts == 1 && a.run_count == a.tokens && a.keys.rotation == a.values.rotation;
    d.prepared = prepared;
    if (!d.appends)
        append_to_caches(a, launches);
    for (size_t first = 0; first < a.tokens; first += SPAN_THREADS) {
        d.a = some_tokens(a, first, a.tokens - first < SPAN_THREADS ? a.tokens - first : SPAN_THREADS);
        d.first_row = first;
        const unsigned blocks = count_blocks(d.a);
        d.parts = parts_in(scratch, d.a, blocks);
        if (gb_dtype_has_codes(a.keys.dtype))
            launch_code_decode(d, blocks, launches);
        else
            with_shape(a, [&](auto size, auto form) {
                launch_decode<decltype(size)::value, decltype(form)::value>(d, blocks, launches);
            });
    }
}
