/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes of the emulated device's memory have been written, as compute-sanitizer's initcheck knows it of
 * a real one: kernels and copies that read others are reported, and the program ends with status 99. This is
 * for builds with GUMBEL_EMULATED_INITCHECK; in others it does nothing.
 *
 * It sees what GCC tells ThreadSanitizer's library of, which leaves out structures that are passed by value
 * to functions that are not inlined or returned by them.
 */
#ifndef GUMBEL_TESTS_EMULATED_WRITTEN_H
#define GUMBEL_TESTS_EMULATED_WRITTEN_H

#include <cstddef>

namespace emulated {

#if defined(GUMBEL_EMULATED_INITCHECK)
void set_unwritten(const void *memory, size_t size); /* the device's, new */
void set_written(const void *memory, size_t size);   /* or no longer the device's */
void check_written(const void *memory, size_t size, const char *who);
#else
inline void set_unwritten(const void *, size_t) {}
inline void set_written(const void *, size_t) {}
inline void check_written(const void *, size_t, const char *) {}
#endif

} // namespace emulated

#endif
