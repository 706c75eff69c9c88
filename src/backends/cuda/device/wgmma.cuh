/* SPDX-License-Identifier: Apache-2.0
 *
 * The asynchronous product of a warpgroup of 128 threads (wgmma, sm_90a): 64 rows of a, in registers or
 * shared memory, times N rows of b, in shared memory, 16 columns of both, added to float32 sums in registers;
 * of bytes 32 columns, added to int32 sums. Warp w has a's rows 16 w .. 16 w + 15 as mma.cuh's a, and of
 * every 8 rows of b sums as mma.cuh's c. A row of b is 64 columns, 128 bytes; rows follow one another from a
 * multiple of 1,024 bytes on, swizzled: 16-byte piece p of row r stands at place p ^ (r % 8). So do rows of a
 * in shared memory. b may also lie by columns: 64 rows of b side by side, columns below one another.
 *
 * Between start_products and wait_for_products nothing may touch the sums or a.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_WGMMA_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_WGMMA_CUH

#include "backends/cuda/device/async_copy.cuh"
#include "backends/cuda/device/mma.cuh"

/* Whether this pass compiles for a chip that has it. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define GB_HAS_WGMMA 1
#endif

namespace gb_cuda {

enum { WARPGROUP = 128, B_ROW_BYTES = 128, B_PIECE_BYTES = 16, B_ALIGNMENT = 1024 };

#if defined(__CUDACC__)

/* b as an operand: its address, 1,024 bytes from 8 rows to the next ones, pieces exchanged in 128 bytes. A
 * step of 16 columns adds B_STEP. */
typedef uint64_t b_operand;
enum { B_STEP = 32 >> 4 };

__device__ inline b_operand operand_b(const void *rows) {
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 16 |
           (shared_address(rows) & 0x3ffff) >> 4;
}

/* b by columns: of every 64 rows, part_bytes behind the 64 before, 16 columns from the given one on, which is
 * a multiple of 8. */
__device__ inline b_operand columns_b(const void *columns, unsigned first, unsigned part_bytes) {
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)(part_bytes >> 4) << 16 |
           ((shared_address(columns) + first * B_ROW_BYTES) & 0x3ffff) >> 4;
}

/* The first place in shared memory from there on where rows of b may begin. */
__device__ inline uint8_t *align_b(uint8_t *shared) {
    return shared + (0u - shared_address(shared)) % B_ALIGNMENT;
}

/* Before the first of some products: registers are ready. */
__device__ inline void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* After the last one: they are a batch. */
__device__ inline void end_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most that many batches are in flight. */
template <int BATCHES>
__device__ inline void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(BATCHES) : "memory");
}

/* Gives the warpgroup that many registers a thread: fewer, or more that another one gave back. */
template <int REGISTERS>
__device__ inline void give_registers_back() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS>
__device__ inline void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* The registers of the sums in an instruction's text. */
#define GB_REGISTERS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define GB_REGISTERS_16 GB_REGISTERS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define GB_REGISTERS_32                                                                                      \
    GB_REGISTERS_16 ", %16, %17, %18, %19, %20, %21, %22, %23"                                               \
                    ", %24, %25, %26, %27, %28, %29, %30, %31"
#define GB_REGISTERS_64                                                                                      \
    GB_REGISTERS_32                                                                                          \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"                       \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GB_REGISTERS_96                                                                                      \
    GB_REGISTERS_64                                                                                          \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"                       \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define GB_REGISTERS_128                                                                                     \
    GB_REGISTERS_96                                                                                          \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"           \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define GB_EIGHT_SUMS(kind, i)                                                                               \
    kind(sums[i]), kind(sums[i + 1]), kind(sums[i + 2]), kind(sums[i + 3]), kind(sums[i + 4]),               \
        kind(sums[i + 5]), kind(sums[i + 6]), kind(sums[i + 7])
#define GB_SUMS_8(kind) GB_EIGHT_SUMS(kind, 0)
#define GB_SUMS_16(kind) GB_EIGHT_SUMS(kind, 0), GB_EIGHT_SUMS(kind, 8)
#define GB_SUMS_32(kind) GB_SUMS_16(kind), GB_EIGHT_SUMS(kind, 16), GB_EIGHT_SUMS(kind, 24)
#define GB_SUMS_64(kind)                                                                                     \
    GB_SUMS_32(kind), GB_EIGHT_SUMS(kind, 32), GB_EIGHT_SUMS(kind, 40), GB_EIGHT_SUMS(kind, 48),             \
        GB_EIGHT_SUMS(kind, 56)
#define GB_SUMS_96(kind)                                                                                     \
    GB_SUMS_64(kind), GB_EIGHT_SUMS(kind, 64), GB_EIGHT_SUMS(kind, 72), GB_EIGHT_SUMS(kind, 80),             \
        GB_EIGHT_SUMS(kind, 88)
