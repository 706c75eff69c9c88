/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/rope_config.h"

#include "base/memory.h"
#include "export/models/rope_unread.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846, MOST = 1e12;

/* What a scaling works on. */
typedef struct rotary {
    gb_config object;      /* rope_parameters, or rope_scaling */
    const gb_config *text; /* around it */
    double theta;
    int64_t head_dim, max_positions; /* head_dim: the dims that turn */
    bool is_phi;
    bool may_scale_queries;
    gb_rope_config *rope;
} rotary;

static double positive(const gb_config *object, const char *key, double fallback) {
    return gb_config_number(object, key, fallback, 1e-6, MOST);
}

static double need_positive(const gb_config *object, const char *key) {
    if (!gb_config_has(object, key))
        gb_config_fail(object, key, GUMBEL_ERROR_FORMAT, "is missing");
    return positive(object, key, 1);
}

static void scale_default(const rotary *r) {
    (void)r;
}

static void scale_linear(const rotary *r) {
    const double factor = need_positive(&r->object, "factor");
    for (int64_t i = 0; i < r->head_dim / 2; i++)
        r->rope->frequencies[i] /= factor;
}

/* Slow pairs are slowed down, fast ones are not, and those between in proportion. */
static void scale_llama3(const rotary *r) {
    const double factor = need_positive(&r->object, "factor"),
                 low = need_positive(&r->object, "low_freq_factor"),
                 high = need_positive(&r->object, "high_freq_factor"),
                 context = need_positive(&r->object, "original_max_position_embeddings");
    if (high <= low)
        gb_config_fail(&r->object, "high_freq_factor", GUMBEL_ERROR_FORMAT,
                       "%g, expected more than the %g of low_freq_factor", high, low);
    for (int64_t i = 0; i < r->head_dim / 2; i++) {
        const double turns = context * r->rope->frequencies[i] / (2 * PI);
        const double kept = fmin(fmax((turns - low) / (high - low), 0), 1);
        r->rope->frequencies[i] *= (1 - kept) / factor + kept;
    }
}

/* The pair, as a real number, that turns so often within a context. */
static double pair_of_turns(const rotary *r, double turns, double context) {
    return (double)r->head_dim * log(context / (turns * 2 * PI)) / (2 * log(r->theta));
}

