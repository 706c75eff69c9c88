/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/backends.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "program/conversations.h"
#include "program/costs.h"
#include "program/verify/verifier.h"
#include "run/draft/draft_tokens.h"
#include "run/draft/head.h"
#include "run/draft/model.h"
#include "run/handles.h"
#include "run/prefill_chunk.h"
#include "run/process_group.h"

#include <limits.h>
#include <stdio.h>

/* The caller's options with every default filled in, and what goes with them. */
typedef struct settled_options {
    gumbel_engine_options values;
    const gb_backend_entry *entry;
    int device;
    uint32_t least_chunk;                    /* without memory for values.prefill_chunk */
    uint32_t short_chunk, short_step_tokens; /* see handles.h */
} settled_options;

/* What steps take. A chunk that the caller names is not made smaller, and with a number of tokens that he
 * names the usual one is the program's. */
static gumbel_status settle_steps(const gb_program *program, settled_options *settled, gumbel_error *error) {
    gumbel_engine_options *options = &settled->values;
    const uint32_t own = (uint32_t)program->metadata.prefill_chunk;
    const bool is_named = options->prefill_chunk > 0;
    if (!is_named && options->step_tokens > 0)
        options->prefill_chunk = own;
    GB_TRY(gb_settle_prefill_chunk(program, settled->entry, options->max_context, &options->prefill_chunk,
                                   error));
    gb_settle_draft_tokens(program, settled->entry, options);
    const uint32_t rows = (uint32_t)options->slots * (1 + options->draft_tokens);
    settled->short_chunk = options->prefill_chunk < own ? options->prefill_chunk : own;
    settled->least_chunk = is_named ? options->prefill_chunk : own;
    settled->short_step_tokens = options->step_tokens ? options->step_tokens : settled->short_chunk + rows;
    if (options->step_tokens == 0)
        options->step_tokens = options->prefill_chunk + rows;
    if (options->step_tokens < (uint32_t)options->slots || options->step_tokens > INT_MAX / 2)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "step_tokens %u: expected at least one per slot (%d)",
                       options->step_tokens, options->slots);
    return GUMBEL_OK;
}

/* The device is that of the process, or the first of the engine's. */
static gumbel_status settle_device(settled_options *settled, gumbel_error *error) {
    gumbel_engine_options *options = &settled->values;
    gumbel_process_group_info info = {.size = sizeof info};
    settled->device = options->device_count > 0 ? options->devices[0] : 0;
    if (!options->process_group)
        return GUMBEL_OK;
    GB_TRY(gumbel_process_group_get_info(options->process_group, &info, error));
    if (info.rank > 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "an engine of rank %u: rank 0 makes engines, the others follow", info.rank);
    return gb_settle_process(options->process_group, settled->entry, options, &settled->device, error);
}

static gumbel_status settle_options(const gb_program *program, const gumbel_engine_options *given,
                                    settled_options *settled, gumbel_error *error) {
    gumbel_engine_options *options = &settled->values;
    const gb_metadata *metadata = &program->metadata;
    GB_TRY(gb_read_versioned(given, "engine options", options, sizeof *options, error));
    GB_TRY(gb_backend_find(options->backend, &settled->entry, error));
    if (options->device_count > 0 && !options->devices)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%u devices without their numbers",
                       options->device_count);
    GB_TRY(settle_device(settled, error));
    if (options->slots < 0 || options->slots > 65536)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "slots %d: expected 1 to 65536", options->slots);
    if (options->threads < 0 || options->threads > 1024)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "threads %d: expected 0 (all cores) to 1024",
                       options->threads);
    if (options->max_context > metadata->max_context)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "context of %u positions: the program was exported for at most %llu (--max-context)",
                       options->max_context, (unsigned long long)metadata->max_context);
    if (gb_is_draft_head(program) && settled->entry->why_no_drafts)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "a draft head: the backend %s takes no drafts",
                       settled->entry->name);
    if (options->draft_engine)
        GB_TRY(gb_check_draft_engine(program, options->draft_engine, error));
    if (options->slots == 0)
        options->slots = 1;
    if (options->max_context == 0)
        options->max_context = (uint32_t)metadata->max_context;
    return settle_steps(program, settled, error);
}

