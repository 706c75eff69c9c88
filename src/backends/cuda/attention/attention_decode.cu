/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of decode on tensor cores. A token's positions are cut into spans by its own position alone
 * (split-K); a block of threads on each multiprocessor has its share of those of all tokens
 * (attention_share.cuh). It goes through them for all query heads of a kv head, the next rounds of keys on
 * their way (attention_rows.cuh), and adds up what it has (attention_sums.cuh).
 */
#include "backends/cuda/attention/attention_sums.cuh"
#include "backends/cuda/gemm/prepared.cuh"

using namespace gb_cuda;

constexpr unsigned MOST_STAGES = 6;

/* A round's values are there with its keys, or while its weights are made. */
template <unsigned FORM>
constexpr unsigned LEAST_STAGES = HAS_CODES<FORM> ? 3 : 2;

/* Of a multiprocessor: rows of codes come so fast that one block would wait for its own threads. */
template <unsigned FORM>
constexpr unsigned BLOCKS_TOGETHER = HAS_CODES<FORM> ? 2 : 1;

struct decoding {
    attention a;
    unsigned stages; /* of the ring: 2 .. MOST_STAGES */
    bool appends;    /* the block of the last span stores the token's own key and value */
    shared_parts parts;
    prepared_rows prepared; /* of all heads as one row */
    size_t first_row;       /* of token 0 there */
};

template <unsigned SIZE, unsigned FORM>
struct decode_memory {
    using of_round = std::conditional_t<HAS_CODES<FORM>, code_memory<SIZE>, round_memory<SIZE>>;

    union {
        of_round round;
        sums_memory<SIZE> all; /* when the products are done */
    };
    factors counted[SPAN_QUERIES]; /* what the next span counts for; not beside codes */
    launch_rounds rounds;
};

/* The ring lies before the rest. */
template <unsigned SIZE, unsigned FORM>
static constexpr size_t shared_bytes(unsigned stages) {
    return stages * (size_t)STAGE_BYTES<FORM> + sizeof(decode_memory<SIZE, FORM>);
}

/* ---- Results ------------------------------------------------------------------------------------------- */

/* Stores the result, also as prepared rows of the next GEMV. */
template <unsigned SIZE>
__device__ static void finish(const decoding &d, const query_tile &t, const sums_memory<SIZE> &all) {
    constexpr unsigned QUARTERS = SIZE / 8;
    const unsigned count = count_of(t) * QUARTERS;
    __syncthreads();
#pragma unroll 1
    for (unsigned first = 0; first < count; first += SPAN_THREADS) {
        const unsigned i = first + threadIdx.x, q = i / QUARTERS, quarter = i % QUARTERS;
        const bool is_there = i < count;
        float v[8] = {};
        if (is_there) {
            constexpr float LN_2 = 0x1.62e43p-1f; /* scores are of powers of 2 */
            const softmax &total = all.totals[q];
            const float inverse = 1.0f / divisor_of(d.a, t.head + q, total.sum, total.largest * LN_2);
#pragma unroll
            for (unsigned h = 0; h < 2; h++) {
                const float4 sum = all.sums[q][quarter * 2 + h];
                v[4 * h] = sum.x * inverse;
                v[4 * h + 1] = sum.y * inverse;
                v[4 * h + 2] = sum.z * inverse;
                v[4 * h + 3] = sum.w * inverse;
            }
        }
        rotate_eight(v, d.a.values.rotation); /* a warp has whole blocks of the rotation */
        const bool is_own = is_there && is_own_half(d.a, t.head + q, quarter * 8);
        const size_t at = place_of_element(d.a, t.first, t.head + q, quarter * 8);
        if (is_own) {
            float4 *to = reinterpret_cast<float4 *>(d.a.y + at);
            to[0] = float4{v[0], v[1], v[2], v[3]};
            to[1] = float4{v[4], v[5], v[6], v[7]};
        }
        if (d.prepared.values)
            prepare_quarter(
                d.prepared, d.first_row + t.first,
                is_own ? at / 8 - t.first * d.a.heads * (d.a.head_size / 8) : d.prepared.units * 4, v);
    }
}

/* ---- Spans --------------------------------------------------------------------------------------------- */

/* A thread's sums of its piece so far, and the softmax of its query: its warp's, or beside codes its own four
 * lanes', which also has what the next span counts for. */
template <unsigned SIZE>
struct progress {
    lane_sums<SIZE> of_span, of_all;
    softmax all;
    factors counted;
};

