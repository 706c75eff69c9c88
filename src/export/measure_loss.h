/* SPDX-License-Identifier: Apache-2.0
 *
 * What products with a matrix lose by a format: the squared error of the products over their squares.
 */
#ifndef GUMBEL_EXPORT_MEASURE_LOSS_H
#define GUMBEL_EXPORT_MEASURE_LOSS_H

#include "export/calibrate/correlations.h"
#include "export/quantize/write_quantized.h"

/* A matrix with data, of which rows at even distances are measured. */
typedef struct gb_measured_matrix {
    const gb_quantized_source *source;
    const gb_correlations
        *correlations; /* of what products take in; NULL: all inputs alike, each by itself */
    uint64_t rows, columns;
} gb_measured_matrix;

/* Each weight is rounded by itself. Rows that the format cannot hold are left out: writing refuses them. The
 * loss does not depend on the number of threads. False: no memory. */
bool gb_measure_loss(const gb_measured_matrix *matrix, const gb_format *format, gb_quantize_method method,
                     unsigned threads, double *loss);

#endif