/* Arrays for the requests of a step, of which each slot has one at most. */
static bool reserve_requests(size_t slots, gb_step_requests *requests) {
    requests->list = gb_allocate(slots, sizeof *requests->list);
    requests->settings = gb_allocate(slots, sizeof *requests->settings);
    requests->first_row = gb_allocate(slots, sizeof *requests->first_row);
    requests->rest = gb_allocate(slots, sizeof *requests->rest);
    return requests->list && requests->settings && requests->first_row && requests->rest;
}

static void free_requests(gb_step_requests *requests) {
    gb_free(requests->list);
    gb_free(requests->settings);
    gb_free(requests->first_row);
    gb_free(requests->rest);
}

static bool reserve_batch(gumbel_engine *engine, uint32_t rows) {
    if (!gb_batch_arrays_reserve(&engine->program->metadata, engine->step_tokens, rows, &engine->arrays) ||
        !reserve_requests(engine->slots, &engine->requests) || !reserve_requests(1, &engine->own_request))
        return false;
    engine->late_masks = gb_late_masks_create(engine->slots);
    if (!engine->late_masks)
        return false;
    gb_batch_use(&engine->arrays, &engine->batch);
    return true;
}

static bool reserve_sessions(gumbel_engine *engine) {
    size_t context = engine->max_context, each = 2 * context + 1;
    uint64_t words;
    engine->sessions = gb_allocate(engine->slots, sizeof *engine->sessions);
    if (!engine->sessions || !gb_multiply_size(engine->slots, each, &words) || words > SIZE_MAX)
        return false;
    engine->token_storage = gb_allocate((size_t)words, sizeof *engine->token_storage);
    const size_t max_bias = engine->arrays.widths.max_bias;
    if (!engine->token_storage || !gb_multiply_size(engine->slots, max_bias, &words) || words > SIZE_MAX)
        return false;
    engine->bias_storage = gb_allocate((size_t)words + 1, sizeof *engine->bias_storage);
    engine->generated_storage =
        gb_allocate((size_t)engine->slots * context, sizeof *engine->generated_storage);
    if (!engine->bias_storage || !engine->generated_storage)
        return false;
    for (uint32_t i = 0; i < engine->slots; i++) {
        engine->sessions[i].engine = engine;
        engine->sessions[i].slot = i;
        engine->sessions[i].tokens = engine->token_storage + i * each;
        engine->sessions[i].generated = engine->generated_storage + i * context;
        engine->sessions[i].prompt = engine->sessions[i].tokens + context;
        engine->sessions[i].bias = engine->bias_storage + (size_t)i * max_bias;
    }
    return true;
}

/* Its steps read their weights alone, as those of this engine do. */
static double usual_draft_cost(const gb_program *program, const gb_program *draft) {
    const gumbel_step_shape shape = {.size = sizeof shape, .sequences = 1, .tokens = 1, .wants_tokens = true};
    gumbel_step_costs own = {.size = sizeof own}, of_draft = {.size = sizeof of_draft};
    gb_program_costs(program, &shape, &own);
    gb_program_costs(draft, &shape, &of_draft);
    return own.weight_bytes > 0 ? of_draft.weight_bytes / own.weight_bytes : 1;
}

static bool reserve_draft_models(gumbel_engine *engine, gumbel_engine *draft_engine) {
    engine->draft_engine = draft_engine;
    engine->draft_cost = usual_draft_cost(engine->program, draft_engine->program);
    engine->draft_models = gb_draft_models_create(engine->slots);
    engine->draft_requests = gb_allocate(engine->slots, sizeof *engine->draft_requests);
    if (draft_engine->is_draft_head)
        engine->taken = gb_find_taken_states(engine->program, draft_engine->program);
    for (uint32_t i = 0; engine->draft_models && i < engine->slots; i++)
        engine->sessions[i].draft_model = &engine->draft_models[i];
    return engine->draft_models && engine->draft_requests && (engine->taken || !draft_engine->is_draft_head);
}

/* The backend is there. */
static gumbel_status use_draft_engine(gumbel_engine *engine, gumbel_engine *draft_engine,
                                      gumbel_error *error) {
    if (!draft_engine)
        return GUMBEL_OK;
    if (draft_engine->is_draft_head)
        GB_TRY(gb_check_draft_head_place(engine, draft_engine, error));
    if (reserve_draft_models(engine, draft_engine))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %u draft models", engine->slots);
}