#define GB_SUMS_128(kind)                                                                                    \
    GB_SUMS_96(kind), GB_EIGHT_SUMS(kind, 96), GB_EIGHT_SUMS(kind, 104), GB_EIGHT_SUMS(kind, 112),           \
        GB_EIGHT_SUMS(kind, 120)

/* sums += a b */
template <int N>
__device__ inline void start_products(float (&sums)[N / 2], const uint32_t (&a)[4], b_operand b);

/* The same with b by columns. */
template <int N>
__device__ inline void start_products_by_columns(float (&sums)[N / 2], const uint32_t (&a)[4], b_operand b);

/* The same with a in shared memory, too. */
template <int N>
__device__ inline void start_products_of(float (&sums)[N / 2], b_operand a, b_operand b);

/* sums += a b of bytes, those of a unsigned; a step has 32 columns, and B_STEP leads to the next one. */
template <int N>
__device__ inline void start_byte_products(int32_t (&sums)[N / 2], const uint32_t (&a)[4], b_operand b);

/* COUNT sums; at_a and at_b: the numbers that a and b have behind them in the instruction's text. */
#define GB_START(function, N, type, COUNT, kind, shape, at_a, at_b, flags)                                   \
    template <>                                                                                              \
    __device__ inline void function<N>(type(&sums)[COUNT], const uint32_t(&a)[4], b_operand b) {             \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\nwgmma.mma_async.sync.aligned." shape       \
                     " {" GB_REGISTERS_##COUNT "}, {" at_a "}, " at_b ", add" flags ";\n}"                   \
                     : GB_SUMS_##COUNT(kind)                                                                 \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                  \
    }
GB_START(start_products, 64, float, 32, "+f", "m64n64k16.f32.bf16.bf16", "%32, %33, %34, %35", "%36",
         ", 1, 1, 0")
GB_START(start_products, 128, float, 64, "+f", "m64n128k16.f32.bf16.bf16", "%64, %65, %66, %67", "%68",
         ", 1, 1, 0")
GB_START(start_products, 192, float, 96, "+f", "m64n192k16.f32.bf16.bf16", "%96, %97, %98, %99", "%100",
         ", 1, 1, 0")
GB_START(start_products, 256, float, 128, "+f", "m64n256k16.f32.bf16.bf16", "%128, %129, %130, %131", "%132",
         ", 1, 1, 0")
GB_START(start_byte_products, 16, int32_t, 8, "+r", "m64n16k32.s32.u8.s8", "%8, %9, %10, %11", "%12", "")
GB_START(start_byte_products, 64, int32_t, 32, "+r", "m64n64k32.s32.u8.s8", "%32, %33, %34, %35", "%36", "")
GB_START(start_byte_products, 128, int32_t, 64, "+r", "m64n128k32.s32.u8.s8", "%64, %65, %66, %67", "%68", "")
GB_START(start_byte_products, 192, int32_t, 96, "+r", "m64n192k32.s32.u8.s8", "%96, %97, %98, %99", "%100",
         "")
GB_START(start_byte_products, 256, int32_t, 128, "+r", "m64n256k32.s32.u8.s8", "%128, %129, %130, %131",
         "%132", "")

GB_START(start_products_by_columns, 128, float, 64, "+f", "m64n128k16.f32.bf16.bf16", "%64, %65, %66, %67",
         "%68", ", 1, 1, 1")
GB_START(start_products_by_columns, 256, float, 128, "+f", "m64n256k16.f32.bf16.bf16",
         "%128, %129, %130, %131", "%132", ", 1, 1, 1")

#define GB_START_OF(N, COUNT, shape, at_a, at_b)                                                             \
    template <>                                                                                              \
    __device__ inline void start_products_of<N>(float(&sums)[COUNT], b_operand a, b_operand b) {             \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\nwgmma.mma_async.sync.aligned." shape       \
                     " {" GB_REGISTERS_##COUNT "}, " at_a ", " at_b ", add, 1, 1, 0, 0;\n}"                  \
                     : GB_SUMS_##COUNT("+f")                                                                 \
                     : "l"(a), "l"(b));                                                                      \
    }
GB_START_OF(32, 16, "m64n32k16.f32.bf16.bf16", "%16", "%17")
GB_START_OF(64, 32, "m64n64k16.f32.bf16.bf16", "%32", "%33")

#undef GB_START_OF
#undef GB_START
#undef GB_EIGHT_SUMS
#undef GB_SUMS_8
#undef GB_SUMS_16
#undef GB_SUMS_32
#undef GB_SUMS_64
#undef GB_SUMS_96
#undef GB_SUMS_128
#undef GB_REGISTERS_8
#undef GB_REGISTERS_16
#undef GB_REGISTERS_32
#undef GB_REGISTERS_64
#undef GB_REGISTERS_96
#undef GB_REGISTERS_128

#else

/* Emulated: products are computed when they are started. */
struct b_operand {
    const uint8_t *rows;
    unsigned column;         /* of the 16 columns the first */
    unsigned part_bytes = 0; /* of 64 rows, where it lies by columns */
};
enum { B_STEP = 16 };

