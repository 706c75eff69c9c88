/* SPDX-License-Identifier: Apache-2.0 */
#include "run/mlx/lowering.hpp"
#include "run/mlx/mlx.h"

extern "C" {
#include "base/text_sink.h"
}

#include <cstring>
#include <new>

namespace gb_mlx {

/* What a step leaves on the host's side: the outputs' arrays, whose memory the batch points to. */
struct step_outputs {
    std::optional<mx::array> next, logits, logprob, top_ids, top_logprobs;
};

struct mlx_backend {
    gb_backend base; /* first */
    const gb_program &program;
    mx::Stream stream;
    lowered_program lowered;
    slots states;
    step_outputs outputs;

    mlx_backend(const gb_program &made_from, const gb_backend_options &options, mx::Stream runs_on)
        : base{}, program(made_from), stream(runs_on), lowered(program, options),
          states(program, options.slots, options.max_context, options.snapshots) {}
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

/* Builds the graph; when this returns, only outputs and states refer to it. */
static void build(mlx_backend &b, const gb_batch &batch) {
    step s(b.lowered.plan(), batch, b.states);
    for (const slot_run &run : s.runs)
        b.states.check(run.slot, run.start);
    b.lowered.build(s);
    b.outputs = {};
    if (batch.row_count > 0)
        b.outputs = {output(s, b.program, GB_ROLE_NEXT), output(s, b.program, GB_ROLE_LOGITS),
                     output(s, b.program, GB_ROLE_LOGPROB), output(s, b.program, GB_ROLE_TOP_IDS),
                     output(s, b.program, GB_ROLE_TOP_LOGPROBS)};
}

/* The one evaluation of a step. */
static void evaluate(mlx_backend &b, const gb_batch &batch) {
    std::vector<mx::array> wanted;
    for (const auto *array : {&b.outputs.next, &b.outputs.logits, &b.outputs.logprob, &b.outputs.top_ids,
                              &b.outputs.top_logprobs})
        if (*array)
            wanted.push_back(**array);
    for (const slot_run &run : runs_of(batch))
        b.states.collect(run.slot, wanted);
    mx::eval(wanted);
}

template <typename T>
static const T *data_of(const std::optional<mx::array> &array) {
    return array ? array->data<T>() : nullptr;
}

static void hand_out(const step_outputs &outputs, gb_batch &batch) {
    if (outputs.next)
        std::memcpy(batch.next, outputs.next->data<int32_t>(), batch.row_count * sizeof *batch.next);
    batch.logits = data_of<float>(outputs.logits);
    batch.logprob = data_of<float>(outputs.logprob);
    batch.top_ids = data_of<int32_t>(outputs.top_ids);
    batch.top_logprobs = data_of<float>(outputs.top_logprobs);
}

static gumbel_status run_step(gb_backend *backend, gb_batch *batch, gumbel_error *error) {
    mlx_backend &b = mlx(backend);
    const gumbel_status status = guarded(b.stream, error, [&] {
        build(b, *batch);
        evaluate(b, *batch);
        for (const slot_run &run : runs_of(*batch))
            b.states.advance(run.slot, run.start + run.count);
        hand_out(b.outputs, *batch);
    });
    for (uint32_t n = 0; n < batch->token_count && status != GUMBEL_OK; n++)
        b.states.lose(static_cast<uint32_t>(batch->slots[n]));
    return status;
}

/* ---- Slots --------------------------------------------------------------------------------------------- */

static void reset_slot(gb_backend *backend, uint32_t slot) {
    mlx(backend).states.reset(slot);
}

static void copy_slot(gb_backend *backend, uint32_t from, uint32_t to, uint32_t) {
    mlx(backend).states.copy(from, to);
}

static void take_snapshot(gb_backend *backend, uint32_t slot, uint32_t) {
    mlx(backend).states.take_snapshot(slot);
}

static void restore_snapshot(gb_backend *backend, uint32_t slot, uint32_t) {
    mlx(backend).states.restore_snapshot(slot);
}

static gumbel_status save_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_save_stream write,
                               void *user, gumbel_error *error) {
    mlx_backend &b = mlx(backend);
    return guarded(b.stream, error, [&] { b.states.save(slot, position, write, user); });
}

static gumbel_status load_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_load_stream read,
                               void *user, gumbel_error *error) {
    mlx_backend &b = mlx(backend);
    const gumbel_status status = guarded(b.stream, error, [&] { b.states.load(slot, position, read, user); });
    if (status != GUMBEL_OK)
        b.states.lose(slot);
    return status;
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static void destroy(gb_backend *backend) {
    delete &mlx(backend);
}

static const gb_backend_functions functions = {
    .destroy = destroy,
    .step = run_step,
    .reset_slot = reset_slot,
    .copy_slot = copy_slot,
    .take_snapshot = take_snapshot,
    .restore_snapshot = restore_snapshot,
    .save_slot = save_slot,
    .load_slot = load_slot,
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
            auto *made = new mlx_backend(*program, *options, stream);
            made->base.functions = &functions;
            snprintf(made->base.description, sizeof made->base.description, "mlx %s %s", mx::version(),
                     device_name(stream.device));
            *backend = &made->base;
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