/* Whether the thread is the one of its query whose softmax is stored, and the query. */
template <unsigned FORM>
__device__ static bool stores_softmax() {
    return HAS_CODES<FORM> ? threadIdx.x < WARP && threadIdx.x % 4 == 0 : threadIdx.x % WARP == 0;
}
template <unsigned FORM>
__device__ static unsigned query_of_softmax() {
    return HAS_CODES<FORM> ? threadIdx.x % WARP / 4 : threadIdx.x / WARP;
}

/* Whether a span's sums are for others to add up. */
__device__ static bool is_left(const piece &p, unsigned span) {
    return p.first > 0 || (span + 1 == p.end && !p.has_all());
}

/* A span's softmax is complete, in the threads that have its query. place: of parts, if other blocks have
 * some. */
template <unsigned SIZE, unsigned FORM>
__device__ static void close_softmax(const decoding &d, const piece &p, unsigned span, const softmax &so_far,
                                     unsigned place, progress<SIZE> &at, factors *counted) {
    const softmax of_span = {so_far.largest, HAS_CODES<FORM> ? query_sum(so_far.sum) : warp_sum(so_far.sum)};
    at.counted = factors{0, 1};
    if (span == 0 || p.first > 0)
        at.all = of_span;
    else
        at.counted = add_softmax(at.all, of_span);
    if (!HAS_CODES<FORM> && stores_softmax<FORM>())
        counted[query_of_softmax<FORM>()] = at.counted;
    if (is_left(p, span) && stores_softmax<FORM>())
        totals_of_part(d.parts, place, span)[query_of_softmax<FORM>()] = at.all;
}

template <unsigned SIZE, unsigned FORM>
__device__ static void store_all(const lane_sums<SIZE> &sums, unsigned queries, float4 *to) {
    if constexpr (HAS_CODES<FORM>)
        store_code_sums<SIZE>(sums, queries, to);
    else
        store_sums<SIZE>(sums, queries, to);
}

/* A span's sums are complete. */
template <unsigned SIZE, unsigned FORM>
__device__ static void close_span(const decoding &d, const piece &p, unsigned span, unsigned queries,
                                  unsigned place, progress<SIZE> &at, const factors *counted) {
    if (span == 0 || p.first > 0)
        at.of_all = at.of_span;
    else if (HAS_CODES<FORM>)
        add_sums<SIZE>(at.of_all, at.of_span, at.counted, at.counted);
    else
        add_sums<SIZE>(at.of_all, at.of_span, counted[query_of_sums()], counted[query_of_sums() + 1]);
    if (is_left(p, span))
        store_all<SIZE, FORM>(at.of_all, queries, sums_of_part<SIZE>(d.parts, place, span));
}

/* A piece's sums are complete. Whether those of all of the token's spans are added up: then they are in
 * shared.all. */
