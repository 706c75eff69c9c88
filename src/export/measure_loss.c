/* SPDX-License-Identifier: Apache-2.0 */
#include "export/measure_loss.h"

#include "base/memory.h"
#include "export/parallel.h"

enum { SAMPLED_ROWS = 64 };

typedef struct loss_work {
    const gb_measured_matrix *matrix;
    const gb_format *format;
    gb_quantize_method method;
    gb_planes planes; /* of one row */
    uint64_t samples;
    float *values; /* of each thread a row and what it has become */
    uint8_t *data; /* of each thread a quantized row */
    uint64_t data_bytes;
    double errors[SAMPLED_ROWS], powers[SAMPLED_ROWS];
} loss_work;

static double power_of(const gb_measured_matrix *matrix, const float *weights) {
    double power = 0;
    if (matrix->correlations)
        return gb_correlations_power(matrix->correlations, weights);
    for (uint64_t i = 0; i < matrix->columns; i++)
        power += (double)weights[i] * (double)weights[i];
    return power;
}

/* Replaces values by what they are in the format. */
static bool round_row(const loss_work *work, uint8_t *data, float *values) {
    const uint64_t columns = work->matrix->columns;
    const uint32_t rotation = work->matrix->source->rotation;
    const gb_quantized_row to = gb_quantized_row_in(work->format, &work->planes, 0, data, data, 0);
    if (rotation > 0)
        gb_rotate_row(values, columns, rotation);
    if (!gb_quantize_row(work->method, work->format, values, columns, &to))
        return false;
    gb_format_dequantize(work->format, &work->planes, data, 0, 0, columns, values);
    if (rotation > 0) /* the rotation is its own inverse */
        gb_rotate_row(values, columns, rotation);
    return true;
}

static void measure_row(loss_work *work, uint64_t sample, uint8_t *data, float *values) {
    const gb_measured_matrix *matrix = work->matrix;
    const uint64_t columns = matrix->columns, row = sample * matrix->rows / work->samples;
    float *rounded = values + columns;
    gb_read_source_row(matrix->source, columns, row, values);
    gb_read_source_row(matrix->source, columns, row, rounded);
    work->errors[sample] = work->powers[sample] = 0;
    if (!round_row(work, data, rounded))
        return;
    for (uint64_t i = 0; i < columns; i++)
        rounded[i] -= values[i];
    work->errors[sample] = power_of(matrix, rounded);
    work->powers[sample] = power_of(matrix, values);
}

static void measure_rows(void *user, unsigned thread, size_t first, size_t end) {
    loss_work *work = user;
    for (size_t i = first; i < end; i++)
        measure_row(work, i, work->data + thread * work->data_bytes,
                    work->values + thread * 2 * work->matrix->columns);
}

static double loss_of(const loss_work *work) {
    double error = 0, power = 0;
    for (uint64_t i = 0; i < work->samples; i++) {
        error += work->errors[i];
        power += work->powers[i];
    }
    return power > 0 ? error / power : 0;
}

static bool reserve(loss_work *work, unsigned threads) {
    if (!gb_format_planes(work->format, 1, work->matrix->columns, &work->planes))
        return false;
    work->data_bytes = (work->planes.size + GB_PLANE_ALIGNMENT - 1) / GB_PLANE_ALIGNMENT * GB_PLANE_ALIGNMENT;
    work->values = gb_allocate((size_t)work->matrix->columns * 2 * threads, sizeof *work->values);
    work->data = gb_allocate_aligned((size_t)work->data_bytes, threads);
    return work->values && work->data;
}

bool gb_measure_loss(const gb_measured_matrix *matrix, const gb_format *format, gb_quantize_method method,
                     unsigned threads, double *loss) {
    loss_work work = {.matrix = matrix, .format = format, .method = method};
    work.samples = matrix->rows < SAMPLED_ROWS ? matrix->rows : SAMPLED_ROWS;
    const bool is_reserved = reserve(&work, threads);
    if (is_reserved) {
        gb_parallel_for(threads, (size_t)work.samples, measure_rows, &work);
        *loss = loss_of(&work);
    }
    gb_free(work.values);
    gb_free(work.data);
    return is_reserved;
}
