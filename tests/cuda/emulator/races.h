/* SPDX-License-Identifier: Apache-2.0
 *
 * Which accesses of a block's threads to shared memory are ordered, as compute-sanitizer's racecheck knows it
 * of a real device: by barriers of the block, by meetings of a warp, and by arrivals at barriers in shared
 * memory for which others wait. Two that nothing orders, of which one writes, are reported. In builds without
 * GUMBEL_EMULATED_CHECKS this does nothing.
 */
#ifndef GUMBEL_TESTS_EMULATED_RACES_H
#define GUMBEL_TESTS_EMULATED_RACES_H

#include <cstddef>

namespace emulated {

constexpr int NO_THREAD = -1;

#if defined(GUMBEL_EMULATED_CHECKS)
extern bool order_is_followed;            /* for those who would call check_*_order in vain */
void begin_block_order(unsigned threads); /* from here on the block's accesses are followed .. */
void end_block_order();                   /* .. to here */
void set_running_thread(int thread);
void order_block();
void order_warp(unsigned first, unsigned lanes);
void release_order(const void *barrier); /* what the running thread has done is ordered before .. */
void acquire_order(const void *barrier); /* .. what one does from here on */

/* By the running thread. place: of the instruction, or NULL. */
void check_read_order(const void *at, size_t size);
void check_write_order(const void *at, size_t size, const void *place);
void check_atomic_order(const void *at, size_t size, bool is_write);
#else
inline void begin_block_order(unsigned) {}
inline void end_block_order() {}
inline void set_running_thread(int) {}
inline void order_block() {}
inline void order_warp(unsigned, unsigned) {}
inline void release_order(const void *) {}
inline void acquire_order(const void *) {}
inline void check_atomic_order(const void *, size_t, bool) {}
#endif

} // namespace emulated

#endif
