/* SPDX-License-Identifier: Apache-2.0
 *
 * For small functions that the host and CUDA's devices share.
 */
#ifndef GUMBEL_BASE_ANYWHERE_H
#define GUMBEL_BASE_ANYWHERE_H

#if defined(__CUDACC__)
#define GB_ANYWHERE static inline __host__ __device__
#else
#define GB_ANYWHERE static inline
#endif

#endif
