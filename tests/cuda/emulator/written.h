/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes of the emulated device's memory have been written, as compute-sanitizer's initcheck knows it of
 * a real one: who reads others is reported. In builds without GUMBEL_EMULATED_CHECKS this does nothing.
 */
#ifndef GUMBEL_TESTS_EMULATED_WRITTEN_H
#define GUMBEL_TESTS_EMULATED_WRITTEN_H

#include <cstddef>
#include <cstdint>

namespace emulated {

#if defined(GUMBEL_EMULATED_CHECKS)
/* A bit for each address that there can be: set while the byte there is the device's and unwritten. */
extern uint8_t *unwritten_bits;

constexpr size_t MOST_AT_ONCE = 16;

/* Whether some of up to MOST_AT_ONCE bytes are unwritten. */
inline bool is_unwritten(const void *memory, size_t size) {
    const uintptr_t address = (uintptr_t)memory;
    uint32_t window;
    __builtin_memcpy(&window, unwritten_bits + address / 8, sizeof window);
    return (window >> address % 8 & ((1u << size) - 1)) != 0;
}

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
