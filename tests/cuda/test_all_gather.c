/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers of two to four ranks, threads with a device each: parts that are sent, read where they lie and
 * written where they are wanted, one after the other; rounded rows; and a rank that does not come.
 */
#include "backends/cuda/exchange/exchange.h"
#include "backends/cuda/lowering/steps.h"
#include "backends/threads/team.h"
#include "cuda/launching.h"
#include "support/assertions.h"

enum { MOST_RANKS = 4, ARENA_FLOATS = 3 << 19, ROUNDS = 3, IN_A_ROW = 3 };

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

/* x, then y, in the arena, as far in as another gather's are not. Gathered several times without the host
 * between, so that a rank may be ahead. */
static void gather(const shape *s, gb_rank rank, const gb_cuda_exchange *exchange, const memory *m,
                   unsigned round) {
    float *const arena = m->arena, *const own = m->host;
    const cudaStream_t stream = m->stream;
    const size_t count = elements_of(s);
    for (size_t i = 0; i < count; i++)
        own[i] = number(rank.index, round, i);
    assert_cuda(cudaMemcpyAsync(arena, own, count * sizeof *own, cudaMemcpyHostToDevice, stream));
    const gb_cuda_tensor x = tensor_at(arena, s, 1),
                         y = tensor_at(arena + ARENA_FLOATS / 4 * (1 + round % 2), s, rank.count);
    gb_node node = {
        .op = GB_OP_ALL_GATHER,
        .attribute_count = 2,
        .attributes = {gb_int(GB_ATTRIBUTE_RANKS, rank.count), gb_int(GB_ATTRIBUTE_SECTIONS, s->sections)}};
    gb_cuda_scratch scratch = {.exchange = exchange};
    gb_cuda_launch_list launches = {0};
    const gb_cuda_call call = {.node = &node,
                               .operands = {&x},
                               .results = {&y},
                               .scratch = &scratch,
                               .launches = &launches,
                               .is_free_since_exchange = round % 2};
    for (unsigned i = 0; i < IN_A_ROW; i++)
        gb_cuda_all_gather(&call);
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
    assert_cuda(cudaStreamSynchronize(m.stream));
    gb_cuda_exchange_destroy(&rank, &exchange);
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

/* ---- Rounded rows -------------------------------------------------------------------------------------- */

/* More than there are blocks for (that once: it takes the emulated device long), those of a prompt, and few
 * that several blocks share. */
static const shape rounded_shapes[] = {{2, {GB_CUDA_ROW_BLOCKS + 1, 128}, 1},
                                       {2, {3, 128}, 1},
                                       {2, {70, 256}, 1},
                                       {2, {2, 4096}, 1},
                                       {2, {17, 4224}, 1}};
enum { ROUNDED_SHAPES = sizeof rounded_shapes / sizeof *rounded_shapes, LAYOUTS = 2 };

/* Runs the first launches of a list, which it empties. */
static void run_launches(gb_cuda_launch_list *launches, uint32_t count, cudaStream_t stream) {
    launches->count = count;
    assert_cuda(gb_cuda_launch_list_run(launches, stream));
    assert_cuda(cudaStreamSynchronize(stream));
    gb_cuda_launch_list_destroy(launches);
}

/* Rounds rows of which a rank has the columns x. */
static void round_for_ranks(const gb_cuda_tensor *x, const gb_cuda_tensor *y, gb_rank rank,
                            const gb_cuda_exchange *exchange, const gb_cuda_prepared *rows,
                            cudaStream_t stream) {
    gb_node node = {.op = GB_OP_ALL_GATHER,
                    .attribute_count = 2,
                    .attributes = {gb_int(GB_ATTRIBUTE_RANKS, rank.count), gb_int(GB_ATTRIBUTE_SECTIONS, 1)}};
    gb_cuda_scratch scratch = {.exchange = exchange};
    gb_cuda_launch_list launches = {0};
    const gb_cuda_call call = {.node = &node,
                               .operands = {x},
                               .results = {y},
                               .scratch = &scratch,
                               .epilogue = rows,
                               .rounds_for_ranks = true,
                               .launches = &launches};
    const gb_cuda_call *const part = &call;
    assert_true(gb_cuda_gather_has_epilogue(&(gb_cuda_problem){.parts = &part, .count = 1}));
    gb_cuda_all_gather_rounded(&call);
    run_launches(&launches, 1, stream);
}

/* Rounds rows as a product does that has them whole; the product itself is not run. */
static void round_by_product(const gb_cuda_tensor *x, const gb_cuda_prepared *rows, cudaStream_t stream) {
    gb_node node = {.op = GB_OP_LINEAR,
                    .attribute_count = 2,
                    .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_TOKEN),
                                   gb_int(GB_ATTRIBUTE_ROTATION, rows->rotation)}};
    const gb_cuda_tensor weight = {
        .dtype = GB_QUANTIZED, .rank = 2, .dims = {8, x->dims[1]}, .format = {GB_FORMAT_PROGRESSIVE, 4}};
    gb_cuda_launch_list launches = {0};
    gb_cuda_scratch scratch = {0};
    gb_cuda_gemm_int8(&(gb_cuda_call){.node = &node,
                                      .operands = {x, &weight},
                                      .results = {x},
                                      .scratch = &scratch,
                                      .input = rows,
                                      .prepares_input = true,
                                      .launches = &launches});
    run_launches(&launches, 1, stream);
}

