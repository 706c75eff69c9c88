/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/dense_layers.h"
#include "export/models/expert_layers.h"
#include "export/models/granite_hybrid_config.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_LAYERS = GB_MAX_DENSE_LAYERS };

/* ---- Windows ------------------------------------------------------------------------------------------- */

static bool read_is_sliding(const gb_config *text, size_t index) {
    const char *name = gb_config_list_string(text, "layer_types", index);
    if (strcmp(name, "sliding_attention") != 0 && strcmp(name, "full_attention") != 0)
        gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                       "layer %zu is \"%s\", expected \"sliding_attention\" or \"full_attention\"", index,
                       name);
    return name[0] == 's';
}

static void read_layer_types(const gb_config *text, gb_dense_config *config) {
    const size_t listed = gb_config_list_size(text, "layer_types");
    if (listed != (size_t)config->layer_count) {
        gb_config_fail(text, "layer_types", GUMBEL_ERROR_FORMAT,
                       "%zu layers, expected the %" PRId64 " of num_hidden_layers", listed,
                       config->layer_count);
        return;
    }
    for (size_t i = 0; i < listed; i++)
        config->layers[i].is_sliding = read_is_sliding(text, i);
}

/* Of Mistral and Phi all layers slide where there is a window. A list of layers is obeyed by mlx-lm alone. */
static void read_mistral_windows(const gb_config *text, const gb_dense_family *family,
                                 gb_dense_config *config) {
    const int64_t fallback = gb_config_is_null(text, "sliding_window") ? 0 : family->sliding_window;
    config->sliding_window = gb_config_optional_integer(text, "sliding_window", fallback, 1, INT32_MAX);
    if (family->traits.has_long_rope && config->sliding_window >= config->max_positions)
        config->sliding_window = 0; /* it hides nothing */
    const bool is_sliding = config->sliding_window > 0;
    if (gb_config_has(text, "layer_types"))
        read_layer_types(text, config);
    for (int64_t i = 0; i < config->layer_count; i++) {
        if (gb_config_has(text, "layer_types") && config->layers[i].is_sliding != is_sliding)
            gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                           "layer %" PRId64 " is not as sliding_window says, where implementations differ",
                           i);
        config->layers[i].is_sliding = is_sliding;
    }
}

/* Qwen lists its layers, or those from max_window_layers on slide; both only where use_sliding_window. */
static void read_qwen_windows(const gb_config *text, const gb_dense_family *family, gb_dense_config *config) {
    bool uses = gb_config_bool(text, "use_sliding_window", false);
    if (uses && family->has_experts)
        gb_config_fail(text, "use_sliding_window", GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported beside experts in this version; expected false");
    if (uses && !gb_config_is_null(text, "sliding_window"))
        config->sliding_window =
            gb_config_integer(text, "sliding_window", family->sliding_window, 1, INT32_MAX);
    uses = config->sliding_window > 0;
    const int64_t first = gb_config_integer(text, "max_window_layers", 28, 0, MAX_LAYERS);
    for (int64_t i = 0; i < config->layer_count; i++)
        config->layers[i].is_sliding = uses && i >= first;
    if (gb_config_has(text, "layer_types"))
        read_layer_types(text, config);
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].is_sliding && !uses)
            gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                           "layer %" PRId64 " slides without use_sliding_window, expected it to be true", i);
}

/* Of Llama mlx-lm alone has windows, of SmolLM3 transformers alone: they must not ask for any. */
static void refuse_windows(const gb_config *text, const gb_dense_family *family, gb_dense_config *config) {
    if (family->rope_interval > 0 && gb_config_bool(text, "use_sliding_window", false))
        gb_config_fail(text, "use_sliding_window", GUMBEL_ERROR_UNSUPPORTED,
                       "is not supported where layers lack rotary embedding; expected false");
    if (gb_config_has(text, "layer_types"))
        read_layer_types(text, config);
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].is_sliding)
            gb_config_fail(text, "layer_types", GUMBEL_ERROR_UNSUPPORTED,
                           "layer %" PRId64 " slides, expected \"full_attention\"", i);
}

/* Without a width implementations have no mask for layers that slide. */
static void need_window(const gb_config *text, const gb_dense_config *config) {
    for (int64_t i = 0; i < config->layer_count; i++)
        if (config->layers[i].is_sliding && gb_config_is_null(text, "sliding_window"))
            gb_config_fail(text, "sliding_window", GUMBEL_ERROR_UNSUPPORTED,
                           "null, expected the window of layer %" PRId64 ", which slides", i);
}

/* Of Gemma 3, gpt-oss, OLMo 3 and Muse Glimmer all but each last of a few slide, unless the layers are
 * listed, which mlx-lm does not read of Gemma. */
