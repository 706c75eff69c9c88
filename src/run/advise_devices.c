/* SPDX-License-Identifier: Apache-2.0 */
#include "run/advise_devices.h"

#include "base/versioned.h"
#include "program/costs.h"
#include "program/shard/shard.h"
#include "run/handles.h"

#include <string.h>

/* ---- A step -------------------------------------------------------------------------------------------- */

/* Products of one row reach this share of the rate that the driver tells, a node and an exchange add these
 * seconds: a fit, within a tenth, to what docs/scaling.md measured of two models on one H200 and on two. */
static const double share_of_rate = 0.78, seconds_of_node = 0.6e-6, seconds_of_exchange = 6.4e-6;

static double step_seconds(const gb_program *program, double bytes_per_second) {
    enum { POSITION = 512 /* at which those were measured */ };
    const gumbel_step_shape shape = {
        .size = sizeof shape, .sequences = 1, .tokens = 1, .position = POSITION, .wants_tokens = true};
    gumbel_step_costs costs = {.size = sizeof costs};
    const double exchanges = (double)gb_program_op_count(program, GB_OP_ALL_GATHER);
    if (bytes_per_second <= 0)
        return 0;
    gb_program_costs(program, &shape, &costs);
    return (costs.weight_bytes + costs.state_bytes) / (share_of_rate * bytes_per_second) +
           ((double)program->node_count - exchanges) * seconds_of_node + exchanges * seconds_of_exchange;
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Caches take memory as positions are used: not all conversations are as long as one may become. */
static uint64_t conversation_bytes(const gb_program *program, const gumbel_engine_options *options) {
    enum { USUAL = 8192 };
    const uint32_t most = options->max_context, usual = most < USUAL ? most : USUAL;
    const uint64_t longest = gb_program_state_bytes_at(program, most),
                   all = gb_program_state_bytes_at(program, usual) * (uint64_t)options->slots;
    return longest > all ? longest : all;
}

static uint64_t room_on(const gb_device_info *devices, uint32_t count) {
    enum { SHARE_OF_STEP = 10 };
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t kept = devices[i].memory_bytes / SHARE_OF_STEP, left = devices[i].free_bytes;
        const uint64_t room = left > kept ? left - kept : 0;
        least = room < least ? room : least;
    }
    return least;
}

/* ---- Estimates ----------------------------------------------------------------------------------------- */

typedef struct advising {
    const gb_program *program;
    const gb_backend_entry *entry;
    const gumbel_engine_options *options;
    const gb_device_info *devices;
    gumbel_device_advice *advice;
} advising;

static gumbel_status measure_weights(const advising *a, const gb_program *program, uint64_t *bytes,
                                     gumbel_error *error) {
    if (a->entry->measure_weights)
        return a->entry->measure_weights(program, bytes, error);
    *bytes = gb_program_weight_bytes(program);
    return GUMBEL_OK;
}

/* program: that of rank 0, than which no other has more. */
static gumbel_status add_estimate(const advising *a, const gb_program *program, uint32_t count,
                                  gumbel_error *error) {
    gumbel_device_estimate *added = &a->advice->estimates[a->advice->estimate_count];
    GB_TRY(measure_weights(a, program, &added->bytes, error));
    added->devices = count;
    added->bytes += conversation_bytes(program, a->options);
    added->room_bytes = room_on(a->devices, count);
    added->fits = added->bytes <= added->room_bytes;
    added->step_seconds = step_seconds(program, a->devices->bytes_per_second);
    a->advice->estimate_count++;
    return GUMBEL_OK;
}

/* UNSUPPORTED, for a number that does not divide the program. */
static gumbel_status estimate(const advising *a, uint32_t count, gumbel_error *error) {
    const int64_t least = (int64_t)a->options->least_sharded_weights;
    const gb_shard_options options = {.ranks = count,
                                      .least_weights = least > 0 ? least : (int64_t)GB_LEAST_SHARDED_WEIGHTS};
    gb_sharded sharded;
    if (count == 1)
        return add_estimate(a, a->program, count, error);
    gumbel_status status = gb_program_shard(a->program, &options, &sharded, error);
    if (status == GUMBEL_OK)
        status = add_estimate(a, sharded.program, count, error);
    gb_sharded_free(&sharded);
    return status;
}

