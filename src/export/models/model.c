/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/model.h"

#include "export/models/rope_unread.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const gb_model *const MODELS[] = {
    &gb_gemma3,     &gb_gemma4,  &gb_gemma4_unified, &gb_llama,   &gb_mistral,     &gb_ministral3,
    &gb_qwen2,      &gb_qwen3,   &gb_qwen3_moe,      &gb_qwen3_5, &gb_qwen3_5_moe, &gb_qwen3_next,
    &gb_smollm3,    &gb_granite, &gb_granite_hybrid, &gb_phi3,    &gb_gpt_oss,     &gb_muse_glimmer,
    &gb_nemotron_h, &gb_lfm2,    &gb_lfm2_moe,       &gb_olmo2,   &gb_olmo3};
enum { MODEL_COUNT = sizeof MODELS / sizeof MODELS[0], DEFAULT_CONTEXT = 8192 };

static bool is_named(const gb_model *model, const char *type) {
    return strcmp(type, model->text) == 0 || (model->wrapper && strcmp(type, model->wrapper) == 0);
}

/* Of models in the same wrapper the one whose text model it is, or the first. */
static const gb_model *find_named(const char *type, const char *text) {
    const gb_model *found = NULL;
    for (size_t i = 0; i < MODEL_COUNT; i++)
        if (is_named(MODELS[i], type) && (!found || strcmp(MODELS[i]->text, text) == 0))
            found = MODELS[i];
    return found;
}

static void list(char *known, size_t size, const char *name) {
    const size_t used = strlen(known);
    if (name)
        snprintf(known + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

static void refuse(const gb_config *config, const char *type) {
    char known[512] = "";
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        const char *before = i > 0 ? MODELS[i - 1]->wrapper : NULL;
        const bool is_listed = before && MODELS[i]->wrapper && strcmp(MODELS[i]->wrapper, before) == 0;
        list(known, sizeof known, is_listed ? NULL : MODELS[i]->wrapper);
        list(known, sizeof known, MODELS[i]->text);
    }
    gb_config_fail(config, "model_type", GUMBEL_ERROR_UNSUPPORTED,
                   "\"%s\" is not supported in this version; known are %s", type, known);
}

gumbel_status gb_model_find(const gb_config *config, const gb_model **model, gumbel_error *error) {
    const char *type = gb_config_string(config, "model_type", "");
    const gb_config text = gb_config_child(config, "text_config");
    *model = find_named(type, gb_config_string(&text, "model_type", ""));
    if (*model) {
        gb_refuse_rope_of_wrapper(config);
        return gb_config_status(config->file, error);
    }
    if (strcmp(type, "gemma4_assistant") == 0 || strcmp(type, "gemma4_unified_assistant") == 0)
        gb_config_fail(config, "model_type", GUMBEL_ERROR_ARGUMENT,
                       "\"%s\" guesses for another model: export that one with this as its assistant", type);
    else
        refuse(config, type);
    return gb_config_status(config->file, error);
}

/* The context to export for: what was asked, checked against the model's own, or the default. */
static gumbel_status choose_context(uint32_t asked, int64_t model_context, int64_t *max_context,
                                    gumbel_error *error) {
    if ((int64_t)asked > model_context)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "max_context: %" PRIu32 ", expected at most the model's %" PRId64 " positions", asked,
                       model_context);
    *max_context = asked                             ? (int64_t)asked
                   : model_context < DEFAULT_CONTEXT ? model_context
                                                     : (int64_t)DEFAULT_CONTEXT;
    return GUMBEL_OK;
}

gumbel_status gb_keep_layers(uint32_t asked, int64_t *layer_count, gumbel_error *error) {
    if ((int64_t)asked > *layer_count)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "layers: %" PRIu32 ", expected at most the model's %" PRId64, asked, *layer_count);
    if (asked > 0)
        *layer_count = asked;
    return GUMBEL_OK;
}

gb_tensor_place gb_find_tensors(const gb_weights *weights, const char *table, bool is_wrapped) {
    static const gb_tensor_place PLACES[] = {{"model.", ""},
                                             {"model.language_model.", ""},
                                             {"language_model.model.", "language_model."},
                                             {"backbone.", ""},
                                             {"", ""}};
    enum { COUNT = sizeof PLACES / sizeof PLACES[0] };
    for (size_t i = 0; i < COUNT; i++) {
        const gb_tensor_place *candidate = &PLACES[(i + is_wrapped) % COUNT];
        char name[64];
        snprintf(name, sizeof name, "%s%s", candidate->text, table ? table : "embed_tokens.weight");
        if (gb_weights_has(weights, name))
            return *candidate;
    }
    return PLACES[is_wrapped];
}

gumbel_status gb_begin_text_graph(const gb_text_model *model, const gb_model_options *options,
                                  gb_builder *builder, gb_weights *weights, gb_text_graph *graph,
                                  gumbel_error *error) {
    int64_t max_context = 0;
    GB_TRY(choose_context(options->max_context, model->max_positions, &max_context, error));
    const gb_tensor_place place = gb_find_tensors(weights, model->table, model->is_wrapped);
    const gb_scope root = {.builder = builder, .weights = weights};
    graph->scope = gb_scope_in(&root, "%s", place.text);
    graph->head = gb_scope_in(&root, "%s", place.head);
    const int64_t most = options->prefill_chunk > 0 ? options->prefill_chunk : 512;
    graph->context =
        (gb_context){.max_context = max_context, .prefill_chunk = gb_prefill_chunk(most, max_context)};
    gb_metadata *metadata = gb_builder_metadata(builder);
    metadata->vocab_size = (uint64_t)model->vocab_size;
    metadata->max_context = (uint64_t)max_context;
    metadata->prefill_chunk = (uint64_t)graph->context.prefill_chunk;
    return GUMBEL_OK;
}

gumbel_status gb_end_text_graph(const gb_text_graph *graph, gb_ref logits, const gb_model_options *options,
                                gumbel_error *error) {
    gb_finish_with_logits(&graph->scope, logits, &options->sampler, graph->context.max_context);
    return gb_builder_status(graph->scope.builder, error);
}
