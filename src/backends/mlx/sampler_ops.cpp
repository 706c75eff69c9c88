/* SPDX-License-Identifier: Apache-2.0
 *
 * Control and the sampler (docs/sampling.md says what each op computes). Settings that the host knows to be
 * neutral in all rows leave their op out of the graph.
 */
#include "backends/mlx/lowering.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gb_mlx {

static const double infinity = std::numeric_limits<double>::infinity();

/* Whether the host knows that a setting has no effect in any row. */
template <typename T, typename Test>
static bool all_rows(const step &s, gb_ref setting, Test is_neutral) {
    const T *values = s.host<T>(setting);
    return values && std::all_of(values, values + s.row_count(), is_neutral);
}

/* A setting of each row [B] beside the row's logits. */
static mx::array column(const mx::array &setting) {
    return mx::expand_dims(setting, 1);
}

static mx::array is_nan(const mx::array &x) {
    return mx::not_equal(x, x);
}

/* ---- Choice -------------------------------------------------------------------------------------------- */

static operation is_zero(const gb_node &node, weights &) {
    return [x = node.operands[0], y = node.results[0]](step &s) {
        if (const float *values = s.host<float>(x)) {
            std::vector<uint8_t> zero(values, values + s.row_count());
            std::transform(values, values + s.row_count(), zero.begin(),
                           [](float value) { return value == 0; });
            s.know(y, zero);
        }
        s.set(y, mx::equal(s[x], number(0)));
    };
}

static operation any_false(const gb_node &node, weights &) {
    return [x = node.operands[0], y = node.results[0]](step &s) {
        if (const std::vector<uint8_t> *values = s.known(x))
            s.know(y, {std::find(values->begin(), values->end(), 0) != values->end()});
        s.set(y, mx::any(mx::logical_not(s[x])));
    };
}

static operation select(const gb_node &node, weights &) {
    return [c = node.operands[0], a = node.operands[1], b = node.operands[2], y = node.results[0]](step &s) {
        s.set(y, mx::where(s[c], s[a], s[b]));
    };
}

static operation fill_like(const gb_node &node, weights &) {
    const mx::array value = number(gb_node_float(&node, GB_ATTRIBUTE_VALUE));
    return [=, x = node.operands[0], y = node.results[0]](step &s) {
        s.set(y, mx::broadcast_to(value, s[x].shape()));
    };
}

static operation choose_token(const gb_node &node, weights &) {
    return [c = node.operands[0], a = node.operands[1], b = node.operands[2], y = node.results[0]](step &s) {
        const mx::array first = mx::logical_or(mx::less(s[a], mx::array(0)), s[c]);
        s.set(y, mx::where(first, s[a], s[b]));
    };
}

/* ---- Biases and penalties ------------------------------------------------------------------------------ */

/* The biases of all rows, as places in the flattened logits: those added, and the tokens banned. */
struct bias_places {
    std::vector<int32_t> added, banned;
    std::vector<float> values;
};

static bias_places places_of(const step &s, const int32_t *ids, const float *values, int limit, int length) {
    bias_places places;
    for (int b = 0; b < s.row_count(); b++) {
        for (int i = b * limit; i < (b + 1) * limit && ids[i] >= 0; i++) {
            if (ids[i] >= length)
                continue;
            const bool is_ban = values[i] == -infinity;
            (is_ban ? places.banned : places.added).push_back(b * length + ids[i]);
            if (!is_ban)
                places.values.push_back(values[i]);
        }
    }
    return places;
}

static mx::array index_array(const std::vector<int32_t> &places) {
    return mx::array(places.begin(), {static_cast<int>(places.size())}, mx::int32);
}

/* Bans come last: a token with both is banned, as in any order. */
static mx::array biased(const mx::array &logits, const bias_places &places) {
    mx::array y = mx::flatten(logits);
    if (!places.added.empty()) {
        const mx::array values(places.values.begin(), {static_cast<int>(places.values.size()), 1},
                               mx::float32);
        y = mx::scatter_add(y, index_array(places.added), values, 0);
    }
    if (!places.banned.empty()) {
        const mx::array at = index_array(places.banned), old = mx::take(y, at);
        y = mx::scatter(y, at, column(mx::where(is_nan(old), old, number(-infinity))), 0);
    }
    return mx::reshape(y, logits.shape());
}

