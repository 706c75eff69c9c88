/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel_export: checkpoint to program file. Everything that can be wrong with the checkpoint is found while
 * the graph is built, before the file is created.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "export/backend_order.h"
#include "export/checkpoint/generation_config.h"
#include "export/choose_wide.h"
#include "export/models/model.h"
#include "export/parallel.h"
#include "export/source.h"
#include "export/text/reply_families.h"
#include "export/text/text_sections.h"
#include "export/unused_tensors.h"
#include "export/write_weights.h"
#include "program/builder.h"
#include "program/file/file_size.h"
#include "program/file/writer.h"
#include "program/settings.h"
#include "program/verify/verifier.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A graph and what it is made of: the model's own, or its draft head's. */
typedef struct export_graph {
    gb_weights *weights;
    gb_builder *builder;
    gb_program *program; /* a finished head is its program's; then NULL */
} export_graph;

/* One export's parts, in the order in which they come to be. Zero or NULL until then. */
typedef struct export_job {
    gumbel_export_options options;
    gb_packing_order order;
    gb_source source, assistant; /* assistant: where one is wanted */
    gb_checkpoint *both;         /* the tensors of source and assistant; or NULL */
    const gb_model *model;
    gb_recipe *recipe;
    export_graph own, head; /* head: where one is wanted */
    gb_wide_choice wide;    /* where a size is wanted: what differs from the recipe */
    gb_text_sections text;
    gb_byte_buffer reply_format; /* JSON and a zero, or empty */
    gb_generation_config generation;
    gb_output_totals written;
    gb_input_list inputs;
} export_job;

GB_PRINTF(3, 4)
static void report(const export_job *job, gumbel_log_level level, const char *format, ...) {
    if (!job->options.log)
        return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    gumbel_error escaped; /* as a message's, names that the line has can do no harm */
    gb_fail(&escaped, GUMBEL_OK, "%s", line);
    job->options.log(job->options.log_user, level, escaped.message);
}

/* What weights are made from; NULL: they are random. */
static const gb_checkpoint *checkpoint_of(const export_job *job) {
    return job->both ? job->both : job->source.checkpoint;
}

static bool is_minimal(const gumbel_export_options *options) {
    return options->sampler && strcmp(options->sampler, "minimal") == 0;
}

static gumbel_status check_sampler(const gumbel_export_options *options, gumbel_error *error) {
    if (options->sampler && !is_minimal(options) && strcmp(options->sampler, "full") != 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "sampler: \"%s\", expected \"full\" or \"minimal\"",
                       options->sampler);
    if (options->sampler && options->logits)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "sampler: \"%s\" and logits: a program that ends in its logits has no sampler",
                       options->sampler);
    if (options->max_top_logprobs < -1 || options->max_top_logprobs > GUMBEL_TOP_LOGPROBS_LIMIT)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "max_top_logprobs: %" PRId32 ", expected -1 to %d",
                       options->max_top_logprobs, GUMBEL_TOP_LOGPROBS_LIMIT);
    if (options->max_top_logprobs > 0 && (options->logits || is_minimal(options)))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "max_top_logprobs: log-probabilities are part of the full sampler");
    return GUMBEL_OK;
}

static bool wants_head(const gumbel_export_options *options) {
    return options->draft_head || options->assistant;
}

static gumbel_status check_head_options(const gumbel_export_options *options, gumbel_error *error) {
    const char *head = options->assistant ? "assistant" : "draft_head";
    if (options->draft_head && options->assistant)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "draft_head and assistant: a program has one draft head, and the assistant is it");
    if (wants_head(options) && options->size_target > 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "%s and size_target: a program of a given size cannot have a draft head in this "
                       "version",
                       head);
    if (wants_head(options) && options->logits)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "%s and logits: a head draws what it guesses in its sampler", head);
    return GUMBEL_OK;
}

