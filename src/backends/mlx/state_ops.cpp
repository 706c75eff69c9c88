/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that read and write the states of slots. Each slot's tokens are a part of the batch of their own, so
 * that shapes are never ragged.
 */
#include "backends/mlx/lowering.hpp"

#include <algorithm>

namespace gb_mlx {

static mx::array joined(const std::vector<mx::array> &parts) {
    return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0);
}

static mx::array of_run(step &s, gb_ref value, const slot_run &run) {
    return part(s[value], 0, run.first, run.first + run.count);
}

static uint32_t state_index(const gb_node &node, weights &from, int operand) {
    return from.program.values[node.operands[operand]].index;
}

/* ---- Attention ----------------------------------------------------------------------------------------- */

/* Which rows each token of a run attends to: those at its position or before, and within the window. */
static mx::array mask_of(const slot_run &run, const std::vector<int> &positions, int window) {
    const size_t count = positions.size();
    std::vector<uint8_t> mask(static_cast<size_t>(run.count) * count);
    for (size_t n = 0; n < static_cast<size_t>(run.count); n++) {
        const int position = run.start + static_cast<int>(n);
        const int oldest = window > 0 ? std::max(0, position - window + 1) : 0;
        for (size_t row = 0; row < count; row++)
            mask[n * count + row] = positions[row] >= oldest && positions[row] <= position;
    }
    return mx::array(mask.begin(), {run.count, static_cast<int>(count)}, mx::bool_);
}

/* The mask of a run over the rows that it reads, from position first on; none where it attends to all. */
static std::optional<mx::array> mask_for(const slot_run &run, const cache_view &view, int first, int window) {
    if (!view.positions.empty())
        return mask_of(run, view.positions, window);
    if (run.count == 1)
        return std::nullopt;
    std::vector<int> positions;
    for (int position = first; position < run.start + run.count; position++)
        positions.push_back(position);
    return mask_of(run, positions, window);
}

struct attention_rule {
    gb_ref query, key, value, y;
    uint32_t keys, values;        /* states */
    int rotation, value_rotation; /* blocks in which keys, queries and values are rotated; 0 = none */
    float scale;
    int window;
    bool is_last; /* of the nodes with these states */
    bool has_fused_kernels;
    std::optional<mx::array> sinks; /* [H] */
};

struct cached_rows {
    cache_view keys, values;
};

/* Stores the run's keys and values, and gives what it reads, from position `first` on. A run that would
 * overwrite some of that is stored behind it: where several nodes have the same states, by the last one. */
static cached_rows store_and_read(step &s, const attention_rule &rule, const slot_run &run, int first) {
    const int end = run.start + run.count;
    const mx::array key = s.states.rounded(rule.keys, rotated(of_run(s, rule.key, run), rule.rotation));
    const mx::array value =
        s.states.rounded(rule.values, rotated(of_run(s, rule.value, run), rule.value_rotation));
    const bool is_read_first = s.states.overwrites(rule.keys, run.count);
    std::optional<cached_rows> rows;
    if (is_read_first)
        rows = cached_rows{s.states.join(run.slot, rule.keys, first, key, run.start),
                           s.states.join(run.slot, rule.values, first, value, run.start)};
    if (!is_read_first || rule.is_last) {
        s.states.append(run.slot, rule.keys, key, run.start);
        s.states.append(run.slot, rule.values, value, run.start);
    }
    return rows ? *rows
                : cached_rows{s.states.read(run.slot, rule.keys, first, end),
                              s.states.read(run.slot, rule.values, first, end)};
}

/* Scores [1,G,H / G,L] become weights, of which a sink takes a part. */
static mx::array weights_of(const mx::array &scores, const std::optional<mx::array> &sinks) {
    if (!sinks)
        return mx::softmax(scores, -1, true);
    const int rows = scores.shape(3);
    const mx::array sink = mx::reshape(*sinks, {1, scores.shape(1), scores.shape(2), 1});
    return part(mx::softmax(mx::concatenate({scores, sink}, -1), -1, true), -1, 0, rows);
}

/* One token's query [1,H,D] over rows [1,G,L,D] and [1,G,L,E] of which it sees all: [1,H,E]. Each of the G
 * heads' rows serve H / G queries as one product, which takes half the ops that MLX makes of its kernel. */