static operation apply_bias(const gb_node &node, weights &from) {
    const auto limit = static_cast<int>(from.program.values[node.operands[1]].type.shape.dims[1]);
    require_input(from.program, node, 1, GB_ROLE_BIAS_IDS);
    require_input(from.program, node, 2, GB_ROLE_BIAS_VALUES);
    return [=, x = node.operands[0], ids = node.operands[1], values = node.operands[2],
            y = node.results[0]](step &s) {
        const bias_places places =
            places_of(s, s.host<int32_t>(ids), s.host<float>(values), limit, s[x].shape(1));
        s.set(y, places.added.empty() && places.banned.empty() ? s[x] : biased(s[x], places));
    };
}

/* Tokens of the prompt count where the row's flag says so: [B,V]. */
static mx::array counted(const mx::array &counts, const mx::array &prompt_flags, int flag) {
    const auto plane = [&](int which) { return mx::squeeze(part(counts, 1, which, which + 1), 1); };
    const mx::array with_prompt = mx::bitwise_and(prompt_flags, mx::array(flag));
    const mx::array factor = mx::astype(mx::not_equal(with_prompt, mx::array(0)), mx::float32);
    return mx::add(plane(1), mx::multiply(column(factor), plane(0)));
}

static operation penalize(const gb_node &node, weights &) {
    const std::vector<gb_ref> operands(node.operands, node.operands + 6);
    return [=, y = node.results[0]](step &s) {
        mx::array x = s[operands[0]];
        if (s.has(operands[1])) {
            const mx::array &counts = s[operands[1]], &flags = s[operands[5]];
            const mx::array repetition = column(s[operands[2]]), frequency = column(s[operands[3]]);
            const mx::array repeats = counted(counts, flags, 1), occurs = counted(counts, flags, 2);
            const mx::array zero = number(0);
            const mx::array lowered =
                mx::where(mx::less(x, zero), mx::multiply(x, repetition), mx::divide(x, repetition));
            x = mx::where(mx::greater(repeats, zero), lowered, x);
            const mx::array less_often =
                mx::subtract(mx::subtract(x, mx::multiply(frequency, occurs)), column(s[operands[4]]));
            x = mx::where(mx::greater(occurs, zero), less_often, x);
        }
        s.set(y, x);
    };
}

/* ---- Candidates and masks ------------------------------------------------------------------------------ */

static operation candidates(const gb_node &node, weights &) {
    return [x = node.operands[0], y = node.results[0]](step &s) {
        const mx::array infinite = mx::equal(s[x], number(infinity));
        s.set(y, mx::where(mx::any(infinite, 1, true), infinite, mx::greater(s[x], number(-infinity))));
    };
}

static operation apply_temperature(const gb_node &node, weights &) {
    return [x = node.operands[0], temperature = node.operands[1], y = node.results[0]](step &s) {
        const mx::array zero = number(0), scaled = mx::add(mx::divide(s[x], column(s[temperature])), zero);
        s.set(y, mx::where(mx::equal(s[x], number(infinity)), zero, scaled));
    };
}

/* The values that are kept, -inf for the others. */
static mx::array kept_values(const mx::array &x, const mx::array &keep) {
    return mx::where(keep, x, number(-infinity));
}

/* The top_k[b]-th largest value of each row, and -inf where all are wanted: [B,1]. */
static mx::array ranked(const mx::array &values, const mx::array &top_k, int most) {
    const mx::array sorted = mx::sort(mx::topk(values, most, 1), 1); /* ascending */
    const mx::array place = mx::maximum(mx::subtract(mx::array(most), top_k), mx::array(0));
    const mx::array value = mx::take_along_axis(sorted, column(place), 1);
    return mx::where(column(mx::less_equal(top_k, mx::array(0))), number(-infinity), value);
}