template <unsigned SIZE, unsigned FORM>
__device__ static bool close_piece(const decoding &d, const piece &p, const team_share &share,
                                   unsigned queries, unsigned place, const progress<SIZE> &at,
                                   decode_memory<SIZE, FORM> &shared) {
    __syncthreads(); /* the products are done with this memory */
    if (p.has_all()) {
        store_all<SIZE, FORM>(at.of_all, queries, shared.all.sums[0]);
        if (stores_softmax<FORM>() && query_of_softmax<FORM>() < queries)
            shared.all.totals[query_of_softmax<FORM>()] = at.all;
        return true;
    }
    if (!is_last_block(&d.parts.arrivals[place], p.spans.count, p.end - p.first))
        return false;
    const unsigned together = parts_of(share.first_of(place / share.across + 1) - p.round, p.spans.size);
    gather_parts<SIZE>(d.parts, place, together - 1, p.spans.count, queries, shared.all);
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

/* A round of a span: its keys that count, whether it is the span's last one, and the number of the token's
 * own key among them or NO_POSITION. */
struct span_round {
    unsigned count;
    bool is_last;
    unsigned own;
};

/* close: what is done when the span's softmax is, by the threads that have its query. */
template <unsigned SIZE, unsigned FORM, bool APPENDS, typename Close>
__device__ static void attend_round(row_stage<FORM> &ring, row_copies<SIZE, FORM> &copies,
                                    const own_elements<FORM> &elements, const span_round &r, unsigned queries,
                                    softmax &so_far, lane_sums<SIZE> &sums, round_memory<SIZE> &shared,
                                    Close close) {
    lane_keys<FORM> keys;
    const bool has_own = APPENDS && r.own != NO_POSITION;
    wait_for_rows(ring.stages - 2);
    if (has_own)
        __syncthreads(); /* others have copied zeros there */
    if (has_own && has_own_key<SIZE>())
        store_own<SIZE, FORM>(ring.rows(), r.own, true, elements);
    __syncthreads();
    load_keys<SIZE, FORM>(ring.rows(), keys);
    score<SIZE, FORM>(keys, shared);
    __syncthreads();
#pragma unroll 1
    for (unsigned i = 0; i < 2; i++) /* where these keys and the last round's values were */
        copies.begin_next(ring.ring, ring.stages);
    ring.next();
    if (threadIdx.x / WARP < queries) {
        weigh<SIZE>(shared, r.count, so_far);
        if (r.is_last)
            close(so_far);
    }
    wait_for_rows(ring.stages - 1);
    if (has_own)
        __syncthreads();
    if (has_own && has_own_value<SIZE>())
        store_own<SIZE, FORM>(ring.rows(), r.own, false, elements);
    __syncthreads();
    add_values<SIZE, FORM>(ring.rows(), shared, sums);
    ring.next();
}

/* The same over codes, whose weights every warp makes itself. */
template <unsigned SIZE, unsigned FORM, bool APPENDS, typename Close>
__device__ static void attend_round(row_stage<FORM> &ring, row_copies<SIZE, FORM> &copies,
                                    const own_elements<FORM> &elements, const span_round &r, unsigned,
                                    softmax &so_far, lane_sums<SIZE> &sums, code_memory<SIZE> &shared,
                                    Close close) {
    const uint8_t *keys = ring.rows();
    ring.next();
    const bool has_own = APPENDS && r.own != NO_POSITION;
    wait_for_rows(ring.stages < 5 ? ring.stages - 3 : 2);
    if (has_own)
        __syncthreads(); /* others have copied zeros there */
    if (has_own && (has_own_key<SIZE>() || has_own_value<SIZE>()))
        store_own<SIZE, FORM>(has_own_key<SIZE>() ? const_cast<uint8_t *>(keys) : ring.rows(), r.own,
                              has_own_key<SIZE>(), elements);
    __syncthreads();
    score_codes<SIZE, FORM>(keys, shared);
    __syncthreads();
#pragma unroll 1
    for (unsigned i = 0; i < 2; i++) /* where these keys and the last round's values were */
        copies.begin_next(ring.ring, ring.stages);
    const code_weights<SIZE> weights = weigh_codes<SIZE>(shared, r.count, so_far);
    if (r.is_last)
        close(so_far);
    add_code_values<SIZE, FORM>(ring.rows(), weights, sums);
    ring.next();
}

/* Goes through a piece, whose rows are on their way. */
template <unsigned SIZE, unsigned FORM, bool APPENDS>
__device__ static void attend_piece(const decoding &d, const piece &p, const team_share &share,
                                    row_stage<FORM> &ring, row_copies<SIZE, FORM> &copies,
                                    decode_memory<SIZE, FORM> &shared) {
    constexpr unsigned KEYS = decode_shape<SIZE>::KEYS;
    query_tile t = heads_of(d.a, share.number);
    t.first = p.token;
    t.end = t.first + 1;
    positions_left left = positions_of(p, KEYS);
    const unsigned queries = count_of(t), place = share.team_with(p.round) * share.across + share.number;
    const bool has_own = APPENDS && d.appends && left.end == p.spans.end;
    own_elements<FORM> own = {};
    if (has_own)
        own = load_own<SIZE, FORM>(d.a, t);
    if constexpr (HAS_CODES<FORM>)
        stage_code_queries<SIZE, FORM>(d.a, t, shared.round);
    else
        stage_queries<SIZE>(d.a, t, shared.round);
    if (has_own)
        append_own<SIZE, FORM>(d.a, t, own);
    progress<SIZE> at = {};
    for (unsigned span = p.first; span < p.end; span++) {
        const unsigned after = left.j + p.spans.size * KEYS, end = after < left.end ? after : left.end;
        softmax so_far = {-INFINITY, 0};
        at.of_span = {};
        for (; left.j < end; left.j += KEYS) {
            const bool adds_own = has_own && left.j + KEYS >= left.end;
            const span_round r = {end - left.j, left.j + KEYS >= end,
                                  adds_own ? left.end - 1 - left.j : NO_POSITION};
            attend_round<SIZE, FORM, APPENDS>(ring, copies, own, r, queries, so_far, at.of_span, shared.round,
                                              [&](const softmax &complete) {
                                                  close_softmax<SIZE, FORM>(d, p, span, complete, place, at,
                                                                            shared.counted);
                                              });
        }
        close_span<SIZE, FORM>(d, p, span, queries, place, at, shared.counted);
    }
    if (close_piece<SIZE, FORM>(d, p, share, queries, place, at, shared))
        finish<SIZE>(d, t, shared.all);
    __syncthreads();
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

template <unsigned SIZE, unsigned FORM, bool APPENDS>
static __global__ void __launch_bounds__(SPAN_THREADS, BLOCKS_TOGETHER<FORM>)
    run_attention_decode(GB_GRID_CONSTANT decoding d) {
    GB_DYNAMIC_SHARED(uint8_t, memory);
    decode_memory<SIZE, FORM> &shared =
        *reinterpret_cast<decode_memory<SIZE, FORM> *>(memory + d.stages * STAGE_BYTES<FORM>);
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
        attend_piece<SIZE, FORM, APPENDS>(d, p, share, ring, copies, shared);
    wait_for_rows(0);
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* Teams of as many blocks as the multiprocessors have at a time, but not more than there can be spans. */
static unsigned count_blocks(const attention &a) {
    const size_t across = a.keys.heads * a.parts, spans = a.tokens * MOST_SPANS;
    const size_t together = gb_dtype_has_codes(a.keys.dtype) ? BLOCKS_TOGETHER<AS_Q8> : 1;
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

/* Stages that a block has memory for, beside others where these have enough as well; 0: too few. */
template <unsigned SIZE, unsigned FORM>
static unsigned count_stages() {
    constexpr size_t RESERVED = 1024; /* of each block, by the device */
    for (unsigned together = BLOCKS_TOGETHER<FORM>; together > 0; together--) {
        const size_t most = (most_shared_bytes() + RESERVED) / together - RESERVED;
        unsigned stages = MOST_STAGES / TERMS_OF<FORM>;
        while (stages >= LEAST_STAGES<FORM> && shared_bytes<SIZE, FORM>(stages) > most)
            stages--;
        if (stages >= LEAST_STAGES<FORM>)
            return stages;
    }
    return 0;
}

/* f of the size of the heads and the form of cached numbers, as types. */
template <typename F>
static auto with_shape(const attention &a, F f) {
    const auto with_form = [&](auto form) {
        return a.keys.size == 128   ? f(fixed<128>(), form)
               : a.keys.size == 256 ? f(fixed<256>(), form)
                                    : f(fixed<512>(), form);
    };
    return a.form == AS_Q8          ? with_form(fixed<AS_Q8>())
           : a.form == AS_Q4        ? with_form(fixed<AS_Q4>())
           : a.form == AS_TWO_TERMS ? with_form(fixed<AS_TWO_TERMS>())
                                    : with_form(fixed<AS_BF16>());
}

bool gb_cuda::decode_fits(const attention &a) {
    return with_shape(a, [](auto size, auto form) {
        return count_stages<decltype(size)::value, decltype(form)::value>() > 0;
    });
}

template <unsigned SIZE, unsigned FORM>
static auto kernel_for(bool appends) {
    if constexpr (HAS_CODES<FORM>)
        if (!appends)
            return run_attention_decode<SIZE, FORM, false>;
    return run_attention_decode<SIZE, FORM, true>;
}

template <unsigned SIZE, unsigned FORM>
static void launch_decode(decoding d, unsigned blocks, gb_cuda_launch_list *launches) {
    const auto kernel = kernel_for<SIZE, FORM>(d.appends);
    d.stages = count_stages<SIZE, FORM>();
    add_launch(launches, "attention_decode", kernel, blocks, SPAN_THREADS, shared_bytes<SIZE, FORM>(d.stages),
               d);
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
    /* Else several blocks read what one stores, or a warp would rotate keys and values in different ways.
     * With several tokens a launch before costs less than such blocks do. */
    d.appends = a.key && a.parts == 1 && a.run_count == a.tokens && a.keys.rotation == a.values.rotation &&
                (!gb_dtype_has_codes(a.keys.dtype) || a.tokens == 1);
    d.prepared = prepared;
    if (!d.appends)
        append_to_caches(a, launches);
    for (size_t first = 0; first < a.tokens; first += SPAN_THREADS) {
        d.a = some_tokens(a, first, a.tokens - first < SPAN_THREADS ? a.tokens - first : SPAN_THREADS);
        d.first_row = first;
        const unsigned blocks = count_blocks(d.a);
        d.parts = parts_in(scratch, d.a, blocks);
        with_shape(a, [&](auto size, auto form) {
            launch_decode<decltype(size)::value, decltype(form)::value>(d, blocks, launches);
        });
    }
}
