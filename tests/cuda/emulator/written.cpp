/* SPDX-License-Identifier: Apache-2.0
 *
 * A bit a byte, in memory that is allocated when it is touched.
 */
#include "written.h"
#include "reports.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

/* Not that of accesses.cpp, which comes here. */
extern "C" void *__real_memset(void *to, int value, size_t size);

namespace {

constexpr size_t ADDRESSES = (size_t)1 << 48;

void set_bit(uintptr_t address, bool unwritten) {
    uint8_t *const bits = &emulated::unwritten_bits[address / 8];
    *bits = (uint8_t)((*bits & ~(1 << address % 8)) | unwritten << address % 8);
}

void set_bits(uintptr_t address, size_t size, bool unwritten) {
    for (; size > 0 && address % 8 != 0; address++, size--)
        set_bit(address, unwritten);
    __real_memset(emulated::unwritten_bits + address / 8, unwritten ? 0xff : 0, size / 8);
    address += size / 8 * 8;
    for (size %= 8; size > 0; address++, size--)
        set_bit(address, unwritten);
}

} // namespace

uint8_t *emulated::unwritten_bits;

/* Before other constructors, which may copy something. */
__attribute__((constructor(101))) static void make_bits() {
    void *memory = mmap(nullptr, ADDRESSES / 8, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "emulated device: no addresses left for what is written "
                        "(build with -DGUMBEL_EMULATED_CHECKS=OFF)\n");
        abort();
    }
    emulated::unwritten_bits = static_cast<uint8_t *>(memory);
}

void emulated::set_unwritten(const void *memory, size_t size) {
    set_bits((uintptr_t)memory, size, true);
}

void emulated::set_written(const void *memory, size_t size) {
    if (size > MOST_AT_ONCE || is_unwritten(memory, size))
        set_bits((uintptr_t)memory, size, false);
}

void emulated::check_written(const void *memory, size_t size, const char *who) {
    for (size_t i = 0; i < size; i += MOST_AT_ONCE)
        if (is_unwritten(static_cast<const uint8_t *>(memory) + i,
                         size - i < MOST_AT_ONCE ? size - i : MOST_AT_ONCE)) {
            report("%s reads %zu bytes at %p of which some were written by nobody", who, size, memory);
            return;
        }
}
