/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/mlx/lowering.hpp"
#include "backends/mlx/mlx.h"

extern "C" {
#include "base/text_sink.h"
}

#include <cstring>
#include <new>
#include <string>

namespace gb_mlx {

/* What a step leaves on the host's side: the outputs' arrays, whose memory the batch points to. */
struct step_outputs {
    std::optional<mx::array> next, logits, logprob, top_ids, top_logprobs;
};

/* A step whose graph is built. */
struct built_step {
    step_outputs outputs;
    std::vector<mx::array> wanted; /* all that is to be computed; empty once it is enqueued */
};

/* A step that was built ahead of its request. */
struct begun_step {
    std::vector<uint8_t> key; /* what it is the step of; see key_of */
    int32_t token;            /* the token that it runs, once the step before has drawn it */
    std::vector<std::optional<mx::array>> recurrent; /* the slot's states before it */
    built_step built;
};

struct mlx_backend {
    gb_backend base; /* first */
    const gb_program &program;
    mx::Stream stream;
    lowered_program lowered;
    slots states;
    step_outputs outputs;
    std::vector<std::optional<begun_step>> begun; /* by slot */

    mlx_backend(const gb_program &made_from, const gb_backend_options &options, mx::Stream runs_on)
        : base{}, program(made_from), stream(runs_on),
          lowered(program, options, stream.device == mx::Device::gpu),
          states(program, options.slots, options.max_context, options.snapshots), begun(options.slots) {}
};

static mlx_backend &mlx(gb_backend *backend) {
    return *reinterpret_cast<mlx_backend *>(backend);
}

/* ---- The border: exceptions become statuses --------------------------------------------------------------
 */

/* Runs work on the backend's stream. */
template <typename Work>
static gumbel_status guarded(mx::Stream stream, gumbel_error *error, Work work) {
    try {
        mx::StreamContext context(stream);
        work();
        return GUMBEL_OK;
    } catch (const failure &reason) {
        return gb_fail(error, reason.status, "%s", reason.what());
    } catch (const std::bad_alloc &) {
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "mlx: no memory");
    } catch (const std::exception &reason) {
        return gb_fail(error, GUMBEL_ERROR_BACKEND, "mlx: %s", reason.what());
    }
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

static std::optional<mx::array> output(step &s, const gb_program &program, gb_role role) {
    const gb_ref value = gb_program_output(&program, role);
    if (value == GB_NO_VALUE)
        return std::nullopt;
    return mx::contiguous(s[value]);
}

/* Builds a step's graph. When this returns, only what it returns and the states refer to the graph. */
static built_step build(mlx_backend &b, const gb_batch &batch, const std::optional<mx::array> &tokens) {
    built_step built;
    step s(b.lowered.plan(), batch, b.states, tokens);
    for (const slot_run &run : s.runs)
        b.states.check(run.slot, run.start);
    b.lowered.build(s);
    for (const slot_run &run : s.runs) {
        b.states.advance(run.slot, run.start + run.count);
        b.states.collect(run.slot, built.wanted);
    }
    if (batch.row_count > 0)
        built.outputs = {output(s, b.program, GB_ROLE_NEXT), output(s, b.program, GB_ROLE_LOGITS),
                         output(s, b.program, GB_ROLE_LOGPROB), output(s, b.program, GB_ROLE_TOP_IDS),
                         output(s, b.program, GB_ROLE_TOP_LOGPROBS)};
    const step_outputs &outputs = built.outputs;
    for (const auto *array :
         {&outputs.next, &outputs.logits, &outputs.logprob, &outputs.top_ids, &outputs.top_logprobs})
        if (*array)
            built.wanted.push_back(**array);
    return built;
}

/* The one evaluation of a step, which goes on while the host does. */
static void enqueue(built_step &built) {
    if (!built.wanted.empty())
        mx::async_eval(std::exchange(built.wanted, {}));
}

/* Waits for an output. */
template <typename T>
static const T *data_of(std::optional<mx::array> &array) {
    if (!array)
        return nullptr;
    array->eval();
    return array->data<T>();
}

static void post_results(step_outputs &outputs, gb_batch &batch) {
    if (const int32_t *next = data_of<int32_t>(outputs.next))
        std::memcpy(batch.next, next, batch.row_count * sizeof *next);
    batch.logits = data_of<float>(outputs.logits);
    batch.logprob = data_of<float>(outputs.logprob);
    batch.top_ids = data_of<int32_t>(outputs.top_ids);
    batch.top_logprobs = data_of<float>(outputs.top_logprobs);
}

/* ---- Steps begun ahead ----------------------------------------------------------------------------------
 */

/* All that a batch of one row asks for, but its token: equal bytes are the same step. */
static std::vector<uint8_t> key_of(const gb_program &program, const gb_batch &batch) {
    const uint32_t biases = gb_batch_bias_count(&batch, 0, static_cast<uint32_t>(program.metadata.max_bias));
    std::vector<uint8_t> key;
    for (uint32_t i = 0; i < program.input_count; i++) {
        const gb_role_info &role = *gb_role_find(program.inputs[i].role);
        if (role.role == GB_ROLE_TOKENS)
            continue;
        if (role.role == GB_ROLE_MASK && (batch.late_masks || !gb_batch_has_mask(&batch)))
            continue;
        const size_t count = std::strchr(role.dims, 'L')   ? biases
                             : std::strchr(role.dims, 'W') ? gb_mask_words(program.metadata.vocab_size)
                                                           : 1;
        const auto *first = static_cast<const uint8_t *>(gb_batch_input(&batch, role.role));
        key.insert(key.end(), first, first + count * gb_dtype_size(role.dtype));
    }
    return key;
}

static void undo(mlx_backend &b, uint32_t slot) {
    if (b.begun[slot])
        b.states.put_back(slot, b.begun[slot]->recurrent);
    b.begun[slot].reset();
}

/* Builds the step that follows the one with these outputs. */
static begun_step &begin(mlx_backend &b, const gb_batch &batch, const step_outputs &outputs) {
    const auto slot = static_cast<uint32_t>(batch.slots[0]);
    b.begun[slot] = begun_step{key_of(b.program, batch), 0, b.states.recurrent_states(slot), {}};
    b.begun[slot]->built = build(b, batch, outputs.next);
    return *b.begun[slot];
}

/* The outputs of a step that is in flight already, if this is the one. */
static std::optional<step_outputs> take_begun(mlx_backend &b, const gb_batch &batch) {
    std::optional<begun_step> &begun = b.begun[static_cast<uint32_t>(batch.slots[0])];
    if (!begun || batch.token_count != 1 || batch.row_count != 1 || batch.tokens[0] != begun->token ||
        key_of(b.program, batch) != begun->key)
        return std::nullopt;
    const step_outputs outputs = begun->built.outputs;
    begun.reset();
    return outputs;
}

static step_outputs start(mlx_backend &b, const gb_batch &batch) {
    for (const slot_run &run : runs_of(batch))
        undo(b, run.slot);
    built_step built = build(b, batch, std::nullopt);
    enqueue(built);
    return built.outputs;
}

/* While a step is in flight MLX cannot write to its caches in place: the next one, enqueued then, copies
 * them. Up to this size that takes less time than the device would wait. */
enum { MOST_COPIED_BYTES = 16 << 20 };

static void execute(mlx_backend &b, gb_batch &batch) {
    const auto slot = static_cast<uint32_t>(batch.slots[0]);
    const std::optional<step_outputs> begun = take_begun(b, batch);
    const step_outputs outputs = begun ? *begun : start(b, batch);
    if (batch.following && b.states.cache_bytes(slot) <= MOST_COPIED_BYTES)
        enqueue(begin(b, *batch.following, outputs).built);
    else if (batch.following)
        begin(b, *batch.following, outputs);
    b.outputs = outputs;
    post_results(b.outputs, batch);
    if (batch.following) {
        b.begun[slot]->token = batch.next[0];
        enqueue(b.begun[slot]->built);
    }
}

static void lose(mlx_backend &b, uint32_t slot) {
    b.begun[slot].reset();
    b.states.reset(slot);
}

static gumbel_status run_step(gb_backend *backend, gb_batch *batch, gumbel_error *error) {
    mlx_backend &b = mlx(backend);
    const gumbel_status status = guarded(b.stream, error, [&] { execute(b, *batch); });
    for (uint32_t n = 0; n < batch->token_count && status != GUMBEL_OK; n++)
        lose(b, static_cast<uint32_t>(batch->slots[n]));
    return status;
}

/* ---- Slots --------------------------------------------------------------------------------------------- */

static void reset_slot(gb_backend *backend, uint32_t slot) {
    lose(mlx(backend), slot);
}

static gumbel_status copy_slot(gb_backend *backend, uint32_t from, uint32_t to, uint32_t, gumbel_error *) {
    undo(mlx(backend), from);
    undo(mlx(backend), to);
    mlx(backend).states.copy(from, to);
    return GUMBEL_OK;
}

static gumbel_status take_snapshot(gb_backend *backend, uint32_t slot, uint32_t, gumbel_error *) {
    undo(mlx(backend), slot);
    mlx(backend).states.take_snapshot(slot);
    return GUMBEL_OK;
}

static void restore_snapshot(gb_backend *backend, uint32_t slot, uint32_t) {
    undo(mlx(backend), slot);
    mlx(backend).states.restore_snapshot(slot);
}

/* Snapshots of a scheduler, which keeps none of a backend whose states are not reused. */
static gumbel_status check_saved(gb_saved_states saved, gumbel_error *error) {
    if (saved == GB_SAVED_ALL)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "mlx: states are saved with their caches");
}

