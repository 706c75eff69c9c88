/* SPDX-License-Identifier: Apache-2.0
 *
 * The public functions about programs: thin wrappers around src/program and src/text.
 */
#include "backends/backends.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "plan/plan.h"
#include "program/caches.h"
#include "program/costs.h"
#include "program/file/format.h"
#include "program/file/reader.h"
#include "program/print/printer.h"
#include "run/handles.h"
#include "run/prefill_chunk.h"
#include "text/reply/use_format.h"
#include "text/tokenizer/tokenizer.h"
#include "text/trie/tokenizer_trie.h"

#include <string.h>

const char *gumbel_version(void) {
    return GUMBEL_VERSION;
}

uint64_t gumbel_program_format(void) {
    return (uint64_t)GB_FORMAT_VERSION << 32 | (uint64_t)GB_TOKENIZER_VERSION << 16 | GB_CHAT_VERSION;
}

static gumbel_program *head_of(const gb_program *program) {
    gumbel_program *head = gb_allocate(1, sizeof *head);
    if (head)
        head->program = program;
    return head;
}

gumbel_status gumbel_program_open(const char *path, gumbel_program **program, gumbel_error *error) {
    *program = NULL;
    if (!path)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "program open: path is NULL");
    gb_program *read;
    GB_TRY(gb_program_read(path, &read, error));
    gumbel_program *opened = gb_allocate(1, sizeof *opened);
    if (!opened) {
        gb_program_destroy(read);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for a program", path);
    }
    opened->program = read;
    if (read->head && !(opened->head = head_of(read->head))) {
        gumbel_program_close(opened);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for a program", path);
    }
    *program = opened;
    return GUMBEL_OK;
}

const gumbel_program *gumbel_program_draft_head(const gumbel_program *program) {
    return program->head;
}

gumbel_status gumbel_program_set_cache(gumbel_program *program, const char *cache, gumbel_error *error) {
    const gb_cache_choice *choice;
    if (!cache)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "cache is NULL");
    GB_TRY(gb_cache_find(cache, &choice, error));
    return gb_program_set_caches((gb_program *)(uintptr_t)program->program, choice, error);
}

void gumbel_program_close(gumbel_program *program) {
    if (!program)
        return;
    gb_program_destroy((gb_program *)(uintptr_t)program->program);
    gb_free(program->head);
    gb_free(program);
}

gumbel_status gumbel_program_get_info(const gumbel_program *program, gumbel_program_info *info,
                                      gumbel_error *error) {
    GB_TRY(gb_check_versioned(info, "program info", error));
    const gb_program *graph = program->program;
    const gb_metadata *metadata = &graph->metadata;
    gumbel_program_info full = {
        .size = sizeof full,
        .architecture = metadata->architecture,
        .name = metadata->name,
        .vocab_size = (uint32_t)metadata->vocab_size,
        .max_context = (uint32_t)metadata->max_context,
        .prefill_chunk = (uint32_t)metadata->prefill_chunk,
        .use_sampling = metadata->use_sampling,
        .stop_tokens = metadata->stop_tokens.ids,
        .stop_token_count = metadata->stop_tokens.count,
        .bos_token = metadata->has_bos_token ? (int32_t)metadata->bos_token : -1,
        .weight_bytes = gb_program_weight_bytes(graph),
        .session_state_bytes = gb_program_state_bytes(graph),
        .has_recurrent_states = gb_has_recurrent_state(graph),
        .has_tokenizer = graph->tokenizer.data != NULL,
        .has_chat_template = graph->chat.data != NULL,
        .max_bias = (uint32_t)metadata->max_bias,
        .max_top_logprobs = (uint32_t)metadata->max_top_logprobs,
        .has_mask = gb_program_input(graph, GB_ROLE_MASK) != GB_NO_VALUE,
        .has_logprob = gb_program_output(graph, GB_ROLE_LOGPROB) != GB_NO_VALUE,
    };
    memcpy(full.id, graph->id, sizeof full.id);
    gb_write_versioned(&full, sizeof full, info);
    return GUMBEL_OK;
}

