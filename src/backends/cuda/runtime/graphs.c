/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/graphs.h"

#include "backends/cuda/runtime/device.h"

/* A place for another graph: a new one, or that of the least recently used. */
static gb_cuda_graph *free_place(gb_cuda_graphs *graphs) {
    if (graphs->count < GB_CUDA_MOST_GRAPHS)
        return &graphs->graphs[graphs->count++];
    gb_cuda_graph *oldest = &graphs->graphs[0];
    for (uint32_t i = 1; i < graphs->count; i++)
        if (graphs->graphs[i].last_use < oldest->last_use)
            oldest = &graphs->graphs[i];
    if (oldest->instance)
        cudaGraphExecDestroy(oldest->instance); /* frees it when it has run */
    return oldest;
}

static gb_cuda_graph *find(gb_cuda_graphs *graphs, uint32_t tokens, uint32_t rows, uint32_t runs,
                           gb_cuda_step_part part) {
    for (uint32_t i = 0; i < graphs->count; i++)
        if (graphs->graphs[i].tokens == tokens && graphs->graphs[i].rows == rows &&
            graphs->graphs[i].runs == runs && graphs->graphs[i].part == part)
            return &graphs->graphs[i];
    gb_cuda_graph *created = free_place(graphs);
    *created = (gb_cuda_graph){.tokens = tokens, .rows = rows, .runs = runs, .part = part};
    return created;
}

gb_cuda_graph *gb_cuda_graphs_find(gb_cuda_graphs *graphs, uint32_t tokens, uint32_t rows, uint32_t runs,
                                   gb_cuda_step_part part) {
    gb_cuda_graph *found = find(graphs, tokens, rows, runs, part);
    found->last_use = ++graphs->searches;
    return found;
}

gumbel_status gb_cuda_graph_capture(gb_cuda_graph *graph, cudaStream_t stream,
                                    gumbel_status (*enqueue)(void *user, gumbel_error *error), void *user,
                                    gumbel_error *error) {
    static const char doing[] = "capturing a step";
    cudaGraph_t captured = NULL;
    /* Relaxed: a kernel that is launched for the first time is loaded meanwhile. */
    GB_TRY(gb_cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), doing, error));
    gumbel_status status = enqueue(user, error);
    cudaError_t result = cudaStreamEndCapture(stream, &captured);
    if (status == GUMBEL_OK)
        status = gb_cuda_check(result, doing, error);
    if (status == GUMBEL_OK)
        status = gb_cuda_check(cudaGraphInstantiate(&graph->instance, captured, 0), doing, error);
    if (status == GUMBEL_OK)
        status = gb_cuda_check(cudaGraphUpload(graph->instance, stream), doing, error);
    if (captured)
        cudaGraphDestroy(captured);
    if (status != GUMBEL_OK)
        cudaGetLastError(); /* it would be found after the next launch */
    return status;
}

void gb_cuda_graphs_destroy(gb_cuda_graphs *graphs) {
    for (uint32_t i = 0; i < graphs->count; i++)
        if (graphs->graphs[i].instance)
            cudaGraphExecDestroy(graphs->graphs[i].instance);
    graphs->count = 0;
}