static void read_window_pattern(const gb_config *text, const gb_dense_family *family,
                                gb_dense_config *config) {
    const int64_t pattern =
        gb_config_optional_integer(text, "sliding_window_pattern", family->window_pattern, 1, MAX_LAYERS);
    config->sliding_window =
        gb_config_optional_integer(text, "sliding_window", family->sliding_window, 1, INT32_MAX);
    for (int64_t i = 0; i < config->layer_count; i++)
        config->layers[i].is_sliding = (i + 1) % pattern != 0;
    if (gb_config_has(text, "layer_types"))
        read_layer_types(text, config);
    need_window(text, config);
}

static void read_windows(const gb_config *text, const gb_dense_family *family, gb_dense_config *config) {
    switch (family->windows) {
    case GB_NO_WINDOWS:
        refuse_windows(text, family, config);
        break;
    case GB_WINDOWS_IN_ALL:
        read_mistral_windows(text, family, config);
        break;
    case GB_WINDOWS_FROM_A_LAYER:
        read_qwen_windows(text, family, config);
        break;
    case GB_WINDOWS_BY_PATTERN:
        read_window_pattern(text, family, config);
        break;
    case GB_LISTED_MIXERS:
        gb_granite_layers_read(text, config);
        break;
    }
}

/* ---- Rotary embedding ---------------------------------------------------------------------------------- */

/* A list of 1 and 0, as long as the model, which goes before the interval. */
static void read_rope_list(const gb_config *text, const char *key, gb_dense_config *config) {
    int64_t listed[MAX_LAYERS];
    const size_t count = gb_config_integers(text, key, 0, 1, listed, MAX_LAYERS);
    if (count != (size_t)config->layer_count) {
        gb_config_fail(text, key, GUMBEL_ERROR_FORMAT,
                       "%zu layers, expected the %" PRId64 " of num_hidden_layers", count,
                       config->layer_count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        config->layers[i].has_rope = listed[i] == 1;
}

/* Without the key transformers turns no layer, mlx-lm all. */
static void read_position_embedding(const gb_config *text, gb_dense_config *config) {
    static const char KEY[] = "position_embedding_type";
    const char *type = gb_config_string(text, KEY, "");
    const bool turns = strcmp(type, "rope") == 0;
    if (!turns && strcmp(type, "nope") != 0)
        gb_config_fail(text, KEY, GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\", expected \"rope\" or \"nope\": implementations differ without it", type);
    for (int64_t i = 0; i < config->layer_count; i++)
        config->layers[i].has_rope = turns;
}

/* Where no list says which layers rotate transformers takes all but each fourth from the last, mlx-lm those
 * that slide, as llama.cpp does. */
static void read_rope_of_windows(const gb_config *text, const gb_dense_family *family,
                                 gb_dense_config *config) {
    static const char LIST[] = "layer_rope_theta";
    const bool is_listed = gb_config_has(text, LIST);
    const int64_t listed = (int64_t)gb_config_list_size(text, LIST), layers = config->layer_count;
    if (is_listed && listed != layers)
        gb_config_fail(text, LIST, GUMBEL_ERROR_FORMAT,
                       "%" PRId64 " layers, expected the %" PRId64 " of num_hidden_layers", listed, layers);
    for (int64_t i = 0; i < layers; i++) {
        bool turns = (layers - 1 - i) % family->window_pattern != 0;
        if (is_listed && listed == layers)
            turns = gb_config_list_number(text, LIST, (size_t)i, 0, 1e12) != 0;
        else if (gb_config_bool(text, "rope_is_of_windows", false))
            turns = config->layers[i].is_sliding;
        else if (turns != config->layers[i].is_sliding)
            gb_config_fail(text, LIST, GUMBEL_ERROR_UNSUPPORTED,
                           "is missing, and implementations differ about layer %" PRId64, i);
        config->layers[i].has_rope = turns;
    }
}

static void choose_rope_layers(const gb_config *text, const gb_dense_family *family,
                               gb_dense_config *config) {
    static const char LIST[] = "no_rope_layers";
    const int64_t fallback = family->rope_interval;
    const int64_t interval =
        fallback > 0 ? gb_config_integer(text, "no_rope_layer_interval", fallback, 1, MAX_LAYERS) : 0;
    for (int64_t i = 0; i < config->layer_count; i++)
        config->layers[i].has_rope = interval == 0 || (i + 1) % interval != 0;
    if (fallback > 0 && gb_config_has(text, LIST))
        read_rope_list(text, LIST, config);
    if (family->windows == GB_LISTED_MIXERS)
        read_position_embedding(text, config);
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

void gb_dense_layers_read(const gb_config *text, const gb_dense_family *family, gb_dense_config *config) {
    for (int64_t i = 0; i < config->layer_count; i++)
        config->layers[i].has_experts = family->has_experts && gb_layer_has_experts(text, i);
    choose_rope_layers(text, family, config);
    read_windows(text, family, config);
    if (family->has_rope_in_windows)
        read_rope_of_windows(text, family, config);
}