static gumbel_status check_options(const gumbel_export_options *given, gumbel_export_options *options,
                                   gumbel_error *error) {
    GB_TRY(gb_read_versioned(given, "export options", options, sizeof *options, error));
    if (options->stats)
        GB_TRY(gb_check_versioned(options->stats, "export stats", error));
    GB_TRY(check_head_options(options, error));
    return check_sampler(options, error);
}

static gb_sampler_options sampler_options(const gumbel_export_options *options) {
    if (options->logits)
        return (gb_sampler_options){.kind = GB_SAMPLER_NONE};
    if (is_minimal(options))
        return (gb_sampler_options){.kind = GB_SAMPLER_MINIMAL};
    const int32_t top = options->max_top_logprobs;
    return (gb_sampler_options){.kind = GB_SAMPLER_FULL,
                                .max_top_logprobs = top == 0    ? GUMBEL_TOP_LOGPROBS_DEFAULT
                                                    : top == -1 ? 0
                                                                : (uint32_t)top};
}

/* The layers that the program will have, as far as recipes need to know. */
static uint64_t count_layers(const export_job *job, const gb_config *root) {
    gb_config text = gb_config_child(root, "text_config");
    int64_t own = gb_config_integer(root, "num_hidden_layers", 0, 0, INT32_MAX);
    int64_t layers = gb_config_integer(&text, "num_hidden_layers", own, 0, INT32_MAX);
    uint64_t kept = job->options.layers;
    return kept > 0 && kept < (uint64_t)layers ? kept : (uint64_t)layers;
}

/* Its weights stand beside the model's. Those of a GGUF describe themselves; of all others there is one
 * description of how they are quantized, the model's. */
static gumbel_status open_assistant(export_job *job, gumbel_error *error) {
    const char *path = job->options.assistant;
    gb_source *assistant = &job->assistant;
    if (!path)
        return GUMBEL_OK;
    gumbel_status status = gb_source_open(path, job->options.random_weights, assistant, error);
    if (status != GUMBEL_OK)
        return gb_prefix(error, status, "assistant");
    const bool is_quantized =
        assistant->packing.method != GB_QUANTIZATION_NONE || gb_source_is_quantized(assistant);
    if (!assistant->is_gguf && is_quantized)
        return gb_fail(
            error, GUMBEL_ERROR_UNSUPPORTED,
            "assistant: %s is quantized, which is supported of GGUF alone in this version; take the "
            "one that is released in bfloat16",
            path);
    if (!assistant->checkpoint)
        return GUMBEL_OK;
    return gb_checkpoint_join(job->source.checkpoint, "assistant.", assistant->checkpoint, &job->both, error);
}

static gumbel_status open_recipe(export_job *job, gumbel_error *error) {
    GB_TRY(gb_recipe_open(job->options.quantize, &job->recipe, error));
    return gb_recipe_override(job->recipe, job->options.activations, job->options.cache, error);
}

/* A checkpoint of quantized matrices is exported to be run as fast as its weights allow: where neither a
 * recipe nor an option says otherwise, with 8-bit inputs, as the recipes that quantize have them, and caches
 * of 16 bits. Products with bfloat16 weights take inputs as they were trained with. */
static gumbel_status adopt_settings(export_job *job, gumbel_error *error) {
    const gumbel_export_options *options = &job->options;
    const char *activations = options->activations ? NULL : "int8",
               *cache = options->cache ? NULL : "bfloat16";
    if (options->quantize)
        return GUMBEL_OK;
    if (!gb_source_is_quantized(&job->source))
        return gb_recipe_override(job->recipe, options->activations ? NULL : "bfloat16", NULL, error);
    if (activations || cache)
        report(job, GUMBEL_LOG_INFO, "the checkpoint is quantized: %s%s%s by default",
               activations ? "activations int8" : "", activations && cache ? ", " : "",
               cache ? "cache bfloat16" : "");
    return gb_recipe_override(job->recipe, activations, cache, error);
}