static mx::array attend_all(const mx::array &query, const mx::array &keys, const mx::array &values,
                            const attention_rule &rule) {
    const int groups = keys.shape(1), shared = query.shape(1) / groups;
    const mx::array grouped = mx::reshape(query, {1, groups, shared, query.shape(2)});
    const mx::array scores = mx::matmul(grouped, mx::swapaxes(keys, 2, 3));
    const mx::array scaled =
        rule.scale == 1 ? scores : mx::multiply(scores, number(static_cast<double>(rule.scale)));
    const mx::array y = mx::matmul(weights_of(scaled, rule.sinks), values);
    return mx::reshape(y, {1, query.shape(1), values.shape(3)});
}

/* The tokens of one slot: [n,H,E], in the values' rotation. */
static mx::array attend(step &s, const attention_rule &rule, const slot_run &run) {
    const int end = run.start + run.count;
    const int first = rule.window > 0 ? std::max(0, run.start - rule.window + 1) : 0;
    const auto [keys, values] = store_and_read(s, rule, run, first);
    const bool is_causal =
        run.count > 1 && keys.positions.empty() && (rule.window == 0 || end <= rule.window);
    const mx::array query = rotated(of_run(s, rule.query, run), rule.rotation);
    const auto numbers = [](const cache_view &view) { return mx::astype(view.rows, mx::float32); };
    if (run.count == 1 && keys.positions.empty() && !rule.has_fused_kernels)
        return attend_all(query, numbers(keys), numbers(values), rule);
    return by_token(mx::fast::scaled_dot_product_attention(
        by_head(query), numbers(keys), numbers(values), rule.scale, is_causal ? "causal" : "",
        is_causal ? std::nullopt : mask_for(run, keys, first, rule.window), rule.sinks));
}

static std::optional<mx::array> sinks_of(const gb_node &node, weights &from) {
    constexpr uint32_t SINKS = 7;
    return node.operand_count > SINKS ? std::optional(from.numbers_of(node.operands[SINKS])) : std::nullopt;
}

static operation attention(const gb_node &node, weights &from) {
    const attention_rule rule = {.query = node.operands[0],
                                 .key = node.operands[1],
                                 .value = node.operands[2],
                                 .y = node.results[0],
                                 .keys = state_index(node, from, 5),
                                 .values = state_index(node, from, 6),
                                 .rotation = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_ROTATION)),
                                 .value_rotation =
                                     static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_VALUE_ROTATION)),
                                 .scale = static_cast<float>(gb_node_float(&node, GB_ATTRIBUTE_SCALE)),
                                 .window = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_WINDOW)),
                                 .is_last = gb_is_last_with_state(&from.program, &node),
                                 .has_fused_kernels = from.has_fused_kernels,
                                 .sinks = sinks_of(node, from)};
    return [=](step &s) {
        std::vector<mx::array> parts;
        for (const slot_run &run : s.runs)
            parts.push_back(rotated(attend(s, rule, run), rule.value_rotation));
        s.set(rule.y, joined(parts));
    };
}

/* ---- Convolution and memory ---------------------------------------------------------------------------- */

/* Rows [n + W - 1,C] under taps [W,C]: [n,C]. */
static mx::array convolved(const mx::array &rows, const mx::array &taps, int count) {
    const int width = taps.shape(0);
    if (count == 1)
        return mx::sum(mx::multiply(rows, taps), 0, true);
    mx::array sum = mx::multiply(part(rows, 0, 0, count), part(taps, 0, 0, 1));
    for (int w = 1; w < width; w++)
        sum = mx::add(sum, mx::multiply(part(rows, 0, w, w + count), part(taps, 0, w, w + 1)));
    return sum;
}

static operation causal_conv(const gb_node &node, weights &from) {
    const mx::array weight = from.numbers_of(node.operands[1]); /* [C,1,W] */
    const mx::array taps = evaluated(mx::contiguous(mx::swapaxes(mx::squeeze(weight, 1), 0, 1)));
    const uint32_t tail = state_index(node, from, 3);
    return [=, x = node.operands[0], y = node.results[0]](step &s) {
        std::vector<mx::array> parts;
        for (const slot_run &run : s.runs) {
            const mx::array rows =
                mx::concatenate({s.states.recurrent(run.slot, tail), of_run(s, x, run)}, 0);
            parts.push_back(convolved(rows, taps, run.count));
            s.states.set_recurrent(run.slot, tail, mx::contiguous(part(rows, 0, run.count, rows.shape(0))));
        }
        s.set(y, joined(parts));
    };
}

/* The operands of a run of gated_delta, and the memory before it [1,H,E,D]. */
struct delta_operands {
    mx::array query, key;   /* [n,K,D] */
    mx::array value;        /* [n,H,E] */
    mx::array decay, write; /* [n,H] */
    mx::array memory;
};

