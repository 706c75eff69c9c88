/* SPDX-License-Identifier: Apache-2.0 */
#include "export/calibrate/calibration.h"

#include "base/memory.h"
#include "base/versioned.h"
#include "export/parallel.h"

#include <pthread.h>
#include <string.h>
#include <xxhash.h>

/* Blocks: wider ones are better and cost memory and time; narrower ones than the rotation's would be cut by
 * it. */
enum { WIDEST_BLOCK = 1024, NARROWEST_BLOCK = 256 };
static const uint64_t DEFAULT_BYTES = UINT64_C(4) << 30;

/* What the products with some weight have taken in. */
typedef struct observed {
    char *weight; /* owned */
    size_t inputs;
} observed;

/* Values that one or several products take in. */
typedef struct input_values {
    gb_correlations correlations; /* without sums: there is no memory for them */
    uint64_t first_hash;          /* of the rows that came first */
} input_values;

struct gumbel_calibration {
    pthread_mutex_t mutex; /* of the lists, which grow while the first step runs */
    uint64_t limit;        /* of all sums, in bytes */
    uint64_t block;        /* of all correlations */
    observed *weights;
    size_t weight_count, weight_capacity;
    input_values *inputs;
    size_t input_count, input_capacity;
    bool has_failed;
    const gb_correlations *fed; /* whose feedback is kept */
    uint32_t fed_rotation;
    gb_feedback feedback;
};

gumbel_status gumbel_calibration_create(const gumbel_calibration_options *given,
                                        gumbel_calibration **calibration, gumbel_error *error) {
    gumbel_calibration_options options;
    *calibration = NULL;
    GB_TRY(gb_read_versioned(given, "calibration options", &options, sizeof options, error));
    gumbel_calibration *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a calibration");
    *made = (gumbel_calibration){.limit = options.memory_bytes > 0 ? options.memory_bytes : DEFAULT_BYTES,
                                 .block = WIDEST_BLOCK};
    pthread_mutex_init(&made->mutex, NULL);
    *calibration = made;
    return GUMBEL_OK;
}

void gumbel_calibration_destroy(gumbel_calibration *calibration) {
    if (!calibration)
        return;
    for (size_t i = 0; i < calibration->weight_count; i++)
        gb_free(calibration->weights[i].weight);
    for (size_t i = 0; i < calibration->input_count; i++)
        gb_correlations_free(&calibration->inputs[i].correlations);
    gb_feedback_free(&calibration->feedback);
    gb_free(calibration->weights);
    gb_free(calibration->inputs);
    pthread_mutex_destroy(&calibration->mutex);
    gb_free(calibration);
}

/* ---- Observing ----------------------------------------------------------------------------------------- */

static const observed *find_weight(const gumbel_calibration *c, const char *weight) {
    for (size_t i = 0; i < c->weight_count; i++)
        if (strcmp(c->weights[i].weight, weight) == 0)
            return &c->weights[i];
    return NULL;
}

/* Bytes of all correlations once they have that block and there are some for so many columns more. */
static uint64_t bytes_with(const gumbel_calibration *c, uint64_t block, uint64_t columns) {
    uint64_t squares = gb_block_squares(columns, block);
    for (size_t i = 0; i < c->input_count; i++)
        if (c->inputs[i].correlations.sums)
            squares += gb_block_squares(c->inputs[i].correlations.columns, block);
    return squares * sizeof(float);
}

/* Makes room for correlations of so many columns by halving the blocks of all. */
static bool make_room(gumbel_calibration *c, uint64_t columns) {
    while (bytes_with(c, c->block, columns) > c->limit && c->block > NARROWEST_BLOCK) {
        c->block /= 2;
        for (size_t i = 0; i < c->input_count; i++)
            if (c->inputs[i].correlations.sums)
                gb_correlations_halve(&c->inputs[i].correlations);
    }
    return bytes_with(c, c->block, columns) <= c->limit;
}

/* The values of an observation: those of another weight where they have the same bits. */
static bool find_inputs(gumbel_calibration *c, const gumbel_observation *o, size_t *index) {
    const uint64_t hash = XXH3_64bits(o->inputs, o->rows * o->columns * sizeof *o->inputs);
    for (size_t i = c->input_count; i-- > 0;)
        if (c->inputs[i].first_hash == hash && c->inputs[i].correlations.columns == o->columns) {
            *index = i;
            return true;
        }
    input_values made = {.first_hash = hash, .correlations.columns = o->columns};
    if (!gb_grow((void **)&c->inputs, &c->input_capacity, c->input_count + 1, sizeof *c->inputs))
        return false;
    if (make_room(c, o->columns) && !gb_correlations_create(o->columns, c->block, &made.correlations))
        return false;
    *index = c->input_count;
    c->inputs[c->input_count++] = made;
    return true;
}

static bool add_weight(gumbel_calibration *c, const gumbel_observation *o) {
    observed made = {.weight = gb_copy_string(o->weight, strlen(o->weight))};
    if (made.weight && find_inputs(c, o, &made.inputs) &&
        gb_grow((void **)&c->weights, &c->weight_capacity, c->weight_count + 1, sizeof *c->weights)) {
        c->weights[c->weight_count++] = made;
        return true;
    }
    gb_free(made.weight);
    return false;
}

/* Whether the rows are to be added: of values that several weights take in, only with the first of them.
 * Copied, because lists may grow. */
static bool find_sums(gumbel_calibration *c, const gumbel_observation *o, gb_correlations *correlations) {
    pthread_mutex_lock(&c->mutex);
    const observed *found = find_weight(c, o->weight);
    if (!found && !c->has_failed && add_weight(c, o))
        found = &c->weights[c->weight_count - 1];
    c->has_failed |= !found;
    bool is_first = found != NULL;
    for (const observed *w = c->weights; is_first && w < found; w++)
        is_first = w->inputs != found->inputs;
    if (is_first)
        *correlations = c->inputs[found->inputs].correlations;
    pthread_mutex_unlock(&c->mutex);
    return is_first && correlations->sums;
}

void gumbel_calibration_observe(void *calibration, const gumbel_observation *observation) {
    gb_correlations correlations;
    const bool is_of_one_expert = observation->experts && observation->choices == 1;
    if (observation->rows == 0 || is_of_one_expert || !find_sums(calibration, observation, &correlations))
        return;
    gb_correlations_add(&correlations, observation->inputs, observation->rows, observation->thread,
                        observation->threads);
}

/* ---- For the export ------------------------------------------------------------------------------------ */

const gb_correlations *gb_calibration_find(const gumbel_calibration *calibration, const char *weight,
                                           uint64_t columns) {
    const observed *found = find_weight(calibration, weight);
    const gb_correlations *correlations = found ? &calibration->inputs[found->inputs].correlations : NULL;
    return correlations && correlations->sums && correlations->columns == columns ? correlations : NULL;
}

const gb_feedback *gb_calibration_feedback(gumbel_calibration *calibration,
                                           const gb_correlations *correlations, uint32_t rotation) {
    if (calibration->fed == correlations && calibration->fed_rotation == rotation)
        return &calibration->feedback;
    gb_feedback_free(&calibration->feedback);
    calibration->fed = NULL;
    if (!gb_correlations_feedback(correlations, rotation, gb_export_threads(), &calibration->feedback))
        return NULL;
    calibration->fed = correlations;
    calibration->fed_rotation = rotation;
    return &calibration->feedback;
}

gumbel_status gb_calibration_check(const gumbel_calibration *calibration, gumbel_error *error) {
    if (calibration->has_failed)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a calibration of %zu weights and more",
                       calibration->weight_count);
    return GUMBEL_OK;
}