/* Such layers are correct, but backends have their fused kernels for one matrix of both. */
static void report_unstacked(const export_job *job) {
    size_t count = gb_weights_unstacked_count(job->own.weights);
    if (count > 0)
        report(job, GUMBEL_LOG_INFO,
               "the experts' gate and up of %zu layers have different formats and stay two matrices; those "
               "layers run slower",
               count);
}

/* A calibration that knows none of the matrices is one of another model. */
static gumbel_status check_calibration(const export_job *job, gumbel_error *error) {
    if (!job->options.calibration)
        return GUMBEL_OK;
    GB_TRY(gb_calibration_check(job->options.calibration, error));
    const gb_calibrated_count count = gb_weights_count_calibrated(job->own.weights);
    if (count.known == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "the calibration has seen none of the matrices that recipe %s quantizes",
                       gb_recipe_name(job->recipe));
    if (count.others > 0)
        report(job, GUMBEL_LOG_INFO, "%zu of %zu matrices are quantized without calibration", count.others,
               count.known + count.others);
    return GUMBEL_OK;
}

static gumbel_status begin_graph(const export_job *job, const gb_config *root, export_graph *graph,
                                 gumbel_error *error) {
    const gumbel_export_options *options = &job->options;
    gb_dtype random_dtype = GB_DTYPE_NONE;
    if (options->random_weights)
        GB_TRY(gb_source_dtype(&job->source, &random_dtype, error));
    graph->weights = gb_weights_create(checkpoint_of(job), random_dtype, options->random_seed);
    graph->builder = gb_builder_create();
    if (!graph->weights || !graph->builder)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the graph");
    gb_weights_use_quantization(graph->weights, &job->source.packing);
    gb_weights_use_recipe(graph->weights, job->recipe, count_layers(job, root));
    gb_weights_use_calibration(graph->weights, options->calibration);
    return GUMBEL_OK;
}

static gumbel_status find_model(export_job *job, const gb_config *root, gumbel_error *error) {
    GB_TRY(gb_model_find(root, &job->model, error));
    if (wants_head(&job->options) && !job->model->build_head)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: %s has no draft head that gumbel knows",
                       job->options.assistant ? "assistant" : "draft_head", job->model->name);
    return GUMBEL_OK;
}

static gumbel_status build_graphs(export_job *job, gumbel_error *error) {
    const gumbel_export_options *options = &job->options;
    const gb_config root = gb_config_root(job->source.config);
    const gb_config assistant = options->assistant ? gb_config_root(job->assistant.config) : root;
    const gb_model_options model_options = {.max_context = options->max_context,
                                            .prefill_chunk = gb_backend_prefill_chunk(options->backend),
                                            .layers = options->layers,
                                            .keep_hidden = wants_head(options),
                                            .assistant = options->assistant ? &assistant : NULL,
                                            .sampler = sampler_options(options)};
    export_graph *own = &job->own, *head = &job->head;
    GB_TRY(find_model(job, &root, error));
    GB_TRY(begin_graph(job, &root, own, error));
    gb_weights_widen(own->weights, job->wide.is_wide);
    GB_TRY(job->model->build(&root, &model_options, own->builder, own->weights, error));
    if (!wants_head(options))
        return GUMBEL_OK;
    GB_TRY(begin_graph(job, &root, head, error));
    gb_weights_attach_head(own->weights, head->weights);
    return job->model->build_head(&root, &model_options, head->builder, head->weights, error);
}

static void report_left_scales(const export_job *job) {
    const size_t count = gb_count_left_scales(checkpoint_of(job), &job->source.packing, job->own.weights);
    if (count > 0)
        report(job, GUMBEL_LOG_INFO,
               "inputs and caches are not rounded with the checkpoint's scales for them (%zu)", count);
}

static gumbel_status check_graph(const export_job *job, gumbel_error *error) {
    GB_TRY(gb_refuse_unused_companions(checkpoint_of(job), &job->source.packing, job->own.weights, error));
    report_left_scales(job);
    report_unstacked(job);
    GB_TRY(check_calibration(job, error));
    return gb_recipe_check_used(job->recipe, error);
}

