/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/tiny_program.h"

#include "program/draft_head.h"
#include "program/file/writer.h"
#include "program/setting_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* A node whose operands are the arguments after the op. */
#define OP(op, attribute_list, ...)                                                                          \
    gb_build_op(b, GB_OP_##op, (const gb_ref[]){__VA_ARGS__},                                                \
                sizeof((gb_ref[]){__VA_ARGS__}) / sizeof(gb_ref), (const gb_attribute[])attribute_list,      \
                sizeof((gb_attribute[])attribute_list) / sizeof(gb_attribute))
#define PLAIN(op, ...)                                                                                       \
    gb_build_op(b, GB_OP_##op, (const gb_ref[]){__VA_ARGS__},                                                \
                sizeof((gb_ref[]){__VA_ARGS__}) / sizeof(gb_ref), NULL, 0)
#define INT(key, value)                                                                                      \
    { gb_int(GB_ATTRIBUTE_##key, value) }
#define FLOAT(key, value)                                                                                    \
    { gb_float(GB_ATTRIBUTE_##key, value) }

static gb_ref constant(gb_builder *b, const char *prefix, const char *name, int64_t rows, int64_t columns) {
    char text[96];
    snprintf(text, sizeof text, "%s%s", prefix, name);
    return gb_build_constant(b, text, GB_F32, columns ? 2 : 1, (const int64_t[]){rows, columns});
}

static gb_ref norm(gb_builder *b, gb_ref x, gb_ref weight) {
    return OP(RMS_NORM, FLOAT(EPSILON, 1e-6), x, weight);
}

static gb_ref heads(gb_builder *b, gb_ref x, const char *prefix, const char *name, int64_t count) {
    gb_ref weight = constant(b, prefix, name, count * TINY_HEAD_WIDTH, TINY_WIDTH);
    gb_ref rows = PLAIN(LINEAR, x, weight);
    return OP(SPLIT_HEADS, INT(HEADS, count), rows);
}

static gb_ref cache(gb_builder *b, const char *prefix, const char *name, bool ring) {
    char text[96];
    snprintf(text, sizeof text, "%s%s", prefix, name);
    int64_t dims[] = {ring ? TINY_RING : TINY_CONTEXT, TINY_KEY_HEADS, TINY_HEAD_WIDTH};
    return gb_build_state(b, text, ring ? GB_STATE_RING : GB_STATE_CACHE, GB_F32, 3, dims,
                          ring ? TINY_WINDOW : 0);
}

static gb_ref attention(gb_builder *b, gb_ref x, const char *prefix, bool ring) {
    gb_ref positions = gb_build_input(b, GB_ROLE_POSITIONS);
    gb_ref slots = gb_build_input(b, GB_ROLE_SLOTS);
    gb_ref frequencies = constant(b, prefix, "frequencies", TINY_HEAD_WIDTH / 2, 0);
    gb_ref query = heads(b, x, prefix, "query", TINY_HEADS);
    gb_ref key = heads(b, x, prefix, "key", TINY_KEY_HEADS);
    gb_ref value = norm(b, heads(b, x, prefix, "value", TINY_KEY_HEADS), GB_NO_VALUE);
    query = norm(b, query, constant(b, prefix, "query_norm", TINY_HEAD_WIDTH, 0));
    query = OP(ROPE, INT(PAIR_OFFSET, TINY_HEAD_WIDTH / 2), query, positions, frequencies);
    key = OP(ROPE, INT(PAIR_OFFSET, TINY_HEAD_WIDTH / 2), key, positions, frequencies);
    gb_attribute attributes[] = {gb_float(GB_ATTRIBUTE_SCALE, 1),
                                 gb_int(GB_ATTRIBUTE_WINDOW, ring ? TINY_WINDOW : 0)};
    gb_ref operands[] = {query,
                         key,
                         value,
                         positions,
                         slots,
                         cache(b, prefix, "key_cache", ring),
                         cache(b, prefix, "value_cache", ring),
                         ring ? GB_NO_VALUE : constant(b, prefix, "sinks", TINY_HEADS, 0)};
    gb_ref mixed = gb_build_op(b, GB_OP_ATTENTION, operands, 8, attributes, 2);
    gb_ref merged = PLAIN(MERGE_HEADS, mixed);
    return PLAIN(LINEAR, merged, constant(b, prefix, "output", TINY_WIDTH, TINY_HEADS * TINY_HEAD_WIDTH));
}

static gb_ref feed_forward(gb_builder *b, gb_ref x, const char *prefix) {
    gb_ref gate = PLAIN(LINEAR, x, constant(b, prefix, "gate", 2 * TINY_WIDTH, TINY_WIDTH));
    gb_ref up = PLAIN(LINEAR, x, constant(b, prefix, "up", 2 * TINY_WIDTH, TINY_WIDTH));
    gb_ref product = PLAIN(MULTIPLY, PLAIN(GELU_TANH, gate), up);
    return PLAIN(LINEAR, product, constant(b, prefix, "down", TINY_WIDTH, 2 * TINY_WIDTH));
}

static gb_ref layer(gb_builder *b, gb_ref x, const char *prefix, bool ring) {
    gb_ref normed = norm(b, x, constant(b, prefix, "norm", TINY_WIDTH, 0));
    x = PLAIN(ADD, x, attention(b, normed, prefix, ring));
    normed = norm(b, x, constant(b, prefix, "feed_forward_norm", TINY_WIDTH, 0));
    x = PLAIN(ADD, x, feed_forward(b, normed, prefix));
    return PLAIN(SCALE, x, constant(b, prefix, "scalar", 1, 0));
}

/* Logits with their biases, under their penalties, of allowed tokens. */
static gb_ref adjust(gb_builder *b, gb_ref logits) {
    gb_ref ids = gb_build_input(b, GB_ROLE_BIAS_IDS), values = gb_build_input(b, GB_ROLE_BIAS_VALUES);
    gb_ref biased = PLAIN(APPLY_BIAS, logits, ids, values);
    gb_ref history =
        gb_build_state(b, "sampler.tokens", GB_STATE_CACHE, GB_I32, 1, (const int64_t[]){TINY_CONTEXT}, 0);
    gb_ref counts =
        PLAIN(COUNT_TOKENS, gb_build_input(b, GB_ROLE_TOKENS), gb_build_input(b, GB_ROLE_POSITIONS),
              gb_build_input(b, GB_ROLE_SLOTS), gb_build_input(b, GB_ROLE_ROWS),
              gb_build_input(b, GB_ROLE_GENERATED_FROM), history);
    gb_ref penalized =
        PLAIN(PENALIZE, biased, counts, gb_build_input(b, GB_ROLE_REPETITION_PENALTY),
              gb_build_input(b, GB_ROLE_FREQUENCY_PENALTY), gb_build_input(b, GB_ROLE_PRESENCE_PENALTY),
              gb_build_input(b, GB_ROLE_PENALIZE_PROMPT));
    return PLAIN(APPLY_MASK, penalized, gb_build_input(b, GB_ROLE_MASKED), gb_build_input(b, GB_ROLE_MASK));
}

typedef struct logprobs {
    gb_ref logprob, ids, top;
} logprobs;

/* Of the likeliest token, not of the one that is drawn: so the `if` is the graph's last node, as tests of
 * regions take for granted. */
static logprobs build_logprobs(gb_builder *b, gb_ref logits) {
    gb_ref wanted = gb_build_input(b, GB_ROLE_WANT_LOGPROBS);
    gb_ref normalizer = PLAIN(LOG_NORMALIZER, logits, wanted);
    gb_ref ids = OP(TOP_IDS, INT(COUNT, TINY_TOP), logits, wanted);
    gb_ref logprob = PLAIN(LOG_PROBABILITY, logits, normalizer, PLAIN(ARGMAX, logits));
    return (logprobs){logprob, ids, PLAIN(LOG_PROBABILITY, logits, normalizer, ids)};
}

gb_ref tiny_program_sampler(gb_builder *b, gb_ref logits) {
    gb_ref temperature = gb_build_input(b, GB_ROLE_TEMPERATURE);
    gb_ref greedy = PLAIN(IS_ZERO, temperature);
    gb_build_if_begin(b, PLAIN(ANY_FALSE, greedy));
    gb_ref keep = PLAIN(CANDIDATES, logits);
    gb_ref one = OP(FILL_LIKE, FLOAT(VALUE, 1), temperature);
    gb_ref scaled = PLAIN(APPLY_TEMPERATURE, logits, PLAIN(SELECT, greedy, one, temperature));
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_MASKS(kind)(keep = PLAIN(NAME##_MASK, scaled, keep, gb_build_input(b, GB_ROLE_##NAME));)
#include "program/roles.def"
    gb_ref bits = OP(RANDOM_BITS, INT(COUNT, TINY_VOCABULARY), gb_build_input(b, GB_ROLE_SEED));
    gb_ref scores = PLAIN(ADD, scaled, PLAIN(GUMBEL_NOISE, bits));
    gb_ref drawn = PLAIN(ARGMAX, scores, keep);
    gb_ref best = PLAIN(ARGMAX, logits);
    gb_build_if_else(b, PLAIN(CHOOSE_TOKEN, greedy, best, drawn));
    return gb_build_if_end(b, PLAIN(ARGMAX, logits));
}

static void set_metadata(gb_metadata *metadata, bool use_sampling) {
    static const int32_t stop_tokens[] = {1, 7};
    metadata->architecture = "tiny";
    metadata->name = "tiny \"program\"";
    metadata->source = "test";
    metadata->vocab_size = TINY_VOCABULARY;
    metadata->max_context = TINY_CONTEXT;
    metadata->prefill_chunk = TINY_CHUNK;
    metadata->use_sampling = use_sampling;
    metadata->stop_tokens = (gb_token_list){stop_tokens, 2};
    metadata->bos_token = 2;
    metadata->has_bos_token = true;
    metadata->temperature = 1;
    metadata->has_temperature = true;
    metadata->top_k = 40;
    metadata->has_top_k = true;
    metadata->top_p = 0.95;
    metadata->has_top_p = true;
    metadata->max_bias = TINY_BIASES;
    metadata->has_max_bias = true;
    metadata->max_top_logprobs = TINY_TOP;
    metadata->has_max_top_logprobs = true;
}

/* Everything after the layers; ends the builder. */
static gumbel_status finish(gb_builder *b, gb_ref x, gb_ref table, bool use_sampling, gb_program **program,
                            gumbel_error *error) {
    gb_ref rows = PLAIN(GATHER_ROWS, x, gb_build_input(b, GB_ROLE_ROWS));
    gb_ref head = PLAIN(LINEAR, norm(b, rows, constant(b, "", "final_norm", TINY_WIDTH, 0)), table);
    gb_ref logits = OP(SOFT_CAP, FLOAT(CAP, 30), head);
    if (use_sampling) {
        logprobs made = build_logprobs(b, logits);
        gb_build_output(b, GB_ROLE_NEXT, tiny_program_sampler(b, adjust(b, logits)));
        gb_build_output(b, GB_ROLE_LOGPROB, made.logprob);
        gb_build_output(b, GB_ROLE_TOP_IDS, made.ids);
        gb_build_output(b, GB_ROLE_TOP_LOGPROBS, made.top);
    } else {
        gb_build_output(b, GB_ROLE_LOGITS, logits);
    }
    gumbel_status status = gb_builder_finish(b, program, error);
    gb_builder_destroy(b);
    return status;
}

gumbel_status tiny_program_try(bool use_sampling, gb_program **program, gumbel_error *error) {
    gb_builder *b = gb_builder_create();
    *program = NULL;
    if (!b)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a builder");
    set_metadata(gb_builder_metadata(b), use_sampling);
    gb_ref table = constant(b, "", "embedding", TINY_VOCABULARY, TINY_WIDTH);
    gb_ref x = OP(EMBEDDING, FLOAT(SCALE, 4), table, gb_build_input(b, GB_ROLE_TOKENS));
    x = layer(b, x, "layers.0.", true);
    x = layer(b, x, "layers.1.", false);
    return finish(b, x, table, use_sampling, program, error);
}

gb_program *tiny_program_build(bool use_sampling) {
    gb_program *program;
    gumbel_error error;
    if (tiny_program_try(use_sampling, &program, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    return program;
}

/* ---- The one with a draft head ---------------------------------------------------------------------------
 */

static gb_ref hidden_state(gb_builder *b) {
    return gb_build_state(b, "hidden", GB_STATE_CACHE, GB_BF16, 3,
                          (const int64_t[]){TINY_CONTEXT, 1, TINY_WIDTH}, 0);
}

static gb_ref keep_hidden(gb_builder *b, gb_ref x, gb_ref hidden, int64_t start) {
    return OP(KEEP_HIDDEN, INT(START, start), x, gb_build_input(b, GB_ROLE_POSITIONS),
              gb_build_input(b, GB_ROLE_SLOTS), hidden);
}

/* Embeddings beside what the token before each has left, in the row of its own position or of the one before.
 */
static gb_ref beside_hidden(gb_builder *b, gb_ref x, gb_ref hidden, int64_t rows_before) {
    gb_ref before = OP(LOAD_HIDDEN, INT(BEFORE, rows_before), gb_build_input(b, GB_ROLE_POSITIONS),
                       gb_build_input(b, GB_ROLE_SLOTS), hidden);
    gb_ref both = PLAIN(CONCATENATE, x, before);
    return PLAIN(LINEAR, both, constant(b, "head.", "both", TINY_WIDTH, 2 * TINY_WIDTH));
}

/* Attends to the keys of a layer of the target. */
static gb_ref attend(gb_builder *b, gb_ref x, const char *prefix, gb_ref keys, gb_ref values, bool ring) {
    const gb_ref last = gb_build_input(b, GB_ROLE_LAST), slots = gb_build_input(b, GB_ROLE_SLOTS);
    const gb_attribute turn[] = {gb_int(GB_ATTRIBUTE_PAIR_OFFSET, TINY_HEAD_WIDTH / 2),
                                 gb_int(GB_ATTRIBUTE_START, 1)},
                       attributes[] = {gb_float(GB_ATTRIBUTE_SCALE, 1),
                                       gb_int(GB_ATTRIBUTE_WINDOW, ring ? TINY_WINDOW : 0)};
    gb_ref query = heads(b, x, prefix, "query", TINY_HEADS);
    const gb_ref turned[] = {query, last, constant(b, prefix, "frequencies", TINY_HEAD_WIDTH / 2, 0)};
    query = gb_build_op(b, GB_OP_ROPE, turned, 3, turn, 2);
    const gb_ref operands[] = {query, last, slots, keys, values};
    gb_ref merged = PLAIN(MERGE_HEADS, gb_build_op(b, GB_OP_ATTEND, operands, 5, attributes, 2));
    gb_ref output = constant(b, prefix, "output", TINY_WIDTH, TINY_HEADS * TINY_HEAD_WIDTH);
    return PLAIN(ADD, x, PLAIN(LINEAR, merged, output));
}

static gb_ref read_layers(gb_builder *b, gb_ref x) {
    gb_ref keys = cache(b, "layers.0.", "key_cache", true),
           values = cache(b, "layers.0.", "value_cache", true);
    x = attend(b, x, "head.0.", keys, values, true);
    x = attend(b, x, "head.1.", keys, values, true);
    keys = cache(b, "layers.1.", "key_cache", false);
    return attend(b, x, "head.2.", keys, cache(b, "layers.1.", "value_cache", false), false);
}

typedef enum with_hidden { TARGET, HEAD, READER } with_hidden;

static gb_program *build_with_hidden(with_hidden kind) {
    gb_builder *b = gb_builder_create();
    gb_program *program;
    gumbel_error error;
    assert_non_null(b);
    set_metadata(gb_builder_metadata(b), true);
    gb_ref table = constant(b, "", "embedding", TINY_VOCABULARY, TINY_WIDTH), hidden = hidden_state(b);
    gb_ref x = OP(EMBEDDING, FLOAT(SCALE, 4), table, gb_build_input(b, GB_ROLE_TOKENS));
    x = kind == TARGET ? layer(b, x, "layers.0.", true) : beside_hidden(b, x, hidden, kind == READER);
    x = kind == READER ? read_layers(b, x) : layer(b, x, kind == HEAD ? "head." : "layers.1.", false);
    if (finish(b, keep_hidden(b, x, hidden, kind == HEAD), table, true, &program, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    return program;
}

gb_program *tiny_target_build(void) {
    return build_with_hidden(TARGET);
}

gb_program *tiny_head_build(void) {
    return build_with_hidden(HEAD);
}

gb_program *tiny_reader_build(void) {
    return build_with_hidden(READER);
}

static gb_program *build_pair(gb_program *head) {
    gb_program *program = tiny_target_build();
    program->head = head;
    assert_int_equal(gb_share_constants(program, NULL), GUMBEL_OK);
    return program;
}

gb_program *tiny_pair_build(void) {
    return build_pair(tiny_head_build());
}

gb_program *tiny_reader_pair_build(void) {
    return build_pair(tiny_reader_build());
}

/* ---- The recurrent one --------------------------------------------------------------------------------- */

enum { MIXED = (2 * TINY_KEY_HEADS + TINY_HEADS) * TINY_HEAD_WIDTH }; /* a row of query, key and value */

/* count heads of the mixed row, from element start on. */
static gb_ref part_of_mixed(gb_builder *b, gb_ref mixed, int64_t start, int64_t count) {
    gb_attribute attributes[] = {gb_int(GB_ATTRIBUTE_START, start),
                                 gb_int(GB_ATTRIBUTE_COUNT, count * TINY_HEAD_WIDTH)};
    gb_ref part = gb_build_op(b, GB_OP_SLICE, &mixed, 1, attributes, 2);
    return OP(SPLIT_HEADS, INT(HEADS, count), part);
}

static gb_ref delta_net(gb_builder *b, gb_ref x) {
    const int64_t kernel[] = {MIXED, 1, TINY_CONV}, tail[] = {TINY_CONV - 1, MIXED};
    const int64_t memory[] = {TINY_HEADS, TINY_HEAD_WIDTH, TINY_HEAD_WIDTH};
    gb_ref slots = gb_build_input(b, GB_ROLE_SLOTS);
    gb_ref mixed = PLAIN(LINEAR, x, constant(b, "", "mix", MIXED, TINY_WIDTH));
    mixed = PLAIN(CAUSAL_CONV, mixed, gb_build_constant(b, "conv", GB_F32, 3, kernel), slots,
                  gb_build_state(b, "tail", GB_STATE_RECURRENT, GB_F32, 2, tail, 0));
    mixed = PLAIN(SILU, mixed);
    int64_t key_width = TINY_KEY_HEADS * TINY_HEAD_WIDTH;
    gb_ref query = OP(L2_NORMALIZE, FLOAT(EPSILON, 1e-6), part_of_mixed(b, mixed, 0, TINY_KEY_HEADS));
    gb_ref key = OP(L2_NORMALIZE, FLOAT(EPSILON, 1e-6), part_of_mixed(b, mixed, key_width, TINY_KEY_HEADS));
    gb_ref value = part_of_mixed(b, mixed, 2 * key_width, TINY_HEADS);
    gb_ref decay = PLAIN(DELTA_DECAY, PLAIN(LINEAR, x, constant(b, "", "decay", TINY_HEADS, TINY_WIDTH)),
                         constant(b, "", "a_log", TINY_HEADS, 0), constant(b, "", "bias", TINY_HEADS, 0));
    gb_ref beta = PLAIN(SIGMOID, PLAIN(LINEAR, x, constant(b, "", "beta", TINY_HEADS, TINY_WIDTH)));
    gb_ref y = PLAIN(GATED_DELTA, query, key, value, decay, beta, slots,
                     gb_build_state(b, "memory", GB_STATE_RECURRENT, GB_F32, 3, memory, 0));
    return PLAIN(LINEAR, PLAIN(MERGE_HEADS, y),
                 constant(b, "", "output", TINY_WIDTH, TINY_HEADS * TINY_HEAD_WIDTH));
}

static gb_ref experts(gb_builder *b, gb_ref x) {
    const int64_t up[] = {TINY_EXPERTS, 2 * TINY_WIDTH, TINY_WIDTH};
    const int64_t down[] = {TINY_EXPERTS, TINY_WIDTH, 2 * TINY_WIDTH};
    gb_attribute count = gb_int(GB_ATTRIBUTE_COUNT, TINY_CHOICES);
    gb_ref logits = PLAIN(LINEAR, x, constant(b, "", "router", TINY_EXPERTS, TINY_WIDTH)), routes[2];
    logits = PLAIN(ADD_BIAS, logits, constant(b, "", "router_bias", TINY_EXPERTS, 0));
    gb_build_op_results(b, GB_OP_ROUTE_TOP_K, &logits, 1, &count, 1, routes, 2);
    gb_ref y = PLAIN(EXPERT_LINEAR, x, gb_build_constant(b, "up", GB_F32, 3, up), routes[0]);
    y = PLAIN(ADD_EXPERT_BIAS, y, constant(b, "", "up_bias", TINY_EXPERTS, 2 * TINY_WIDTH), routes[0]);
    const gb_attribute clamp[] = {gb_float(GB_ATTRIBUTE_ALPHA, 1.702), gb_float(GB_ATTRIBUTE_LIMIT, 0.25)};
    y = gb_build_op(b, GB_OP_CLAMPED_SWIGLU, (const gb_ref[]){y, y}, 2, clamp, 2);
    y = PLAIN(EXPERT_LINEAR, y, gb_build_constant(b, "down", GB_F32, 3, down), routes[0]);
    y = PLAIN(ALL_GATHER, PLAIN(COMBINE_EXPERTS, y, routes[1]));
    gb_ref gate = PLAIN(LINEAR, x, constant(b, "", "gate", 1, TINY_WIDTH));
    return PLAIN(SCALE_ROWS, y, gate);
}

/* Experts without a gate, of a router by sigmoids, whose results are scaled by column. */
static gb_ref plain_experts(gb_builder *b, gb_ref x) {
    const int64_t matrix[] = {TINY_EXPERTS, TINY_WIDTH, TINY_WIDTH};
    const gb_attribute count = gb_int(GB_ATTRIBUTE_COUNT, TINY_CHOICES);
    const gb_ref logits = PLAIN(LINEAR, x, constant(b, "", "scorer", TINY_EXPERTS, TINY_WIDTH));
    gb_ref routes[2];
    gb_build_op_results(b, GB_OP_ROUTE_SIGMOID,
                        (const gb_ref[]){logits, constant(b, "", "correction", TINY_EXPERTS, 0)}, 2, &count,
                        1, routes, 2);
    gb_ref y = PLAIN(EXPERT_LINEAR, x, gb_build_constant(b, "plain", GB_F32, 3, matrix), routes[0]);
    y = PLAIN(COMBINE_EXPERTS, PLAIN(RELU_SQUARED, PLAIN(SOFTPLUS, y)), routes[1]);
    return PLAIN(SCALE_COLUMNS, y, constant(b, "", "columns", TINY_WIDTH / 2, 0));
}

gb_program *tiny_recurrent_build(bool use_sampling) {
    gb_builder *b = gb_builder_create();
    assert_non_null(b);
    set_metadata(gb_builder_metadata(b), use_sampling);
    gb_build_input(b, GB_ROLE_POSITIONS);
    gb_ref table = constant(b, "", "embedding", TINY_VOCABULARY, TINY_WIDTH);
    gb_ref x = PLAIN(EMBEDDING, table, gb_build_input(b, GB_ROLE_TOKENS));
    x = PLAIN(ADD, x, delta_net(b, x));
    x = PLAIN(ADD, x, experts(b, x));
    x = PLAIN(ADD, x, plain_experts(b, x));
    gb_program *program;
    gumbel_error error;
    if (finish(b, x, table, use_sampling, &program, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    return program;
}

/* ---- Its file ------------------------------------------------------------------------------------------ */

static gumbel_status write_constant(gb_writer *writer, uint32_t index, uint64_t size, gumbel_error *error) {
    GB_TRY(gb_writer_begin_constant(writer, index, error));
    uint32_t random = index * 2654435761u + 1;
    for (uint64_t i = 0; i < size / sizeof(float); i++) {
        random = random * 1664525u + 1013904223u;
        float value = (float)(random >> 8) * 0x1p-24f - 0.5f;
        GB_TRY(gb_writer_write(writer, &value, sizeof value, error));
    }
    return GUMBEL_OK;
}

gumbel_status tiny_program_write(gb_program *program, const char *path, gumbel_error *error) {
    gb_writer *writer;
    GB_TRY(gb_writer_create(path, NULL, program, &writer, error));
    for (uint32_t i = 0; i < gb_file_constant_count(program); i++) {
        const gb_constant *constant = gb_file_constant(program, i);
        gumbel_status status = constant->same ? GUMBEL_OK : write_constant(writer, i, constant->size, error);
        if (status != GUMBEL_OK) {
            gb_writer_abort(writer);
            return status;
        }
    }
    return gb_writer_finish(writer, error);
}
