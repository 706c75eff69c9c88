/* SPDX-License-Identifier: Apache-2.0
 *
 * Captured steps by size: each is found again, and of more sizes than there are places for the ones that were
 * needed last stay.
 */
#include "backends/cuda/runtime/graphs.h"
#include "cuda/device_memory.h"
#include "support/assertions.h"

enum { OTHERS = 40 };

static gb_cuda_graphs graphs;
static gumbel_error error;
static cudaStream_t stream;
static void *memory;

static gumbel_status enqueue(void *user, gumbel_error *failure) {
    (void)user;
    (void)failure;
    assert_cuda(cudaMemsetAsync(memory, 1, 4, stream));
    return GUMBEL_OK;
}

static gb_cuda_graph *find(uint32_t tokens) {
    return gb_cuda_graphs_find(&graphs, tokens, tokens, tokens, GB_CUDA_WHOLE);
}

static void capture(uint32_t tokens) {
    gb_cuda_graph *graph = find(tokens);
    assert_null(graph->instance);
    assert_ok(gb_cuda_graph_capture(graph, stream, enqueue, NULL, &error), &error);
    assert_non_null(graph->instance);
    assert_cuda(cudaGraphLaunch(graph->instance, stream));
}

static void latest_sizes_stay(void **unused) {
    (void)unused;
    for (uint32_t tokens = 1; tokens <= GB_CUDA_MOST_GRAPHS; tokens++)
        capture(tokens);
    assert_non_null(find(1)->instance); /* needed again */
    for (uint32_t i = 1; i <= OTHERS; i++)
        capture(GB_CUDA_MOST_GRAPHS + i);
    assert_int_equal(graphs.count, GB_CUDA_MOST_GRAPHS);
    assert_non_null(find(1)->instance);
    for (uint32_t tokens = 2 + OTHERS; tokens <= GB_CUDA_MOST_GRAPHS + OTHERS; tokens++)
        assert_non_null(find(tokens)->instance);
    capture(2); /* the one that had to go first */
}

static void parts_are_apart(void **unused) {
    (void)unused;
    gb_cuda_graph *whole = gb_cuda_graphs_find(&graphs, 500, 500, 500, GB_CUDA_WHOLE);
    assert_ptr_not_equal(whole, gb_cuda_graphs_find(&graphs, 500, 500, 500, GB_CUDA_BEFORE_MASKS));
    assert_ptr_not_equal(whole, gb_cuda_graphs_find(&graphs, 500, 500, 499, GB_CUDA_WHOLE));
    assert_ptr_equal(whole, gb_cuda_graphs_find(&graphs, 500, 500, 500, GB_CUDA_WHOLE));
}

int main(void) {
    need_device();
    assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    assert_cuda(cudaMalloc(&memory, 4));
    const struct CMUnitTest tests[] = {cmocka_unit_test(latest_sizes_stay),
                                       cmocka_unit_test(parts_are_apart)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gb_cuda_graphs_destroy(&graphs);
    cudaFree(memory);
    cudaStreamDestroy(stream);
    return failed;
}