/* The choice changes numbers, and later a smaller context does not change the choice. */
static void report_rotary_factors(const export_job *job) {
    const gb_metadata *metadata = &job->own.program->metadata;
    if (metadata->rotary_factors && metadata->rotary_factors[0])
        report(job, GUMBEL_LOG_INFO,
               "rotary embedding has the %s factors of LongRoPE, as a context of %" PRIu64
               " asks for; a smaller one "
               "later keeps them",
               metadata->rotary_factors, metadata->max_context);
}

static bool has_draft_head(const gb_checkpoint *checkpoint) {
    for (size_t i = 0; checkpoint && i < gb_checkpoint_count(checkpoint); i++)
        if (strncmp(gb_checkpoint_at(checkpoint, i)->name, "mtp.", 4) == 0)
            return true;
    return false;
}

static void report_unused(const export_job *job) {
    const gb_checkpoint *checkpoint = checkpoint_of(job);
    const bool leaves_head = !job->options.draft_head && job->model->build_head && has_draft_head(checkpoint);
    char list[512];
    size_t count = gb_describe_unused(checkpoint, &job->source.packing, job->own.weights, list, sizeof list);
    if (count > 0)
        report(job, GUMBEL_LOG_INFO, "%zu tensors of the checkpoint are not used: %s%s", count, list,
               leaves_head ? "; --draft-head takes the draft head (mtp) along" : "");
}

/* Tokenizer and chat templates. A bare config.json is not expected to have them beside it. */
static gumbel_status read_text(export_job *job, gumbel_error *error) {
    const gumbel_export_options *options = &job->options;
    if (options->random_weights) {
        char *path = gb_join_path(job->source.directory, "tokenizer.json");
        bool is_there = path && access(path, F_OK) == 0;
        gb_free(path);
        if (!is_there) {
            job->text.bos_token = job->text.stop_token = -1;
            return GUMBEL_OK;
        }
    }
    if (job->source.is_gguf)
        GB_TRY(gb_read_gguf_text_sections(&job->source.gguf.files.files[0], job->source.directory,
                                          options->log, options->log_user, &job->text, error));
    else
        GB_TRY(
            gb_read_text_sections(job->source.directory, options->log, options->log_user, &job->text, error));
    uint64_t vocab_size = gb_builder_metadata(job->own.builder)->vocab_size;
    if (job->text.token_count > 0 && (uint64_t)job->text.token_count > vocab_size)
        report(job, GUMBEL_LOG_WARNING,
               "the tokenizer has %" PRId32 " ids but the model only %" PRIu64 "; some text cannot be run",
               job->text.token_count, vocab_size);
    if (job->text.token_count == 0)
        return GUMBEL_OK;
    if (sampler_options(options).kind == GB_SAMPLER_FULL) /* others have no masks */
        GB_TRY(gb_write_trie_section(vocab_size, &job->text, error));
    const gb_blob vocabulary = {job->text.tokenizer.data, job->text.tokenizer.size},
                  templates = {job->text.chat.data, job->text.chat.size};
    return gb_choose_reply_format(job->source.is_gguf ? NULL : job->source.directory, &templates, &vocabulary,
                                  options->log, options->log_user, &job->reply_format, error);
}

static void add_stop(export_job *job, int32_t token) {
    if (token >= 0 && (uint64_t)token < gb_builder_metadata(job->own.builder)->vocab_size)
        gb_generation_config_add_stop(&job->generation, token);
}