static gumbel_status save_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_save_stream write, void *user, gumbel_error *error) {
    mlx_backend &b = mlx(backend);
    GB_TRY(check_saved(saved, error));
    undo(b, slot);
    return guarded(b.stream, error, [&] { b.states.save(slot, position, write, user); });
}

static gumbel_status load_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_load_stream read, void *user, gumbel_error *error) {
    mlx_backend &b = mlx(backend);
    GB_TRY(check_saved(saved, error));
    const gumbel_status status = guarded(b.stream, error, [&] { b.states.load(slot, position, read, user); });
    if (status != GUMBEL_OK)
        lose(b, slot);
    return status;
}

/* ---- Making -------------------------------------------------------------------------------------------- */

/* MLX keeps freed memory for its next arrays, and this library may not make any. */
static void destroy(gb_backend *backend) {
    mlx_backend *b = &mlx(backend);
    const mx::Stream stream = b->stream;
    guarded(stream, nullptr, [&] { mx::synchronize(stream); });
    delete b;
    guarded(stream, nullptr, [] { mx::clear_cache(); });
}

static const gb_backend_functions functions = {
    .destroy = destroy,
    .step = run_step,
    .reset_slot = reset_slot,
    .truncate_slot = nullptr,
    .copy_slot = copy_slot,
    .take_snapshot = take_snapshot,
    .restore_snapshot = restore_snapshot,
    .save_slot = save_slot,
    .load_slot = load_slot,
    .copy_to_host = nullptr,
    .copy_from_host = nullptr,
    .take_rows = nullptr,
    .measure_limits = nullptr,
    .free_bytes = nullptr,
};

