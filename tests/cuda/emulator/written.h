/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes of the emulated device's memory have been written, as compute-sanitizer's initcheck knows it of
 * a real one: kernels and copies that read others are reported, and the program ends with status 99. This is
 * for builds with GUMBEL_EMULATED_INITCHECK; in others it does nothing.
 */
#ifndef GUMBEL_TESTS_EMULATED_WRITTEN_H
#define GUMBEL_TESTS_EMULATED_WRITTEN_H

#include <cstddef>

namespace emulated {

#if defined(GUMBEL_EMULATED_INITCHECK)
void forget_written(const void *memory, size_t size); /* it is the device's and has been written by nobody */
void set_written(const void *memory, size_t size);    /* or is the device's no longer */
void check_written(const void *memory, size_t size, const char *who);
#else
inline void forget_written(const void *, size_t) {}
inline void set_written(const void *, size_t) {}
inline void check_written(const void *, size_t, const char *) {}
#endif

} // namespace emulated

#endif