static double yarn_factor(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

static double yarn_attention_factor(const gb_config *object, double factor) {
    double whole = yarn_factor(factor, 1);
    const double mscale = gb_config_number(object, "mscale", 0, 0, 1e3),
                 mscale_all_dim = gb_config_number(object, "mscale_all_dim", 0, 0, 1e3);
    if (mscale > 0 && mscale_all_dim > 0)
        whole = yarn_factor(factor, mscale) / yarn_factor(factor, mscale_all_dim);
    return positive(object, "attention_factor", whole);
}

static void scale_yarn(const rotary *r) {
    const gb_config *object = &r->object;
    const double factor = need_positive(object, "factor"),
                 context = positive(object, "original_max_position_embeddings", (double)r->max_positions),
                 fast = positive(object, "beta_fast", 32), slow = positive(object, "beta_slow", 1);
    double first = pair_of_turns(r, fast, context), last = pair_of_turns(r, slow, context);
    if (gb_config_bool(object, "truncate", true)) {
        first = floor(first);
        last = ceil(last);
    }
    first = fmax(first, 0);
    last = fmin(last, (double)(r->head_dim - 1));
    if (first == last)
        last += 0.001;
    for (int64_t i = 0; i < r->head_dim / 2; i++) {
        const double slowed = fmin(fmax(((double)i - first) / (last - first), 0), 1);
        r->rope->frequencies[i] *= slowed / factor + (1 - slowed);
    }
    r->rope->attention_factor = yarn_attention_factor(object, factor);
}

static void divide(const rotary *r, const char *key, double *frequencies) {
    const int64_t pairs = r->head_dim / 2;
    const size_t listed = gb_config_list_size(&r->object, key);
    if (listed != (size_t)pairs)
        gb_config_fail(&r->object, key, GUMBEL_ERROR_FORMAT,
                       "%zu numbers, expected the %" PRId64 " pairs of a head that turn", listed, pairs);
    for (int64_t i = 0; i < pairs && listed == (size_t)pairs; i++)
        frequencies[i] /= gb_config_list_number(&r->object, key, (size_t)i, 1e-6, 1e30);
}

static double longrope_factor(double factor, double context) {
    return factor <= 1 ? 1 : sqrt(1 + log(factor) / log(context));
}

static int64_t read_original_positions(const rotary *r) {
    static const char KEY[] = "original_max_position_embeddings";
    const int64_t own = gb_config_integer(r->text, KEY, 4096, 2, INT32_MAX),
                  inner = gb_config_integer(&r->object, KEY, own, 2, INT32_MAX);
    if (inner != own)
        gb_config_fail(&r->object, KEY, GUMBEL_ERROR_UNSUPPORTED,
                       "%" PRId64 ", expected the model's own %" PRId64 ", which implementations obey", inner,
                       own);
    return own;
}

static void scale_longrope(const rotary *r) {
    gb_rope_config *rope = r->rope;
    rope->original_positions = read_original_positions(r);
    rope->long_frequencies = gb_allocate((size_t)rope->pairs, sizeof *rope->long_frequencies);
    if (!rope->long_frequencies) {
        gb_config_fail(&r->object, "long_factor", GUMBEL_ERROR_MEMORY, "no memory for the frequencies");
        return;
    }
    memcpy(rope->long_frequencies, rope->frequencies, (size_t)rope->pairs * sizeof *rope->frequencies);
    divide(r, "long_factor", rope->long_frequencies);
    divide(r, "short_factor", rope->frequencies);
    const double context = (double)rope->original_positions,
                 factor = positive(&r->object, "factor", (double)r->max_positions / context);
    rope->attention_factor = positive(&r->object, "attention_factor", longrope_factor(factor, context));
}

/* The frequencies of theta, divided as the file says. */
static void start(const rotary *r) {
    static const char DIVISORS[] = "frequency_divisors";
    const int64_t pairs = r->head_dim / 2;
    const size_t listed = gb_config_list_size(&r->object, DIVISORS);
    r->rope->attention_factor = 1;
    if (listed > 0 && listed != (size_t)pairs)
        gb_config_fail(&r->object, DIVISORS, GUMBEL_ERROR_FORMAT,
                       "%zu numbers, expected the %" PRId64 " pairs of a head", listed, pairs);
    for (int64_t i = 0; i < pairs; i++) {
        const bool is_divided = listed == (size_t)pairs;
        const double divisor =
            is_divided ? gb_config_list_number(&r->object, DIVISORS, (size_t)i, 1e-6, 1e30) : 1;
        r->rope->frequencies[i] = pow(r->theta, -2.0 * (double)i / (double)r->head_dim) / divisor;
    }
}

static void scale(const rotary *r) {
    static const struct {
        const char *name;
        void (*scale)(const rotary *r);
        bool is_phi, is_of_others;
    } types[] = {{"default", scale_default, true, true},    {"linear", scale_linear, false, true},
                 {"llama3", scale_llama3, false, true},     {"yarn", scale_yarn, false, true},
                 {"longrope", scale_longrope, true, false}, {"su", scale_longrope, true, false}};
    const gb_config *object = &r->object;
    const char *type = gb_config_string(object, "rope_type", gb_config_string(object, "type", "default"));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, types[i].name) == 0 && (r->is_phi ? types[i].is_phi : types[i].is_of_others)) {
            types[i].scale(r);
            return;
        }
    gb_config_fail(object, "rope_type", GUMBEL_ERROR_UNSUPPORTED,
                   "\"%s\" is not supported in this version; known are %s", type,
                   r->is_phi ? "default, longrope, su" : "default, linear, llama3, yarn");
}

/* How much of a head turns. */
static double read_proportion(const gb_config *text, const gb_config *object) {
    static const char KEY[] = "partial_rotary_factor";
    return gb_config_number(object, KEY, gb_config_number(text, KEY, 1, 0, 1), 0, 1);
}

static void refuse_part(const gb_config *text, const gb_config *object) {
    if (read_proportion(text, object) != 1)
        gb_config_fail(object, "partial_rotary_factor", GUMBEL_ERROR_UNSUPPORTED,
                       "heads of which a part turns are not supported in this version; expected 1");
}

static const char QUERY_BETA[] = "llama_4_scaling_beta";

/* Keys of relatives of the models: they must not change anything. */
static void refuse_variants(const rotary *r) {
    for (const char *key = NULL; (key = gb_config_next_key(&r->object, key));)
        if ((strcmp(key, QUERY_BETA) == 0 && !r->may_scale_queries) || strstr(key, "_attention"))
            gb_config_fail(&r->object, key, GUMBEL_ERROR_UNSUPPORTED, "is not supported in this version");
}

static void read_query_scale(const gb_config *object, gb_rope_config *rope) {
    rope->query_beta = gb_config_number(object, QUERY_BETA, 0, 0, 1e3);
    if (rope->query_beta > 0)
        rope->query_positions = need_positive(object, "original_max_position_embeddings");
}