gumbel_status gumbel_program_get_costs(const gumbel_program *program, const gumbel_step_shape *given,
                                       gumbel_step_costs *costs, gumbel_error *error) {
    gumbel_step_shape shape;
    GB_TRY(gb_read_versioned(given, "step shape", &shape, sizeof shape, error));
    GB_TRY(gb_check_versioned(costs, "step costs", error));
    if (shape.sequences == 0 || shape.tokens == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "costs of %u sequences of %u tokens: expected at least 1", shape.sequences,
                       shape.tokens);
    gumbel_step_costs full = {.size = sizeof full};
    gb_program_costs(program->program, &shape, &full);
    gb_write_versioned(&full, sizeof full, costs);
    return GUMBEL_OK;
}

/* Intermediate values of one session's largest step, with the engine's default options. */
static gumbel_status scratch_bytes(const gb_program *program, uint64_t *bytes, gumbel_error *error) {
    gb_plan_options options = {
        .step_tokens = (uint32_t)program->metadata.prefill_chunk + 1, .rows = 1, .fuse = true};
    return gb_plan_scratch_bytes(program, &options, bytes, error);
}

gumbel_status gumbel_program_inspect(const gumbel_program *program, gumbel_inspect_part part,
                                     gumbel_write_callback write, void *user, gumbel_error *error) {
    gb_text_sink sink = {write, user};
    uint64_t scratch = 0;
    switch (part) {
    case GUMBEL_INSPECT_SUMMARY:
        GB_TRY(scratch_bytes(program->program, &scratch, error));
        gb_print_summary(program->program, &(gb_summary_sizes){scratch, gb_machine_bytes()}, &sink);
        return GUMBEL_OK;
    case GUMBEL_INSPECT_GRAPH:
        return gb_print_graph(program->program, &sink, error);
    case GUMBEL_INSPECT_TENSORS:
        gb_print_tensors(program->program, &sink);
        return GUMBEL_OK;
    case GUMBEL_INSPECT_JSON:
        GB_TRY(scratch_bytes(program->program, &scratch, error));
        gb_print_json(program->program, scratch, &sink);
        return GUMBEL_OK;
    default:
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "inspect: part %d is unknown", (int)part);
    }
}

gumbel_status gumbel_program_describe_plan(const gumbel_program *program, const char *backend,
                                           gumbel_write_callback write, void *user, gumbel_error *error) {
    const gb_text_sink sink = {write, user};
    const uint32_t context = (uint32_t)program->program->metadata.max_context;
    const gb_backend_entry *entry;
    GB_TRY(gb_backend_find(backend, &entry, error));
    const uint32_t chunk = gb_usual_prefill_chunk(program->program, entry, context);
    const gb_backend_options options = {.slots = 1,
                                        .max_context = context,
                                        .step_tokens = chunk + 1,
                                        .prefill_chunk = chunk,
                                        .least_chunk = chunk,
                                        .fuse = true};
    if (!entry->describe_plan)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "backend %s has no plan of its own: it executes the nodes of the graph", entry->name);
    return entry->describe_plan(program->program, &options, &sink, error);
}

gumbel_status gumbel_tokenizer_create(const gumbel_program *program, gumbel_tokenizer **tokenizer,
                                      gumbel_error *error) {
    *tokenizer = NULL;
    const gb_program *graph = program->program;
    if (!graph->tokenizer.data)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "the program has no tokenizer (exported from a checkpoint without tokenizer.json)");
    GB_TRY(gb_tokenizer_create(&graph->tokenizer, &graph->chat, tokenizer, error));
    gb_tokenizer_allow_ids(*tokenizer, (uint32_t)graph->metadata.vocab_size);
    gb_tokenizer_use_trie(*tokenizer, &graph->trie);
    const char *reply_format = graph->metadata.reply_format;
    if (!*reply_format)
        return GUMBEL_OK;
    gumbel_status status = gb_tokenizer_use_reply_format(*tokenizer, reply_format, strlen(reply_format),
                                                         "the program's reply_format", error);
    if (status != GUMBEL_OK) {
        gumbel_tokenizer_destroy(*tokenizer);
        *tokenizer = NULL;
    }
    return status;
}