struct delta_results {
    mx::array y, memory;
};

/* Which key head value head h has, h mod K or h / (H / K), and whether what it recalls is corrected. */
struct delta_kind {
    bool is_tiled, corrects;
};

/* MLX's kernel gives neighbouring value heads the same key head; tiled ones get a key head each. */
static delta_results update_memory(const delta_operands &operands, bool is_tiled) {
    const int shared = operands.value.shape(1) / operands.key.shape(1);
    const auto one_text = [](const mx::array &x) { return mx::expand_dims(x, 0); };
    const auto each_head = [&](const mx::array &x) {
        return one_text(is_tiled && shared > 1 ? mx::tile(x, {1, shared, 1}) : x);
    };
    const std::vector<mx::array> updated = mx::fast::gated_delta_update(
        each_head(operands.query), each_head(operands.key), one_text(operands.value),
        one_text(operands.decay), one_text(operands.write), operands.memory);
    return {mx::squeeze(updated[0], 0), updated[1]};
}

/* The same for one token, as products of a row and a matrix: half the time of what MLX makes of its kernel.
 * Value heads stand as [K,H/K], tiled ones as [H/K,K]. */
static delta_results update_memory_once(const delta_operands &operands, delta_kind kind) {
    const bool is_tiled = kind.is_tiled;
    const mx::array &value = operands.value;
    const int heads = value.shape(1), keys = operands.key.shape(1), shared = heads / keys;
    const int outer = is_tiled ? shared : keys, inner = is_tiled ? keys : shared;
    const int inputs = operands.key.shape(2), outputs = value.shape(2);
    const auto key_rows = [&](const mx::array &x) {
        return mx::reshape(x, {is_tiled ? 1 : keys, is_tiled ? keys : 1, 1, inputs});
    };
    const auto each_value = [&](const mx::array &x, int rows, int columns) {
        return mx::reshape(x, {outer, inner, rows, columns});
    };
    const auto times = [](const mx::array &rows, const mx::array &matrices) {
        return mx::matmul(rows, mx::swapaxes(matrices, 2, 3));
    };
    const mx::array key = key_rows(operands.key), write = each_value(operands.write, 1, 1);
    const mx::array kept =
        mx::multiply(each_value(operands.memory, outputs, inputs), each_value(operands.decay, 1, 1));
    const mx::array written = each_value(value, 1, outputs);
    const mx::array change =
        mx::multiply(kind.corrects ? mx::subtract(written, times(key, kept)) : written, write);
    const mx::array memory = mx::add(kept, mx::multiply(each_value(change, outputs, 1), key));
    const mx::array y = times(key_rows(operands.query), memory);
    return {mx::reshape(y, {1, heads, outputs}), mx::reshape(memory, operands.memory.shape())};
}

static delta_operands token_of(const delta_operands &all, int n, const mx::array &memory) {
    const auto row = [n](const mx::array &x) { return part(x, 0, n, n + 1); };
    return {row(all.query), row(all.key), row(all.value), row(all.decay), row(all.write), memory};
}

/* MLX's kernel always corrects; without it tokens go one by one. */
static delta_results update_memory_by_token(const delta_operands &operands, delta_kind kind) {
    std::vector<mx::array> rows;
    mx::array memory = operands.memory;
    for (int n = 0; n < operands.value.shape(0); n++) {
        const delta_results updated = update_memory_once(token_of(operands, n, memory), kind);
        rows.push_back(updated.y);
        memory = updated.memory;
    }
    return {joined(rows), memory};
}

static operation gated_delta(const gb_node &node, weights &from) {
    const uint32_t memory = state_index(node, from, 6);
    const std::vector<gb_ref> operands(node.operands, node.operands + 5); /* query, key, value, decay, beta */
    const delta_kind kind = {gb_node_int(&node, GB_ATTRIBUTE_TILED) != 0,
                             gb_node_int(&node, GB_ATTRIBUTE_CORRECTS) != 0};
    return [=, has_fused_kernels = from.has_fused_kernels, y = node.results[0]](step &s) {
        std::vector<mx::array> parts;
        for (const slot_run &run : s.runs) {
            const auto operand = [&](size_t i) { return of_run(s, operands[i], run); };
            const delta_operands given = {operand(0), operand(1), operand(2),
                                          operand(3), operand(4), s.states.recurrent(run.slot, memory)};
            const bool has_kernel = kind.corrects && (run.count > 1 || has_fused_kernels);
            const delta_results updated =
                has_kernel ? update_memory(given, kind.is_tiled) : update_memory_by_token(given, kind);
            parts.push_back(updated.y);
            s.states.set_recurrent(run.slot, memory, updated.memory);
        }
        s.set(y, joined(parts));
    };
}

