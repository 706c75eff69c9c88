/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gguf/settings.h"

#include "base/memory.h"

#include <inttypes.h>

size_t gb_gguf_need_layers(gb_gguf_metadata *metadata) {
    static const char KEY[] = ".block_count";
    int64_t count = gb_gguf_need_integer(metadata, KEY);
    if (count >= 1 && count <= GB_GGUF_LAYERS)
        return (size_t)count;
    gb_gguf_fail(metadata, KEY, GUMBEL_ERROR_FORMAT, "expected an integer from 1 to %d, found %" PRId64,
                 GB_GGUF_LAYERS, count);
    return 0;
}

void gb_gguf_need_equal(gb_gguf_metadata *metadata, const char *key, int64_t expected) {
    int64_t found = gb_gguf_get_integer(metadata, key, expected);
    if (found != expected)
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_UNSUPPORTED,
                     "%" PRId64 ", expected the %" PRId64 " of the head's size", found, expected);
}

void gb_gguf_copy_integer(gb_gguf_metadata *metadata, const char *key, json_t *config, const char *name) {
    gb_gguf_set(metadata, config, name, json_integer((json_int_t)gb_gguf_need_integer(metadata, key)));
}

int64_t gb_gguf_copy_uniform(gb_gguf_metadata *metadata, const char *key, size_t layers, json_t *config,
                             const char *name) {
    int64_t value = gb_gguf_need_uniform(metadata, key, layers);
    gb_gguf_set(metadata, config, name, json_integer((json_int_t)value));
    return value;
}

void gb_gguf_write_vocabulary(gb_gguf_metadata *metadata, json_t *config) {
    const gb_tensor *table = gb_gguf_files_find(metadata->files, "token_embd.weight");
    if (table && table->rank == 2)
        gb_gguf_set(metadata, config, "vocab_size", json_integer((json_int_t)table->dims[0]));
    bool has_head = gb_gguf_files_find(metadata->files, "output.weight") != NULL;
    gb_gguf_set(metadata, config, "tie_word_embeddings", json_boolean(!has_head));
}

void gb_gguf_refuse_lookahead(gb_gguf_metadata *metadata) {
    static const char CAUSAL[] = ".attention.causal";
    if (gb_gguf_get_integer(metadata, CAUSAL, 1) != 1)
        gb_gguf_fail(metadata, CAUSAL, GUMBEL_ERROR_UNSUPPORTED,
                     "attention that looks ahead is not supported in this version; expected true");
}

int64_t gb_gguf_common(gb_gguf_metadata *metadata, const char *key, const int64_t *values, size_t count) {
    int64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (found > 0 && values[i] > 0 && values[i] != found)
            gb_gguf_fail(metadata, key, GUMBEL_ERROR_UNSUPPORTED,
                         "layers of %" PRId64 " and of %" PRId64 " are not supported in this version", found,
                         values[i]);
        found = values[i] > 0 ? values[i] : found;
    }
    return found;
}

void gb_gguf_refuse_scaled_experts(gb_gguf_metadata *metadata) {
    static const char SCALE[] = ".expert_weights_scale";
    const double scale = gb_gguf_get_number(metadata, SCALE, 1);
    if (scale != 0 && scale != 1) /* 0 stands for none */
        gb_gguf_fail(metadata, SCALE, GUMBEL_ERROR_UNSUPPORTED,
                     "%g: scaled experts are not supported in this version; expected 1", scale);
}

void gb_gguf_need_sigmoids(gb_gguf_metadata *metadata) {
    enum { SIGMOID = 2 };
    static const char KEY[] = ".expert_gating_func";
    const int64_t function = gb_gguf_get_integer(metadata, KEY, SIGMOID);
    if (function != SIGMOID && function != 0) /* 0 stands for none said */
        gb_gguf_fail(metadata, KEY, GUMBEL_ERROR_UNSUPPORTED,
                     "%" PRId64 ", expected %d: experts that are scored by sigmoids", function, SIGMOID);
}

void gb_gguf_refuse_variants(gb_gguf_metadata *metadata) {
    static const char SCALING[] = ".rope.scaling.type";
    if (gb_gguf_value_of(metadata, SCALING) && !gb_gguf_text_is(metadata, SCALING, "none"))
        gb_gguf_fail(metadata, SCALING, GUMBEL_ERROR_UNSUPPORTED,
                     "scaled rotary embedding is not supported in this version; expected \"none\"");
    gb_gguf_refuse_lookahead(metadata);
}

/* A list of the layers that slide, or the length of a pattern whose last layer does not; 0 stands for none.
 */
static void read_windows(gb_gguf_metadata *metadata, int64_t usual, int64_t *is_sliding, size_t layers) {
    static const char KEY[] = ".attention.sliding_window_pattern";
    const gb_gguf_value *value = gb_gguf_value_of(metadata, KEY);
    if (value && value->type == GB_GGUF_ARRAY) {
        gb_gguf_need_per_layer(metadata, KEY, is_sliding, layers);
        return;
    }
    const int64_t pattern = gb_gguf_get_integer(metadata, KEY, usual);
    for (size_t i = 0; i < layers; i++)
        is_sliding[i] = pattern == 0 || ((int64_t)i + 1) % pattern != 0;
}

void gb_gguf_write_windows(gb_gguf_metadata *metadata, size_t layers, int64_t pattern, json_t *config) {
    static const char KEY[] = ".attention.sliding_window";
    const int64_t window = gb_gguf_get_integer(metadata, KEY, 0);
    int64_t *is_sliding = gb_allocate(layers, sizeof *is_sliding);
    if (!is_sliding) {
        gb_gguf_fail(metadata, KEY, GUMBEL_ERROR_MEMORY, "no memory for %zu layers", layers);
        return;
    }
    if (window > 0) {
        read_windows(metadata, pattern, is_sliding, layers);
        gb_gguf_set(metadata, config, "sliding_window", json_integer((json_int_t)window));
    }
    json_t *types = json_array();
    for (size_t i = 0; i < layers; i++)
        gb_gguf_append(metadata, types, json_string(is_sliding[i] ? "sliding_attention" : "full_attention"));
    gb_gguf_set(metadata, config, "layer_types", types);
    gb_free(is_sliding);
}