inline b_operand operand_b(const void *rows) {
    return {static_cast<const uint8_t *>(rows), 0};
}
inline b_operand columns_b(const void *columns, unsigned first, unsigned part_bytes) {
    return {static_cast<const uint8_t *>(columns), first, part_bytes};
}
inline b_operand operator+(b_operand b, unsigned columns) {
    return {b.rows, b.column + columns, b.part_bytes};
}
/* Where a number of a row in lines of 64 lies. */
inline const uint8_t *number_of(const uint8_t *rows, unsigned row, unsigned column) {
    return rows + row * B_ROW_BYTES + (column / 8 ^ row % 8) * B_PIECE_BYTES + column % 8 * 2;
}
inline float bf16_at(const uint8_t *number) {
    uint16_t bits;
    memcpy(&bits, number, sizeof bits);
    return low_bf16(bits);
}
inline uint8_t *align_b(uint8_t *shared) {
    return shared;
}
inline void begin_products() {}
inline void end_products() {}
template <int BATCHES>
void wait_for_products() {}
template <int REGISTERS>
void give_registers_back() {}
template <int REGISTERS>
void take_registers() {}

/* What the four lanes that have the lane's rows of a have of it. */
struct rows_of_a {
    uint32_t of_lane[4][4];

    explicit rows_of_a(const uint32_t (&mine)[4]) {
        const uint8_t *all = emulated::exchange(mine, sizeof mine);
        for (unsigned i = 0; i < 4; i++)
            memcpy(of_lane[i], all + (emulated::lane() / 4 * 4 + i) * emulated::EXCHANGE_BYTES,
                   sizeof of_lane[i]);
    }
};

template <int N>
void start_products(float (&sums)[N / 2], const uint32_t (&a)[4], b_operand b) {
    const rows_of_a rows(a);
    const unsigned lane = emulated::lane();
    for (unsigned i = 0; i < N / 2; i++) {
        const unsigned row = i / 4 * 8 + lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 16; k += 2) {
            uint32_t y;
            const unsigned piece = (b.column + k) / 8 ^ row % 8;
            memcpy(&y, b.rows + row * B_ROW_BYTES + piece * B_PIECE_BYTES + k % 8 * 2, sizeof y);
            const uint32_t x = rows.of_lane[k % 8 / 2][i % 4 / 2 + k / 8 * 2];
            sums[i] += low_bf16(x) * low_bf16(y);
            sums[i] += high_bf16(x) * high_bf16(y);
        }
    }
}

/* What the lane adds to its sums: a_of gives a number of one of its two rows and of a column, b_of one of a
 * row of b. */
template <int N, typename First, typename Second>
void add_products(float (&sums)[N / 2], const First &a_of, const Second &b_of) {
    const unsigned lane = emulated::lane();
    for (unsigned i = 0; i < N / 2; i++)
        for (unsigned k = 0; k < 16; k++)
            sums[i] += a_of(i % 4 / 2, k) * b_of(i / 4 * 8 + lane % 4 * 2 + i % 2, k);
}

template <int N>
void start_products_by_columns(float (&sums)[N / 2], const uint32_t (&a)[4], b_operand b) {
    const rows_of_a rows(a);
    add_products<N>(
        sums,
        [&](unsigned below, unsigned k) {
            const uint32_t both = rows.of_lane[k % 8 / 2][below + k / 8 * 2];
            return k % 2 ? high_bf16(both) : low_bf16(both);
        },
        [&](unsigned row, unsigned k) {
            return bf16_at(number_of(b.rows + row / 64 * b.part_bytes, b.column + k, row % 64));
        });
}

template <int N>
void start_products_of(float (&sums)[N / 2], b_operand a, b_operand b) {
    const unsigned lane = emulated::lane(), first = threadIdx.x % WARPGROUP / WARP * 16 + lane / 4;
    add_products<N>(
        sums,
        [&](unsigned below, unsigned k) {
            return bf16_at(number_of(a.rows, first + below * 8, a.column + k));
        },
        [&](unsigned row, unsigned k) { return bf16_at(number_of(b.rows, row, b.column + k)); });
}

template <int N>
void start_byte_products(int32_t (&sums)[N / 2], const uint32_t (&a)[4], b_operand b) {
    const rows_of_a rows(a);
    const unsigned lane = emulated::lane();
    for (unsigned i = 0; i < N / 2; i++) {
        const unsigned row = i / 4 * 8 + lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 32; k++) {
            const unsigned at = b.column * 2 + k, piece = at / B_PIECE_BYTES ^ row % 8;
            const uint32_t x = rows.of_lane[k % 16 / 4][i % 4 / 2 + k / 16 * 2] >> (k % 4 * 8) & 0xff;
            sums[i] +=
                (int32_t)x * (int8_t)b.rows[row * B_ROW_BYTES + piece * B_PIECE_BYTES + at % B_PIECE_BYTES];
        }
    }
}

#endif

} // namespace gb_cuda

#endif