/* Where the files of the checkpoint are silent, the model's own defaults hold. */
static gumbel_status read_generation_config(export_job *job, gumbel_error *error) {
    gb_config root = gb_config_root(job->source.config);
    gb_generation_config *generation = &job->generation;
    int64_t vocab_size = (int64_t)gb_builder_metadata(job->own.builder)->vocab_size;
    if (job->source.is_gguf)
        GB_TRY(gb_generation_config_from(&root, vocab_size, generation, error));
    else
        GB_TRY(gb_generation_config_read(job->source.directory, &root, vocab_size, generation, error));
    if (generation->stop_token_count == 0)
        add_stop(job, job->model->eos_token);
    add_stop(job, job->text.stop_token);
    if (generation->bos_token < 0)
        generation->bos_token = job->text.bos_token >= 0 ? job->text.bos_token : job->model->bos_token;
    if (generation->bos_token >= vocab_size)
        generation->bos_token = -1;
    return GUMBEL_OK;
}

static void set_metadata(const export_job *job, gb_metadata *metadata) {
    const gb_generation_config *generation = &job->generation;
    metadata->architecture = job->model->name;
    metadata->name = job->options.name ? job->options.name : job->source.name;
    metadata->source = job->source.is_gguf      ? "GGUF"
                       : job->source.checkpoint ? "safetensors"
                                                : "random weights";
    metadata->exporter = GUMBEL_VERSION;
    metadata->recipe = gb_recipe_name(job->recipe);
    if (job->reply_format.size > 0)
        metadata->reply_format = (const char *)job->reply_format.data;
    metadata->stop_tokens = (gb_token_list){generation->stop_tokens, generation->stop_token_count};
    metadata->has_bos_token = generation->bos_token >= 0;
    if (metadata->has_bos_token)
        metadata->bos_token = (uint64_t)generation->bos_token;
}

/* What the checkpoint's authors recommend of what the program's sampler has. */
static void set_recommended(const gb_generation_config *generation, gb_sampler_kind kind,
                            gb_metadata *metadata) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++) {
        double value;
        if ((kind == GB_SAMPLER_FULL || gb_settings[i].is_minimal) &&
            gb_recommended(&gb_settings[i], &generation->recommended, &value))
            gb_recommend(&gb_settings[i], value, metadata);
    }
}

/* Ends a graph that was built. */
static gumbel_status finish_graph(const export_job *job, export_graph *graph, gumbel_error *error) {
    gb_metadata *metadata = gb_builder_metadata(graph->builder);
    set_metadata(job, metadata);
    set_recommended(&job->generation, sampler_options(&job->options).kind, metadata);
    return gb_builder_finish(graph->builder, &graph->program, error);
}

/* Gives the program its draft head. That they fit is verified here, since a reader would refuse the file. */
static gumbel_status finish_head(export_job *job, gumbel_error *error) {
    if (!wants_head(&job->options))
        return GUMBEL_OK;
    GB_TRY(finish_graph(job, &job->head, error));
    job->own.program->head = job->head.program;
    job->head.program = NULL;
    return gb_program_verify(job->own.program, error);
}

static gumbel_status finish_program(export_job *job, gumbel_error *error) {
    GB_TRY(finish_graph(job, &job->own, error));
    GB_TRY(finish_head(job, error));
    gb_program *program = job->own.program;
    GB_TRY(gb_program_set_caches(program, gb_recipe_cache(job->recipe), error));
    GB_TRY(gb_program_choose_packings(program, job->order, error));
    program->tokenizer = (gb_blob){job->text.tokenizer.data, job->text.tokenizer.size};
    program->chat = (gb_blob){job->text.chat.data, job->text.chat.size};
    program->trie = (gb_blob){job->text.trie.data, job->text.trie.size};
    return GUMBEL_OK;
}

static void discard_graph(export_graph *graph) {
    gb_program_destroy(graph->program);
    gb_builder_destroy(graph->builder);
    gb_weights_destroy(graph->weights);
    *graph = (export_graph){0};
}

static void discard_graphs(export_job *job) {
    discard_graph(&job->own);
    discard_graph(&job->head);
}