/* How many steps are announced: as many as the backend begins, and as rings have room for without losing a
 * position that the first of them reads. */
static uint32_t most_following(const gumbel_engine *engine) {
    const uint32_t most = engine->backend->most_following, slack = gb_ring_slack(engine->program);
    return slack < most ? slack + 1 : most;
}

/* The settled options as a backend takes them. */
static gb_backend_options backend_options_of(const settled_options *settled) {
    const gumbel_engine_options *options = &settled->values;
    return (gb_backend_options){
        .slots = (uint32_t)options->slots,
        .max_context = options->max_context,
        .step_tokens = options->step_tokens,
        .prefill_chunk = options->prefill_chunk,
        .least_chunk = settled->least_chunk,
        .draft_tokens = options->draft_tokens,
        .device = settled->device,
        .threads = options->threads,
        .cpu_isa = options->cpu_isa,
        .fuse = !options->unfused,
        .snapshots = options->snapshots,
        .lock = options->lock,
        .log = options->log,
        .log_user = options->log_user,
        .profile = options->profile,
        .profile_user = options->profile_user,
        .observe = options->observe,
        .observe_user = options->observe_user,
    };
}

/* Chunks of whole blocks, where prompts are computed in such. */
static void keep_to_blocks(gumbel_engine *engine) {
    const uint32_t grain = engine->backend->grain;
    uint32_t chunk = engine->prefill_chunk;
    if (grain <= 1)
        return;
    chunk = chunk < engine->step_tokens ? chunk : engine->step_tokens;
    engine->prefill_chunk = chunk > grain ? chunk - chunk % grain : chunk;
    const uint32_t least = chunk < grain ? chunk : grain, given = engine->short_chunk;
    engine->short_chunk = given > least ? given - given % least : least;
    if (engine->short_chunk > given)
        engine->short_step_tokens += engine->short_chunk - given;
    if (engine->short_step_tokens > engine->step_tokens)
        engine->short_step_tokens = engine->step_tokens;
}

/* Steps are as long as the backend has memory for. */
static void take_chunk(gumbel_engine *engine, const gb_backend_options *options) {
    const uint32_t chunk = engine->backend->prefill_chunk;
    engine->prefill_chunk = chunk > 0 ? chunk : options->prefill_chunk;
    engine->step_tokens = gb_step_tokens_with(options, engine->prefill_chunk);
    keep_to_blocks(engine);
}

static gumbel_status create_backend(gumbel_engine *engine, const gb_backend_entry *entry,
                                    const gb_devices *devices, const gb_backend_options *options,
                                    gumbel_error *error) {
    GB_TRY(gb_backend_check_observe(entry, options, error));
    engine->backend_name = entry->name;
    GB_TRY(gb_backend_create_on(entry, devices, engine->program, options, &engine->backend, error));
    take_chunk(engine, options);
    if (engine->backend->threads > 0 || gb_program_input(engine->program, GB_ROLE_MASK) == GB_NO_VALUE)
        return GUMBEL_OK;
    return gb_mask_workers_create(engine->slots, engine->late_masks, &engine->mask_workers, error);
}

static void use_options(gumbel_engine *engine, const settled_options *settled) {
    const gumbel_engine_options *options = &settled->values;
    engine->slots = (uint32_t)options->slots;
    engine->max_context = options->max_context;
    engine->step_tokens = options->step_tokens;
    engine->prefill_chunk = options->prefill_chunk;
    engine->short_chunk = settled->short_chunk;
    engine->short_step_tokens = settled->short_step_tokens;
    engine->draft_tokens = options->draft_tokens;
    engine->snapshots = options->snapshots;
    engine->device_count = options->device_count > 0 ? options->device_count : 1;
    for (uint32_t i = 0; i < options->device_count && i < GB_MOST_RANKS; i++)
        engine->devices[i] = options->devices[i];
    engine->process_group = options->process_group;
    engine->log = options->log;
    engine->log_user = options->log_user;
}