static operation top_k_mask(const gb_node &node, weights &from) {
    require_input(from.program, node, 2, GB_ROLE_TOP_K);
    return [x = node.operands[0], keep = node.operands[1], top_k = node.operands[2],
            y = node.results[0]](step &s) {
        const int32_t *wanted = s.host<int32_t>(top_k);
        const int length = s[x].shape(1);
        const auto is_neutral = [=](int32_t k) { return k <= 0 || k >= length; };
        if (all_rows<int32_t>(s, top_k, is_neutral)) {
            s.set(y, s[keep]);
            return;
        }
        std::vector<int32_t> ranks(wanted, wanted + s.row_count());
        std::replace_if(ranks.begin(), ranks.end(), is_neutral, 0);
        const int most = *std::max_element(ranks.begin(), ranks.end());
        const mx::array least = ranked(kept_values(s[x], s[keep]), index_array(ranks), most);
        s.set(y, mx::logical_and(s[keep], mx::greater_equal(s[x], least)));
    };
}

/* floor(e^(x - max) * 2^40) as uint64: in two parts of 20 bits, which float32 holds. */
static mx::array masses(const mx::array &x, const mx::array &max) {
    const mx::array unit = number(0x1p+20), one = mx::array(uint64_t{1} << 40);
    const mx::array scaled = mx::multiply(mx::exp(mx::subtract(x, max)), unit);
    const mx::array whole = mx::floor(scaled);
    const mx::array low = mx::astype(mx::multiply(mx::subtract(scaled, whole), unit), mx::uint64);
    const mx::array high = mx::left_shift(mx::astype(whole, mx::uint64), mx::array(uint64_t{20}));
    return mx::where(mx::equal(x, max), one, mx::add(high, low));
}

/* floor(total * p / 2^32), p = floor(top_p * 2^32). */
static mx::array mass_limit(const mx::array &total, const mx::array &top_p) {
    const mx::array bits = mx::array(uint64_t{32}), low = mx::array(uint64_t{0xffffffff});
    const mx::array p = mx::astype(mx::multiply(top_p, number(0x1p+32)), mx::uint64);
    return mx::add(mx::multiply(mx::right_shift(total, bits), p),
                   mx::right_shift(mx::multiply(mx::bitwise_and(total, low), p), bits));
}

/* The smallest value such that the mass of all larger ones is within the limit: [B,1]. Of equals the first
 * one in the sorted row decides. */
static mx::array mass_threshold(const mx::array &values, const mx::array &top_p) {
    const mx::array sorted = mx::negative(mx::sort(mx::negative(values), 1)); /* descending */
    const mx::array mass = mx::where(mx::equal(sorted, number(-infinity)), mx::array(uint64_t{0}),
                                     masses(sorted, part(sorted, 1, 0, 1)));
    const mx::array before = mx::cumsum(mass, 1, false, false);
    const mx::array total = mx::sum(mass, 1, true);
    const mx::array is_kept = mx::less_equal(before, mass_limit(total, column(top_p)));
    return mx::min(mx::where(is_kept, sorted, number(infinity)), 1, true);
}

static operation top_p_mask(const gb_node &node, weights &) {
    return [x = node.operands[0], keep = node.operands[1], top_p = node.operands[2],
            y = node.results[0]](step &s) {
        if (all_rows<float>(s, top_p, [](float p) { return p >= 1; })) {
            s.set(y, s[keep]);
            return;
        }
        const mx::array least = mass_threshold(kept_values(s[x], s[keep]), s[top_p]);
        const mx::array is_kept =
            mx::logical_or(mx::greater_equal(s[x], least), column(mx::greater_equal(s[top_p], number(1))));
        s.set(y, mx::logical_and(s[keep], is_kept));
    };
}

static operation min_p_mask(const gb_node &node, weights &) {
    return [x = node.operands[0], keep = node.operands[1], min_p = node.operands[2],
            y = node.results[0]](step &s) {
        if (all_rows<float>(s, min_p, [](float p) { return p == 0; })) {
            s.set(y, s[keep]);
            return;
        }
        const mx::array max = mx::max(kept_values(s[x], s[keep]), 1, true);
        const mx::array least = mx::astype(mx::multiply(s[min_p], number(0x1p+40)), mx::uint64);
        s.set(y, mx::logical_and(s[keep], mx::greater_equal(masses(s[x], max), column(least))));
    };
}

/* ---- Noise and the largest ----------------------------------------------------------------------------- */