static gumbel_status estimate_all(const advising *a, uint32_t count, gumbel_error *error) {
    GB_TRY(estimate(a, 1, error));
    for (uint32_t n = 2; n <= count && n <= GUMBEL_MOST_DEVICES; n *= 2) {
        const gumbel_status status = estimate(a, n, error);
        if (status != GUMBEL_OK && status != GUMBEL_ERROR_UNSUPPORTED)
            return status;
    }
    return GUMBEL_OK;
}

/* ---- The choice ---------------------------------------------------------------------------------------- */

/* More devices than steps were measured on are taken for their room alone. */
static const gumbel_device_estimate *choose(const gumbel_device_advice *advice) {
    enum { MEASURED = 2 };
    const double worth_it = 1.1;
    const gumbel_device_estimate *chosen = NULL;
    for (uint32_t i = 0; i < advice->estimate_count; i++) {
        const gumbel_device_estimate *next = &advice->estimates[i];
        const bool is_faster = chosen && chosen->step_seconds > worth_it * next->step_seconds;
        if (next->fits && (!chosen || (is_faster && next->devices <= MEASURED)))
            chosen = next;
    }
    return chosen;
}

/* Of the largest number of devices, where each needs least. */
static gumbel_status fail_without_room(const gumbel_device_advice *advice, uint32_t context,
                                       gumbel_error *error) {
    const double gigabyte = 1e9;
    const gumbel_device_estimate *last = &advice->estimates[advice->estimate_count - 1];
    return gb_fail(error, GUMBEL_ERROR_MEMORY,
                   "weights and a context of %u positions fit on no number of devices: on %u each needs %.2f "
                   "GB, and %.2f GB are free beside the tenth for a step's values",
                   context, last->devices, (double)last->bytes / gigabyte,
                   (double)last->room_bytes / gigabyte);
}

gumbel_status gb_advise_devices(const gb_program *program, const gb_backend_entry *entry,
                                const gumbel_engine_options *options, const gb_device_info *devices,
                                uint32_t count, gumbel_device_advice *advice, gumbel_error *error) {
    const advising a = {program, entry, options, devices, advice};
    advice->estimate_count = 0;
    GB_TRY(estimate_all(&a, count, error));
    const gumbel_device_estimate *chosen = choose(advice);
    if (!chosen)
        return fail_without_room(advice, options->max_context, error);
    advice->device_count = chosen->devices;
    for (uint32_t i = 0; i < chosen->devices; i++)
        advice->devices[i] = devices[i].number;
    return GUMBEL_OK;
}

static gumbel_status settle(const gb_program *program, const gumbel_engine_options *given,
                            gumbel_engine_options *options, gumbel_error *error) {
    GB_TRY(gb_read_versioned(given, "engine options", options, sizeof *options, error));
    if (options->slots < 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "slots %d: expected at least 1", options->slots);
    if (options->slots == 0)
        options->slots = 1;
    if (options->max_context == 0)
        options->max_context = (uint32_t)program->metadata.max_context;
    return GUMBEL_OK;
}

gumbel_status gumbel_advise_devices(const gumbel_program *program, const gumbel_engine_options *given,
                                    gumbel_device_advice *advice, gumbel_error *error) {
    gb_device_info devices[GUMBEL_MOST_DEVICES];
    gumbel_engine_options options;
    gumbel_device_advice full = {.size = sizeof full, .device_count = 1};
    const gb_backend_entry *entry;
    uint32_t count;
    GB_TRY(gb_check_versioned(advice, "device advice", error));
    GB_TRY(settle(program->program, given, &options, error));
    GB_TRY(gb_backend_find(options.backend, &entry, error));
    if (entry->list_devices) {
        GB_TRY(entry->list_devices(devices, GUMBEL_MOST_DEVICES, &count, error));
        GB_TRY(gb_advise_devices(program->program, entry, &options, devices, count, &full, error));
    }
    gb_write_versioned(&full, sizeof full, advice);
    return GUMBEL_OK;
}