gumbel_status gumbel_engine_create(const gumbel_program *program, const gumbel_engine_options *given,
                                   gumbel_engine **engine, gumbel_error *error) {
    *engine = NULL;
    settled_options settled;
    GB_TRY(settle_options(program->program, given, &settled, error));
    GB_TRY(gb_verify_weights(program->program, error));
    gumbel_engine *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for an engine");
    made->program = program->program;
    made->is_draft_head = gb_is_draft_head(made->program);
    made->attends_to_program = gb_attends_to_program(made->program);
    made->head_offset = gb_draft_head_offset(made->program);
    use_options(made, &settled);
    const gb_backend_options backend_options = backend_options_of(&settled);
    const gb_devices devices = {settled.values.devices, settled.values.device_count,
                                (int64_t)settled.values.least_sharded_weights, settled.values.process_group,
                                settled.entry->name};
    made->most_rows = gb_most_rows(&backend_options);
    gumbel_status status =
        reserve_batch(made, made->most_rows) && reserve_sessions(made)
            ? create_backend(made, settled.entry, &devices, &backend_options, error)
            : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %u sessions of %u positions", made->slots,
                      made->max_context);
    if (status == GUMBEL_OK)
        status = use_draft_engine(made, settled.values.draft_engine, error);
    if (status != GUMBEL_OK) {
        gumbel_engine_destroy(made);
        return status;
    }
    made->most_following = most_following(made);
    snprintf(made->description, sizeof made->description, "%s, %u tokens a step", made->backend->description,
             made->step_tokens);
    *engine = made;
    return GUMBEL_OK;
}

void gumbel_engine_destroy(gumbel_engine *engine) {
    if (!engine)
        return;
    for (uint32_t i = 0; engine->sessions && i < engine->slots; i++) {
        gb_session_forget_generation(&engine->sessions[i]);
        gb_draft_model_end(engine->sessions[i].draft_model);
    }
    gb_free(engine->draft_models);
    gb_free(engine->draft_requests);
    gb_free(engine->taken);
    gb_mask_workers_destroy(engine->mask_workers);
    if (engine->backend)
        engine->backend->functions->destroy(engine->backend);
    gb_late_masks_destroy(engine->late_masks);
    gb_batch_arrays_free(&engine->arrays);
    free_requests(&engine->requests);
    free_requests(&engine->own_request);
    gb_free(engine->bias_storage);
    gb_free(engine->token_storage);
    gb_free(engine->generated_storage);
    gb_free(engine->sessions);
    gb_free(engine);
}

const char *gumbel_engine_description(const gumbel_engine *engine) {
    return engine->description;
}

gumbel_status gumbel_engine_get_info(const gumbel_engine *engine, gumbel_engine_info *info,
                                     gumbel_error *error) {
    GB_TRY(gb_check_versioned(info, "engine info", error));
    const gumbel_engine_info full = {
        .size = sizeof full,
        .slots = engine->slots,
        .max_context = engine->max_context,
        .step_tokens = engine->step_tokens,
        .prefill_chunk =
            engine->prefill_chunk < engine->step_tokens ? engine->prefill_chunk : engine->step_tokens,
        .draft_tokens = engine->draft_tokens,
        .snapshots = engine->snapshots,
        .backend = engine->backend_name,
        .threads = engine->backend->threads,
    };
    gb_write_versioned(&full, sizeof full, info);
    return GUMBEL_OK;
}

gumbel_status gumbel_engine_measure_limits(gumbel_engine *engine, gumbel_machine_limits *limits,
                                           gumbel_error *error) {
    GB_TRY(gb_check_versioned(limits, "machine limits", error));
    if (!engine->backend->functions->measure_limits)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "this backend does not measure the machine's limits");
    gumbel_machine_limits full = {.size = sizeof full};
    GB_TRY(engine->backend->functions->measure_limits(engine->backend, &full, error));
    gb_write_versioned(&full, sizeof full, limits);
    return GUMBEL_OK;
}

/* Of memory for states; a device's is what its weights have left. */
static uint64_t room_for_states(const gumbel_engine *engine) {
    if (!engine->backend->functions->free_bytes)
        return gb_room_beside_weights(engine->program, gb_machine_bytes());
    const uint64_t left = engine->backend->functions->free_bytes(engine->backend);
    return left > 0 ? left : UINT64_MAX;
}

bool gumbel_engine_conversation_memory(const gumbel_engine *engine, size_t index,
                                       gumbel_conversation_memory *memory) {
    return memory->size >= sizeof *memory &&
           gb_get_conversation_memory(engine->program, engine->max_context, room_for_states(engine), index,
                                      memory);
}