/* The key of a seed is (seed >> 32, seed mod 2^32); in memory the lower half comes first. */
static operation random_bits(const gb_node &node, weights &) {
    const auto count = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_COUNT));
    const auto draw = [=](const std::vector<mx::array> &keys) {
        return std::vector<mx::array>{mx::random::bits({count}, 4, keys[0])};
    };
    const auto draw_rows = mx::vmap(draw, {0}, {0});
    return [=, seed = node.operands[0], y = node.results[0]](step &s) {
        const mx::array halves = mx::reshape(mx::view(s[seed], mx::uint32), {s.row_count(), 2});
        s.set(y, draw_rows({mx::slice(halves, {0, 1}, {s.row_count(), -3}, {1, -1})})[0]);
    };
}

static operation gumbel_noise(const gb_node &node, weights &) {
    return [bits = node.operands[0], y = node.results[0]](step &s) {
        const mx::array scaled = mx::multiply(mx::astype(s[bits], mx::float32), number(0x1p-32));
        const mx::array u = mx::minimum(scaled, number(0x1.fffffep-1));
        s.set(y, mx::negative(mx::log(mx::negative(mx::log(u)))));
    };
}

/* Bits of words, the lowest first, as truth values: [B, 32 W]. */
static mx::array bits_of(const mx::array &words) {
    const mx::array shifts = mx::astype(mx::arange(32), mx::uint32);
    const mx::array bits =
        mx::bitwise_and(mx::right_shift(mx::expand_dims(words, 2), shifts), mx::array(1u, mx::uint32));
    return mx::not_equal(mx::flatten(bits, 1, 2), mx::array(0u, mx::uint32));
}

static operation apply_mask(const gb_node &node, weights &from) {
    require_input(from.program, node, 1, GB_ROLE_MASKED);
    return [=, x = node.operands[0], masked = node.operands[1], mask = node.operands[2],
            y = node.results[0]](step &s) {
        const int rows = s[x].shape(0), size = s[x].shape(1);
        const bool *is_masked = s.host<bool>(masked);
        if (std::none_of(is_masked, is_masked + rows, [](bool is) { return is; })) {
            s.set(y, s[x]);
            return;
        }
        if (s.batch.late_masks)
            mx::async_eval({s[x]}); /* computed while the masks are made */
        const mx::array allowed = part(bits_of(s[mask]), 1, 0, size);
        const mx::array kept =
            mx::logical_or(mx::logical_or(allowed, mx::logical_not(column(s[masked]))), is_nan(s[x]));
        s.set(y, mx::where(kept, s[x], number(-infinity)));
    };
}

/* The index, or why there is none. What is kept counts even where it is -inf: it is made finite, so that what
 * is not kept is below it. */
static operation argmax(const gb_node &node, weights &) {
    const bool is_masked = node.operand_count > 1;
    const mx::array lowest = number(std::numeric_limits<float>::lowest()), none = number(-infinity);
    return [=, x = node.operands[0], keep = node.operands[1], y = node.results[0]](step &s) {
        const mx::array values = is_masked ? mx::where(s[keep], mx::maximum(s[x], lowest), none) : s[x];
        const mx::array best = mx::argmax(values, 1);
        const mx::array largest = mx::squeeze(mx::take_along_axis(values, column(best), 1), 1);
        const mx::array token = mx::where(mx::greater(largest, none), mx::astype(best, mx::int32),
                                          mx::array(-1 /* no candidate */));
        s.set(y, mx::where(mx::any(is_nan(values), 1), mx::array(-2 /* a NaN */), token));
    };
}

const op_entry sampler_ops[] = {
    {GB_OP_IS_ZERO, is_zero},
    {GB_OP_ANY_FALSE, any_false},
    {GB_OP_SELECT, select},
    {GB_OP_FILL_LIKE, fill_like},
    {GB_OP_CHOOSE_TOKEN, choose_token},
    {GB_OP_APPLY_BIAS, apply_bias},
    {GB_OP_PENALIZE, penalize},
    {GB_OP_APPLY_MASK, apply_mask},
    {GB_OP_CANDIDATES, candidates},
    {GB_OP_APPLY_TEMPERATURE, apply_temperature},
    {GB_OP_TOP_K_MASK, top_k_mask},
    {GB_OP_TOP_P_MASK, top_p_mask},
    {GB_OP_MIN_P_MASK, min_p_mask},
    {GB_OP_RANDOM_BITS, random_bits},
    {GB_OP_GUMBEL_NOISE, gumbel_noise},
    {GB_OP_ARGMAX, argmax},
    {GB_OP_NONE, nullptr},
};

} // namespace gb_mlx
