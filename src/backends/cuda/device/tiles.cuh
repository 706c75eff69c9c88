/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles in shared memory: asynchronous copies into them (cp.async), and loads of the operands of mma.cuh from
 * them (ldmatrix).
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_TILES_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_TILES_CUH

#include "backends/cuda/device/mma.cuh"

namespace gb_cuda {

/* Starts a copy of 16 bytes into shared memory, or of zeros where there is nothing, whatever `from` is. */
__device__ inline void copy_16(void *to, const void *from, bool is_there) {
#if defined(__CUDACC__)
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(__cvta_generic_to_global(from)), "r"(is_there ? 16 : 0)
        : "memory");
#else
    memset(to, 0, 16);
    if (is_there)
        memcpy(to, from, 16);
#endif
}

/* The same of 8 bytes. */
__device__ inline void copy_8(void *to, const void *from, bool is_there) {
#if defined(__CUDACC__)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(is_there ? 8 : 0)
                 : "memory");
#else
    memset(to, 0, 8);
    if (is_there)
        memcpy(to, from, 8);
#endif
}

/* The same of a float. */
__device__ inline void copy_4(float *to, const float *from, bool is_there) {
#if defined(__CUDACC__)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(is_there ? 4 : 0)
                 : "memory");
#else
    *to = is_there ? *from : 0.0f;
#endif
}

/* Copies of 16 bytes to OFFSET bytes behind `to`, in fewer instructions; nothing where that is not wanted. */
template <unsigned OFFSET>
__device__ inline void copy_16_behind(void *to, const void *from, bool is_there, bool is_wanted) {
#if defined(__CUDACC__)
    asm volatile("{\n"
                 ".reg .pred wanted;\n"
                 "setp.ne.u32 wanted, %3, 0;\n"
                 "@wanted cp.async.cg.shared.global [%0 + %4], [%1], 16, %2;\n"
                 "}" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(is_there ? 16 : 0), "r"((unsigned)is_wanted),
                 "n"(OFFSET)
                 : "memory");
#else
    if (is_wanted)
        copy_16(static_cast<uint8_t *>(to) + OFFSET, from, is_there);
#endif
}

/* The same of what is there and wanted. */
template <unsigned OFFSET>
__device__ inline void copy_16_behind(void *to, const void *from) {
#if defined(__CUDACC__)
    asm volatile(
        "cp.async.cg.shared.global [%0 + %2], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(__cvta_generic_to_global(from)), "n"(OFFSET)
        : "memory");
#else
    memcpy(static_cast<uint8_t *>(to) + OFFSET, from, 16);
#endif
}

/* The copies that the thread has started since the last call are one group. */
__device__ inline void commit_copies() {
#if defined(__CUDACC__)
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for the thread's groups but the latest LEFT. */
template <int LEFT>
__device__ inline void wait_for_copies() {
#if defined(__CUDACC__)
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

/* Four matrices of 8 rows of 16 bytes; lane l names row l mod 8 of matrix l / 8. Of each, lane l gets row l /
 * 4's columns 2 (l mod 4) and the next; transposed: column l / 4's rows 2 (l mod 4) and the next. */
template <bool TRANSPOSED>
__device__ inline void load_matrices(uint32_t to[4], const uint16_t *row) {
#if defined(__CUDACC__)
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address));
#else
    const uint8_t *all = emulated::exchange(&row, sizeof row);
    const unsigned across = emulated::lane() / 4, pair = emulated::lane() % 4 * 2;
    for (unsigned m = 0; m < 4; m++) {
        const uint16_t *rows[8];
        for (unsigned r = 0; r < 8; r++)
            memcpy(&rows[r], all + (m * 8 + r) * emulated::EXCHANGE_BYTES, sizeof rows[r]);
        const uint32_t low = TRANSPOSED ? rows[pair][across] : rows[across][pair];
        const uint32_t high = TRANSPOSED ? rows[pair + 1][across] : rows[across][pair + 1];
        to[m] = low | high << 16;
    }
#endif
}

} // namespace gb_cuda

#endif