/* Both ways lie in the arena: the rows of all ranks, those that were rounded whole, and the inputs. */
static void round_both_ways(const shape *s, gb_rank rank, const gb_cuda_exchange *exchange, const memory *m,
                            gb_cuda_layout layout) {
    float *const of_ranks = m->arena, *const alone = m->arena + ARENA_FLOATS / 4,
                 *const own = m->arena + ARENA_FLOATS / 2;
    const size_t width = s->dims[1], count = elements_of(s), bytes = ARENA_FLOATS / 4 * sizeof(float);
    const gb_cuda_tensor part = tensor_at(own, s, 1), whole = tensor_at(own + count, s, rank.count);
    gb_cuda_prepared rows = {.layout = layout, .rotation = 128, .as = &whole, .data = of_ranks};
    for (size_t i = 0; i < count * rank.count; i++) {
        const size_t row = i / (width * rank.count), column = i % (width * rank.count);
        const float value = (float)((i * 2654435761u >> 9) % 2001) - 1000.0f;
        m->host[count + i] = value;
        if (column / width == rank.index)
            m->host[row * width + column % width] = value;
    }
    assert_true(count * (rank.count + 1) <= ARENA_FLOATS / 2);
    assert_cuda(cudaMemsetAsync(m->arena, 0, 2 * bytes, m->stream));
    assert_cuda(cudaMemcpyAsync(own, m->host, count * (rank.count + 1) * sizeof(float),
                                cudaMemcpyHostToDevice, m->stream));
    assert_cuda(cudaStreamSynchronize(m->stream));
    gb_rank_meet(&rank); /* nobody clears what another has written */
    round_for_ranks(&part, &whole, rank, exchange, &rows, m->stream);
    rows.data = alone;
    round_by_product(&whole, &rows, m->stream);
    assert_cuda(cudaMemcpyAsync(m->host, m->arena, 2 * bytes, cudaMemcpyDeviceToHost, m->stream));
    assert_cuda(cudaStreamSynchronize(m->stream));
    if (memcmp(m->host, m->host + ARENA_FLOATS / 4, bytes) != 0)
        fail_msg("rank %u of %u: %zu rows of %zu columns each differ", rank.index, rank.count, s->dims[0],
                 width);
    gb_rank_meet(&rank);
}

static void round_all(gb_rank rank, gb_cuda_exchange *exchange, const memory *m) {
    for (unsigned i = rank.count == 2 ? 1 : LAYOUTS; i < ROUNDED_SHAPES * LAYOUTS; i++)
        round_both_ways(&rounded_shapes[i / LAYOUTS], rank, exchange, m,
                        i % LAYOUTS ? GB_CUDA_BYTES_BY_LANES : GB_CUDA_BYTES_SWIZZLED);
}

static void rows_are_rounded_as_alone(void **unused) {
    (void)unused;
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++)
        run_group(&(group){.ranks = ranks, .work = round_all});
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

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
        *exchange->stops[exchange->rank] = 1;
        run_op(gb_cuda_all_gather,
               &(gb_cuda_call){.node = &node, .operands = {&x}, .results = {&y}, .scratch = &scratch});
        assert_cuda(cudaStreamSynchronize(NULL));
    }
    for (size_t i = 0; i < ROUNDED_SHAPES && rank.index == 0; i++) {
        const gb_cuda_tensor x = tensor_at(m->arena, &rounded_shapes[i], 1),
                             y = tensor_at(m->arena, &rounded_shapes[i], rank.count);
        const gb_cuda_prepared rows = {
            .layout = GB_CUDA_BYTES_SWIZZLED, .as = &y, .data = m->arena + ARENA_FLOATS / 4};
        round_for_ranks(&x, &y, rank, exchange, &rows, m->stream);
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
        cmocka_unit_test(rows_are_rounded_as_alone),
        cmocka_unit_test(who_waits_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