/* The graph depends on formats, so it is built again with those that make the size. */
static gumbel_status meet_size(export_job *job, gumbel_error *error) {
    const gb_wide_request request = {.program = job->own.program,
                                     .order = job->order,
                                     .weights = job->own.weights,
                                     .recipe = gb_recipe_name(job->recipe),
                                     .size = job->options.size_target,
                                     .progress = job->options.progress,
                                     .progress_user = job->options.progress_user};
    gb_file_size size;
    if (request.size == 0)
        return GUMBEL_OK;
    GB_TRY(gb_choose_wide(&request, &job->wide, error));
    discard_graphs(job);
    GB_TRY(build_graphs(job, error));
    GB_TRY(finish_program(job, error));
    if (!gb_program_file_size(job->own.program, &size))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the graph");
    report(job, GUMBEL_LOG_INFO,
           "%zu of %zu matrices have 8 bits in place of the recipe's fewer; the program has %" PRIu64
           " bytes",
           job->wide.wide, job->wide.candidates, size.bytes);
    return GUMBEL_OK;
}

static gumbel_status write_program(export_job *job, const char *path, gumbel_error *error) {
    const gumbel_export_options *options = &job->options;
    gb_writer *writer = NULL;
    GB_TRY(gb_writer_create(path, &job->inputs, job->own.program, &writer, error));
    gb_writer_use_threads(writer, gb_parallel_for, gb_export_threads());
    gb_writer_measure(writer, &job->written);
    gumbel_status status = gb_write_weights(writer, job->own.program, job->own.weights, options->progress,
                                            options->progress_user, error);
    if (status != GUMBEL_OK) {
        gb_writer_abort(writer);
        return status == GUMBEL_ERROR_FORMAT && job->source.checkpoint
                   ? gb_prefix(error, status, "%s", gb_checkpoint_path(job->source.checkpoint))
                   : status;
    }
    return gb_writer_finish(writer, error);
}

static gumbel_status export_to(export_job *job, const char *checkpoint, const char *path,
                               gumbel_error *error) {
    GB_TRY(open_recipe(job, error));
    GB_TRY(gb_source_open(checkpoint, job->options.random_weights, &job->source, error));
    GB_TRY(open_assistant(job, error));
    GB_TRY(adopt_settings(job, error));
    GB_TRY(build_graphs(job, error));
    GB_TRY(check_graph(job, error));
    GB_TRY(read_text(job, error));
    GB_TRY(read_generation_config(job, error));
    GB_TRY(finish_program(job, error));
    GB_TRY(meet_size(job, error));
    if (!path)
        return GUMBEL_OK;
    report_unused(job);
    report_rotary_factors(job);
    return write_program(job, path, error);
}

static void fill_stats(const export_job *job, double seconds) {
    const gumbel_export_stats made = {
        .size = sizeof made,
        .bytes_read = gb_weights_source_bytes(job->own.weights),
        .bytes_written = job->written.bytes,
        .seconds = seconds,
        .write_seconds = job->written.seconds,
        .threads = gb_export_threads(),
    };
    gb_write_versioned(&made, sizeof made, job->options.stats);
}

gumbel_status gumbel_export(const char *checkpoint, const char *path, const gumbel_export_options *options,
                            gumbel_error *error) {
    export_job job = {0};
    double begin = gb_seconds();
    GB_TRY(check_options(options, &job.options, error));
    GB_TRY(gb_backend_order(job.options.backend, &job.order, error));
    gb_record_inputs(&job.inputs);
    gumbel_status status = export_to(&job, checkpoint, path, error);
    gb_end_inputs(&job.inputs);
    if (status == GUMBEL_OK && job.options.stats)
        fill_stats(&job, gb_seconds() - begin);
    discard_graphs(&job);
    gb_free(job.wide.is_wide);
    gb_recipe_close(job.recipe);
    gb_text_sections_free(&job.text);
    gb_buffer_free(&job.reply_format);
    gb_checkpoint_close(job.both);
    gb_source_close(&job.assistant);
    gb_source_close(&job.source);
    return status;
}