/* r lacks theta, for which theta is the fallback, and what is allocated. */
static void read_parameters(const gb_config *text, rotary r, double theta) {
    *r.rope = (gb_rope_config){.attention_factor = 1, .pairs = r.head_dim / 2};
    r.text = text;
    r.rope->theta = r.theta = gb_config_number(&r.object, "rope_theta", theta, 1, MOST);
    r.rope->frequencies = gb_allocate((size_t)r.head_dim / 2, sizeof *r.rope->frequencies);
    if (!r.rope->frequencies) {
        gb_config_fail(text, "rope_theta", GUMBEL_ERROR_MEMORY, "no memory for the frequencies");
        return;
    }
    refuse_variants(&r);
    if (r.may_scale_queries)
        read_query_scale(&r.object, r.rope);
    start(&r);
    scale(&r);
}

/* The object that has the parameters of all layers. */
static gb_config find_one(const gb_config *text) {
    const bool is_old = gb_config_has(text, "rope_scaling");
    if (is_old)
        gb_refuse_rope_beside(text, "rope_parameters", "rope_scaling");
    return gb_config_child(text, is_old ? "rope_scaling" : "rope_parameters");
}

static void read_whole_heads(const gb_config *text, const rotary *r, double theta) {
    refuse_part(text, &r->object);
    read_parameters(text, *r, gb_config_number(text, "rope_theta", theta, 1, MOST));
}

void gb_rope_config_read(const gb_config *text, double theta, int64_t head_dim, int64_t max_positions,
                         gb_rope_config *rope) {
    const rotary r = {
        .object = find_one(text), .head_dim = head_dim, .max_positions = max_positions, .rope = rope};
    read_whole_heads(text, &r, theta);
}

void gb_rope_config_read_ministral(const gb_config *text, double theta, int64_t head_dim,
                                   int64_t max_positions, gb_rope_config *rope) {
    const rotary r = {.object = find_one(text),
                      .head_dim = head_dim,
                      .max_positions = max_positions,
                      .may_scale_queries = true,
                      .rope = rope};
    read_whole_heads(text, &r, theta);
}

void gb_rope_config_read_phi(const gb_config *text, double theta, int64_t head_dim, int64_t max_positions,
                             gb_rope_config *rope) {
    rotary r = {.object = find_one(text), .max_positions = max_positions, .is_phi = true, .rope = rope};
    r.head_dim = (int64_t)((double)head_dim * read_proportion(text, &r.object));
    if (r.head_dim < 2 || r.head_dim % 2 != 0) {
        gb_config_fail(&r.object, "partial_rotary_factor", GUMBEL_ERROR_FORMAT,
                       "%" PRId64 " dims turn of a head's %" PRId64 ", expected an even number of 2 or more",
                       r.head_dim, head_dim);
        r.head_dim = head_dim;
    }
    read_parameters(text, r, gb_config_number(text, "rope_theta", theta, 1, MOST));
}

/* The object that has the parameters of a kind. */
static gb_config find_kind(const gb_config *text, const gb_rope_kind *kind) {
    static const char OLD[] = "rope_scaling", NEW[] = "rope_parameters";
    const gb_config parameters = gb_config_child(text, NEW);
    for (const char *key = NULL; (key = gb_config_next_key(&parameters, key));)
        if (!strstr(key, "_attention"))
            gb_config_fail(&parameters, key, GUMBEL_ERROR_UNSUPPORTED,
                           "stands beside the kinds of layers, expected it within %s", kind->name);
    const gb_config scaling = gb_config_child(text, OLD);
    if (parameters.object && scaling.object && !gb_config_equal_objects(&parameters, &scaling))
        gb_config_fail(text, OLD, GUMBEL_ERROR_UNSUPPORTED, "stands beside %s, expected one of both", NEW);
    const bool is_old = kind->has_rope_scaling && !parameters.object;
    return is_old ? scaling : gb_config_child(&parameters, kind->name);
}

void gb_rope_config_read_kind(const gb_config *text, const gb_rope_kind *kind, int64_t head_dim,
                              int64_t max_positions, gb_rope_config *rope) {
    const rotary r = {
        .object = find_kind(text, kind), .head_dim = head_dim, .max_positions = max_positions, .rope = rope};
    refuse_part(text, &r.object);
    read_parameters(text, r, gb_config_number(text, kind->theta_key, kind->theta, 1, MOST));
}

void gb_rope_config_free(gb_rope_config *rope) {
    gb_free(rope->frequencies);
    gb_free(rope->long_frequencies);
    *rope = (gb_rope_config){0};
}
