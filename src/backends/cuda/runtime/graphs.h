/* SPDX-License-Identifier: Apache-2.0
 *
 * Captured decode steps, a CUDA graph for each size of a batch and each part of its step.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_GRAPHS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_GRAPHS_H

#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

enum { GB_CUDA_MOST_GRAPHS = 128 };

/* A step whose masks are still being made is launched in two parts. */
typedef enum gb_cuda_step_part {
    GB_CUDA_WHOLE,
    GB_CUDA_BEFORE_MASKS, /* up to the first launch that reads them */
    GB_CUDA_FROM_MASKS
} gb_cuda_step_part;

typedef struct gb_cuda_graph {
    uint32_t tokens, rows, runs;
    gb_cuda_step_part part;
    cudaGraphExec_t instance; /* NULL: not captured */
    bool has_failed;          /* to be captured, once */
    uint64_t last_use;        /* number of the search that found it last */
} gb_cuda_graph;

typedef struct gb_cuda_graphs {
    gb_cuda_graph graphs[GB_CUDA_MOST_GRAPHS];
    uint32_t count;
    uint64_t searches;
} gb_cuda_graphs;

/* The graph of a batch's size, captured or not. Where there are too many sizes, it takes the place of the one
 * that was not needed for longest, whose last steps may still run. */
gb_cuda_graph *gb_cuda_graphs_find(gb_cuda_graphs *graphs, uint32_t tokens, uint32_t rows, uint32_t runs,
                                   gb_cuda_step_part part);

/* Captures what enqueue puts into the stream and uploads it. Errors: BACKEND. */
gumbel_status gb_cuda_graph_capture(gb_cuda_graph *graph, cudaStream_t stream,
                                    gumbel_status (*enqueue)(void *user, gumbel_error *error), void *user,
                                    gumbel_error *error);

void gb_cuda_graphs_destroy(gb_cuda_graphs *graphs);

#endif