/* ---- Token counts -------------------------------------------------------------------------------------- */

/* How often each token stands in a list of ids: [V]. */
static mx::array count_ids(const mx::array &ids, int vocabulary) {
    const mx::array none = mx::zeros({vocabulary}, mx::float32);
    if (ids.size() == 0)
        return none;
    return mx::scatter_add(none, ids, mx::ones({ids.shape(0), 1}, mx::float32), 0);
}

/* Counts of the row's tokens [2,V]: in the prompt, and generated. */
static mx::array count_row(step &s, uint32_t history, int row, int vocabulary) {
    const int32_t from = s.batch.generated_from[row], at = s.batch.rows[row];
    if (from < 0)
        return mx::zeros({2, vocabulary}, mx::float32);
    const int end = s.batch.positions[at] + 1, prompt = std::min(from, end);
    const mx::array ids = s.states.read(static_cast<uint32_t>(s.batch.slots[at]), history, 0, end).rows;
    return mx::stack(
        {count_ids(part(ids, 0, 0, prompt), vocabulary), count_ids(part(ids, 0, prompt, end), vocabulary)});
}

/* The counts are kept as [B,2,V], which penalize alone reads; without a row that has penalties there are
 * none. */
static operation count_tokens(const gb_node &node, weights &from) {
    const uint32_t history = state_index(node, from, 5);
    const auto vocabulary = static_cast<int>(from.program.metadata.vocab_size);
    require_input(from.program, node, 4, GB_ROLE_GENERATED_FROM);
    return [=, tokens = node.operands[0], counts = node.results[0]](step &s) {
        for (const slot_run &run : s.runs)
            s.states.append(run.slot, history, s.states.rounded(history, of_run(s, tokens, run)), run.start);
        const int32_t *first = s.batch.generated_from, *last = first + s.row_count();
        if (std::all_of(first, last, [](int32_t position) { return position < 0; }))
            return;
        std::vector<mx::array> rows;
        for (int b = 0; b < s.row_count(); b++)
            rows.push_back(count_row(s, history, b, vocabulary));
        s.set(counts, mx::stack(rows));
    };
}

/* ---- Hidden states ------------------------------------------------------------------------------------- */

static operation keep_hidden(const gb_node &node, weights &from) {
    const uint32_t hidden = state_index(node, from, 3);
    const auto start = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_START));
    const int most = static_cast<int>(from.program.states[hidden].type.shape.dims[0]);
    return [=, x = node.operands[0], y = node.results[0]](step &s) {
        for (const slot_run &run : s.runs) {
            const mx::array rows = s.states.rounded(hidden, mx::expand_dims(of_run(s, x, run), 1));
            const int count = std::min(run.count, most - run.start - start);
            if (count > 0)
                s.states.append(run.slot, hidden, part(rows, 0, 0, count), run.start + start);
        }
        s.set(y, s[x]);
    };
}

static operation load_hidden(const gb_node &node, weights &from) {
    refuse_of_heads(node, GB_ATTRIBUTE_BEFORE);
    const uint32_t hidden = state_index(node, from, 2);
    const auto width = static_cast<int>(from.program.states[hidden].type.shape.dims[2]);
    return [=, y = node.results[0]](step &s) {
        std::vector<mx::array> parts;
        for (const slot_run &run : s.runs) {
            s.states.reserve(run.slot, hidden, run.start + run.count);
            const cache_view rows = s.states.read(run.slot, hidden, run.start, run.start + run.count);
            parts.push_back(mx::reshape(mx::astype(by_token(rows.rows), mx::float32), {run.count, width}));
        }
        s.set(y, joined(parts));
    };
}

const op_entry state_ops[] = {
    {GB_OP_ATTENTION, attention},
    {GB_OP_CAUSAL_CONV, causal_conv},
    {GB_OP_GATED_DELTA, gated_delta},
    {GB_OP_COUNT_TOKENS, count_tokens},
    {GB_OP_KEEP_HIDDEN, keep_hidden},
    {GB_OP_LOAD_HIDDEN, load_hidden},
    {GB_OP_NONE, nullptr},
};

} // namespace gb_mlx
