/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers of two to four ranks, threads with a device each: parts that are sent and parts that are read where
 * they lie, one after the other, and a rank that does not come.
 */
#include "backends/cuda/exchange/exchange.h"
#include "backends/threads/team.h"
#include "cuda/launching.h"
#include "support/assertions.h"

enum { MOST_RANKS = 4, ARENA_FLOATS = 3 << 18, ROUNDS = 3 };

/* One gather. */
typedef struct shape {
    int32_t rank;
    size_t dims[3];
    int64_t sections;
} shape;

/* Around the size from which on parts are read where they lie; rows that are no whole float4, too. */
static const shape shapes[] = {
    {2, {1, 1, 1}, 1},     {2, {3, 6, 1}, 2},     {2, {1, 5376, 1}, 1},
    {2, {64, 255, 1}, 1},  {2, {1, 16384, 1}, 4}, {2, {65, 256, 1}, 1},
    {2, {257, 129, 1}, 1}, {3, {40, 8, 96}, 2},   {2, {2, 5, 1}, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* A rank's. Copies from and to other memory of the host, and reserving some, would wait for the device and
 * keep ranks that share it from launching. */
typedef struct memory {
    float *arena, *host;
    cudaStream_t stream;
} memory;

typedef struct group {
    uint32_t ranks, devices;
    gb_meeting *meeting;
    void (*work)(gb_rank rank, gb_cuda_exchange *exchange, const memory *m);
} group;

/* The numbers of a rank's part differ from all others of the round. */
static float number(uint32_t rank, unsigned round, size_t i) {
    return (float)(i % 65536) + 65536.0f * (float)(rank + MOST_RANKS * (round % 8));
}

static size_t elements_of(const shape *s) {
    return s->dims[0] * s->dims[1] * (s->rank == 3 ? s->dims[2] : 1);
}

static gb_cuda_tensor tensor_at(float *data, const shape *s, size_t times) {
    gb_cuda_tensor tensor = {.data = data, .dtype = GB_F32, .rank = s->rank};
    memcpy(tensor.dims, s->dims, sizeof s->dims);
    tensor.dims[s->rank - 1] *= times;
    return tensor;
}

static void check(const shape *s, uint32_t ranks, unsigned round, const float *y) {
    const size_t width = s->dims[s->rank - 1] / (size_t)s->sections, count = elements_of(s);
    for (uint32_t r = 0; r < ranks; r++)
        for (size_t i = 0; i < count; i++)
            if (y[(i / width * ranks + r) * width + i % width] != number(r, round, i))
                fail_msg("rank %u of %u: number %zu of %zu is wrong in round %u", r, ranks, i, count, round);
}

/* x, then y, in the arena, as far in as another gather's are not. */
static void gather(const shape *s, gb_rank rank, const gb_cuda_exchange *exchange, const memory *m,
                   unsigned round) {
    float *const arena = m->arena, *const own = m->host;
    const cudaStream_t stream = m->stream;
    const size_t count = elements_of(s);
    for (size_t i = 0; i < count; i++)
        own[i] = number(rank.index, round, i);
    assert_cuda(cudaMemcpyAsync(arena, own, count * sizeof *own, cudaMemcpyHostToDevice, stream));
    const gb_cuda_tensor x = tensor_at(arena, s, 1), y = tensor_at(arena + ARENA_FLOATS / 4, s, rank.count);
    gb_node node = {
        .op = GB_OP_ALL_GATHER,
        .attribute_count = 2,
        .attributes = {gb_int(GB_ATTRIBUTE_RANKS, rank.count), gb_int(GB_ATTRIBUTE_SECTIONS, s->sections)}};
    gb_cuda_scratch scratch = {.exchange = exchange};
    gb_cuda_launch_list launches = {0};
    gb_cuda_all_gather(&(gb_cuda_call){
        .node = &node, .operands = {&x}, .results = {&y}, .scratch = &scratch, .launches = &launches});
    assert_cuda(gb_cuda_launch_list_run(&launches, stream));
    /* The next gather's input takes the place of this one's while others may still read it. */
    assert_cuda(
        cudaMemcpyAsync(own, y.data, count * rank.count * sizeof *own, cudaMemcpyDeviceToHost, stream));
    assert_cuda(cudaStreamSynchronize(stream));
    check(s, rank.count, round, own);
    gb_cuda_launch_list_destroy(&launches);
}

static void gather_all(gb_rank rank, gb_cuda_exchange *exchange, const memory *m) {
    for (unsigned round = 0; round < ROUNDS * SHAPES; round++)
        gather(&shapes[round % SHAPES], rank, exchange, m, round);
}

/* ---- Ranks --------------------------------------------------------------------------------------------- */

static memory new_memory(void) {
    memory m = {0};
    void *arena, *host;
    assert_cuda(cudaStreamCreateWithFlags(&m.stream, cudaStreamNonBlocking));
    assert_cuda(cudaMalloc(&arena, ARENA_FLOATS * sizeof(float)));
    assert_cuda(cudaMemset(arena, 0, ARENA_FLOATS * sizeof(float)));
    assert_cuda(cudaMallocHost(&host, ARENA_FLOATS * sizeof(float)));
    m.arena = arena;
    m.host = host;
    return m;
}

static void run_rank(void *user, unsigned index) {
    const group *g = user;
    const gb_rank rank = {index, g->ranks, g->meeting};
    const int device = (int)(index % g->devices);
    gb_cuda_exchange exchange;
    gumbel_error error;
    assert_cuda(cudaSetDevice(device));
    const memory m = new_memory();
    assert_ok(gb_cuda_exchange_create(&rank, device, m.arena, &exchange, &error), &error);
    g->work(rank, &exchange, &m);
    gb_rank_meet(&rank); /* nobody reads the arena any more */
    gb_cuda_exchange_destroy(&exchange);
    assert_cuda(cudaStreamDestroy(m.stream));
    assert_cuda(cudaFree(m.arena));
    assert_cuda(cudaFreeHost(m.host));
}

static void run_group(group *g) {
    gb_team *team;
    gumbel_error error;
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        print_message("this machine has no CUDA device\n");
        skip();
    }
    g->devices = (uint32_t)devices;
    assert_ok(gb_meeting_create(g->ranks, &g->meeting, &error), &error);
    assert_ok(gb_team_create(g->ranks, &team, &error), &error);
    gb_team_run(team, run_rank, g);
    gb_team_destroy(team);
    gb_meeting_destroy(g->meeting);
}

static void all_ranks_get_all_parts(void **unused) {
    (void)unused;
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++)
        run_group(&(group){.ranks = ranks, .work = gather_all});
}

