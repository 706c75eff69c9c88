/* SPDX-License-Identifier: Apache-2.0
 *
 * How the blocks of a launch share the positions of its tokens: each has as many rounds of keys, one after
 * the other, whatever the tokens' lengths (stream-K: Osama et al., 2023). A block has the spans that begin in
 * its rounds, so that the cut depends on the batch and the spans do not.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_SHARE_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_SHARE_CUH

#include "backends/cuda/attention/attention.cuh"

namespace gb_cuda {

constexpr unsigned SPAN_THREADS = 256, SPAN_WARPS = SPAN_THREADS / WARP;
constexpr unsigned MOST_SPANS = WARP; /* of a token: a lane has one when they are added up */

/* How many parts of a size there are, the last one maybe smaller. Spans are of one round as a rule, and a
 * division takes long. */
__device__ inline unsigned parts_of(unsigned count, unsigned size) {
    return size == 1 ? count : (count + size - 1) / size;
}

/* A token's positions: spans of whole rounds, but for the last one. */
struct token_spans {
    unsigned first, end; /* positions */
    unsigned size;       /* of a span, in rounds */
    unsigned count;
};

/* The tokens of a launch, up to SPAN_THREADS, in shared memory. */
struct launch_rounds {
    unsigned position[SPAN_THREADS];
    unsigned before[SPAN_THREADS + 1]; /* rounds of a kv head before each */
    unsigned of_warp[SPAN_WARPS];

    __device__ token_spans spans_of(const attention &a, unsigned token) const {
        const unsigned rounds = before[token + 1] - before[token], size = parts_of(rounds, MOST_SPANS);
        return token_spans{(unsigned)first_read(a, position[token]), position[token] + 1, size,
                           parts_of(rounds, size)};
    }
};

/* Fills them in. All threads of the block call it, and may read them behind it. */
__device__ inline void count_rounds(const attention &a, unsigned keys, launch_rounds &rounds) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    unsigned sum = 0;
    if (threadIdx.x < a.tokens) {
        const unsigned position = (unsigned)a.positions[threadIdx.x];
        rounds.position[threadIdx.x] = position;
        sum = parts_of(position + 1 - (unsigned)first_read(a, position), keys);
    }
#pragma unroll
    for (unsigned distance = 1; distance < WARP; distance *= 2) {
        const unsigned before = __shfl_up_sync(0xffffffffu, sum, distance);
        sum += lane >= distance ? before : 0;
    }
    if (lane == WARP - 1)
        rounds.of_warp[warp] = sum;
    __syncthreads();
    for (unsigned w = 0; w < warp; w++)
        sum += rounds.of_warp[w];
    rounds.before[threadIdx.x + 1] = sum;
    if (threadIdx.x == 0)
        rounds.before[0] = 0;
    __syncthreads();
}

/* The token that has a kv head's round number `round`. */
__device__ inline unsigned token_of(const launch_rounds &rounds, unsigned tokens, unsigned round) {
    unsigned first = 0, count = tokens;
    while (count > 1) {
        const unsigned half = count / 2;
        first += rounds.before[first + half] <= round ? half : 0;
        count -= half;
    }
    return first;
}

/* Spans first .. end - 1 of a token. */
struct piece {
    unsigned token;
    token_spans spans;
    unsigned round; /* that the first span of all begins with, of the kv head's */
    unsigned first, end;

    __device__ bool has_all() const {
        return first == 0 && end == spans.count;
    }
};

/* A launch's rounds as its blocks share them. Blocks side by side have the same rounds of different kv heads
 * and parts, whose rows lie side by side in memory: `across` of them are a team. */
struct team_share {
    unsigned across, team, number; /* the block's team, and its number there */
    unsigned each, rest;           /* rounds of a team; the first `rest` have one more */

    /* The first round of a team, or of none behind the last one. */
    __device__ unsigned first_of(unsigned of) const {
        return of * each + (of < rest ? of : rest);
    }
    /* The team that has a round. */
    __device__ unsigned team_with(unsigned round) const {
        const unsigned of_longer = rest * (each + 1);
        return round < of_longer ? round / (each + 1) : rest + (round - of_longer) / each;
    }
};

/* Of this block. Grid: [teams * across]. */
__device__ inline team_share share_of(const attention &a, const launch_rounds &rounds) {
    const unsigned across = (unsigned)a.keys.heads * a.parts, teams = gridDim.x / across,
                   all = rounds.before[a.tokens];
    return team_share{across, blockIdx.x / across, blockIdx.x % across, all / teams, all % teams};
}

/* A block's rounds. */
struct block_work {
    const attention *a;
    const launch_rounds *rounds;
    unsigned across;     /* the kv head's and part's number */
    unsigned begin, end; /* of the kv head's rounds; begin: of those that no piece has yet */
    unsigned token;      /* that has the first of them */
    bool appends;        /* a token's own row is not in the caches yet */

    __device__ block_work(const attention &of, const launch_rounds &of_tokens, const team_share &share,
                          bool are_appended)
        : a(&of), rounds(&of_tokens), across(share.number), begin(share.first_of(share.team)),
          end(share.first_of(share.team + 1)), token(token_of(of_tokens, (unsigned)of.tokens, begin)),
          appends(are_appended) {}

    /* The next piece that has spans; else one of none. */
    __device__ piece take() {
        piece p = {};
        for (; begin < end && p.first == p.end; token++) {
            const unsigned before = rounds->before[token], after = rounds->before[token + 1];
            p = piece{token, rounds->spans_of(*a, token), before, 0, 0};
            p.first = parts_of(begin - before, p.spans.size);
            p.end = parts_of((end < after ? end : after) - before, p.spans.size);
            begin = after;
        }
        return p;
    }
};

/* Positions j .. end - 1 of a piece. */
struct positions_left {
    unsigned j, end;
};

__device__ inline positions_left positions_of(const piece &p, unsigned keys) {
    const unsigned after = p.spans.first + p.end * p.spans.size * keys;
    return positions_left{p.spans.first + p.first * p.spans.size * keys,
                          after < p.spans.end ? after : p.spans.end};
}

} // namespace gb_cuda

#endif
