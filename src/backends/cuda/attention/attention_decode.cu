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
    round_memory<SIZE> round;
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
template <unsigned SIZE, unsigned FORM>
__device__ static void close_span(const decoding &d, const piece &p, unsigned span, unsigned queries,
                                  unsigned place, progress<SIZE> &at, const decode_memory<SIZE> &shared) {
    if (span == 0 || p.first > 0)
        at.of_all = at.of_span;
    else
        add_sums(at.of_all, at.of_span, shared.counted);
    if (is_left(p, span))
        store_sums<SIZE, FORM>(at.of_all, queries, sums_of_part<SIZE>(d.parts, place, span));
}

/* A piece's sums are complete. Whether those of all of the token's spans are added up: then they are in
 * `all`. */
template <unsigned SIZE, unsigned FORM>
__device__ static bool close_piece(const decoding &d, const piece &p, const team_share &share,
                                   unsigned queries, unsigned place, const progress<SIZE> &at,
                                   sums_memory<SIZE> &all) {
    __syncthreads(); /* the products are done with this memory */
    if (!p.has_all())
        return gather_last<SIZE>(d, p, share, queries, place, all);
    store_sums<SIZE, FORM>(at.of_all, queries, all.sums[0]);
    if (threadIdx.x % WARP == 0 && threadIdx.x / WARP < queries)
        all.totals[threadIdx.x / WARP] = at.all;
    return true;
}

/* The stage of the ring that the products are at. */
template <unsigned FORM>
struct row_stage {
    uint8_t *ring;
    unsigned stages, stage;
    uint8_t *last; /* the rows that the last products were of */

    __device__ uint8_t *take() {
        last = ring + stage * STAGE_BYTES<FORM>;
        stage = stage + 1 < stages ? stage + 1 : 0;
        return last;
    }
};

/* A round of keys, of which `count` are the span's and number `own`, if there is one, is the token's own.
 * close: what is done when its softmax is, by the query's warp. */
template <unsigned SIZE, unsigned FORM, typename Close>
__device__ static void attend_round(row_stage<FORM> &ring, row_copies<SIZE, FORM> &copies,
                                    const eight<FORM> &elements, unsigned own, unsigned count,
                                    unsigned queries, softmax &so_far, lane_sums<SIZE> &sums,
                                    round_memory<SIZE> &shared, Close close) {
    const bool has_own = own != NO_POSITION;
    uint8_t *keys = ring.take(), *values = ring.take();
    wait_for_rows(ring.stages - 2);
    if (has_own)
        store_own<SIZE, FORM>(keys, own, true, elements);
    __syncthreads();
    score<SIZE, FORM>(keys, count, shared);
    __syncthreads();
#pragma unroll 1
    for (unsigned i = 0; i < 2; i++) /* where these keys and the last round's values were */
        copies.begin_next(ring.ring, ring.stages);
    if (threadIdx.x / WARP < queries) {
        weigh<SIZE>(shared, count, so_far);
        close(so_far);
    }
    wait_for_rows(ring.stages - 1);
    if (has_own)
        store_own<SIZE, FORM>(values, own, false, elements);
    __syncthreads();
    add_values<SIZE, FORM>(values, shared, sums);
}

/* What a thread has of a piece's inputs, the next one's on their way while it goes through a piece. */
template <unsigned SIZE>
struct piece_inputs {
    const float *first_query, *first_own; /* of token 0; NULL: the thread has none */
    unsigned query_stride, own_stride;    /* from a token to the next one */
    lane_query<SIZE> query;
    eight_numbers own; /* of the token's key or value */

    __device__ piece_inputs(const decoding &d, const query_tile &t)
        : first_query(find_query<SIZE>(d.a, t, threadIdx.x / WARP, threadIdx.x % WARP)),
          first_own(d.appends ? find_own<SIZE>(d.a, t) : nullptr),
          query_stride((unsigned)(d.a.heads * d.a.head_size)), own_stride((unsigned)d.a.keys.heads * SIZE),
          query(), own() {}

    __device__ void load(const piece &p) {
        for (unsigned i = 0; i < lane_query<SIZE>::EIGHTS; i++)
            query.of[i] = load_numbers(
                first_query ? first_query + (size_t)p.token * query_stride + i * WARP * 8 : nullptr);
        if (first_own && p.end == p.spans.count)
            own = load_numbers(first_own + (size_t)p.token * own_stride);
    }
};

/* Goes through a piece, whose rows are on their way. t: its queries; meanwhile: done when its inputs are used
 * up. */
template <unsigned SIZE, unsigned FORM, typename Meanwhile>
__device__ static void attend_piece(const decoding &d, const piece &p, const team_share &share,
                                    const query_tile &t, const piece_inputs<SIZE> &inputs,
                                    row_stage<FORM> &ring, row_copies<SIZE, FORM> &copies,
                                    decode_memory<SIZE> &shared, Meanwhile meanwhile) {
    constexpr unsigned KEYS = decode_shape<SIZE>::KEYS;
    positions_left left = positions_of(p, KEYS);
    const unsigned queries = count_of(t),
                   place = p.has_all() ? 0 : share.team_with(p.round) * share.across + share.number;
    const bool has_own = d.appends && left.end == p.spans.end;
    const eight<FORM> own = as_cached<FORM>(inputs.own);
    if (threadIdx.x / WARP < queries) /* of others there are zeros */
        stage_query<SIZE>(d.a, inputs.query, shared.round);
    if (has_own)
        append_own<SIZE, FORM>(d.a, t, left.end - 1, own);
    meanwhile();
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
        close_span<SIZE, FORM>(d, p, span, queries, place, at, shared);
    }
    /* Where the last values were: what the ring copies there waits for the next piece's scores. */
    auto &all = *reinterpret_cast<sums_memory<SIZE> *>(ring.last);
    static_assert(sizeof all <= STAGE_BYTES<FORM>, "a stage has the sums");
    if (close_piece<SIZE, FORM>(d, p, share, queries, place, at, all))
        finish<SIZE>(d, t, all);
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
    block_work work(d.a, shared.rounds, share, d.appends);
    row_copies<SIZE, FORM> copies(work);
    if (!d.appends) /* the kernel before this one wrote to the caches */
        wait_for_earlier();
#pragma unroll 1
    for (unsigned i = 0; i + 1 < d.stages; i++)
        copies.begin_next(memory, d.stages);
    if (d.appends)
        wait_for_earlier();
    row_stage<FORM> ring = {memory, d.stages, 0, memory};
    query_tile t = heads_of(d.a, share.number);
    t.end = 1;
    piece_inputs<SIZE> inputs(d, t);
    stage_query<SIZE>(d.a, inputs.query, shared.round); /* zeros */
    piece p = work.take(), next = {};
    if (p.first < p.end)
        inputs.load(p);
    for (; p.first < p.end; p = next) {
        t.first = p.token;
        t.end = t.first + 1;
        attend_piece<SIZE, FORM>(d, p, share, t, inputs, ring, copies, shared, [&] {
            next = work.take();
            if (next.first < next.end)
                inputs.load(next);
        });
    }
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