/* ---- One that does not come ---------------------------------------------------------------------------- */

static void come_alone(gb_rank rank, gb_cuda_exchange *exchange, const memory *m) {
    for (size_t i = 0; i < SHAPES && rank.index == 0; i++) {
        const gb_cuda_tensor x = tensor_at(m->arena, &shapes[i], 1),
                             y = tensor_at(m->arena + ARENA_FLOATS / 4, &shapes[i], rank.count);
        gb_node node = {.op = GB_OP_ALL_GATHER,
                        .attribute_count = 1,
                        .attributes = {gb_int(GB_ATTRIBUTE_RANKS, rank.count)}};
        gb_cuda_scratch scratch = {.exchange = exchange};
        gb_cuda_exchange_stop(exchange);
        run_op(gb_cuda_all_gather,
               &(gb_cuda_call){.node = &node, .operands = {&x}, .results = {&y}, .scratch = &scratch});
        assert_cuda(cudaStreamSynchronize(NULL));
    }
}

static void who_waits_can_be_stopped(void **unused) {
    (void)unused;
    run_group(&(group){.ranks = 2, .work = come_alone});
}

/* Where ranks share a device, one that loads a kernel would wait for another one's kernel, which waits for
 * it. */
int main(void) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_get_all_parts),
        cmocka_unit_test(who_waits_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