static const char *device_name(const mx::Device &device) {
    return device == mx::Device::gpu ? "gpu" : "cpu";
}

static void check_options(const gb_backend_options &options) {
    if (options.cpu_isa)
        throw failure(GUMBEL_ERROR_ARGUMENT,
                      std::string("instruction set \"") + options.cpu_isa + "\": mlx chooses its own");
    if (options.lock == GUMBEL_LOCK_ALL)
        throw failure(GUMBEL_ERROR_UNSUPPORTED, "mlx keeps weights in its own memory: they cannot be locked");
    if (options.profile)
        throw failure(GUMBEL_ERROR_UNSUPPORTED,
                      "mlx runs a step as one graph: its ops cannot be timed one by one");
    if (options.threads > 0 && options.log)
        options.log(options.log_user, GUMBEL_LOG_INFO,
                    "mlx: chooses its threads itself; --threads is not used");
}

} // namespace gb_mlx

gumbel_status gb_mlx_backend_create(const gb_program *program, const gb_backend_options *options,
                                    gb_backend **backend, gumbel_error *error) {
    using namespace gb_mlx;
    *backend = nullptr;
    try {
        check_options(*options);
        const mx::Stream stream = mx::new_thread_unsafe_stream(mx::default_device());
        return guarded(stream, error, [&] {
            auto *created = new mlx_backend(*program, *options, stream);
            created->base.functions = &functions;
            created->base.most_following = 1;
            snprintf(created->base.description, sizeof created->base.description, "mlx %s %s", mx::version(),
                     device_name(stream.device));
            *backend = &created->base;
        });
    } catch (const failure &reason) {
        return gb_fail(error, reason.status, "%s", reason.what());
    } catch (const std::exception &reason) {
        return gb_fail(error, GUMBEL_ERROR_BACKEND, "mlx: %s", reason.what());
    }
}

void gb_mlx_describe(gumbel_write_callback write, void *user) {
    const gb_text_sink sink = {write, user};
    gb_print(&sink,
             "MLX %s, %s; activations are not rounded to 8 bits, sums have MLX's order, the noise MLX's log",
             gb_mlx::mx::version(), gb_mlx::device_name(gb_mlx::mx::default_device()));
}
