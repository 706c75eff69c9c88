/* SPDX-License-Identifier: Apache-2.0
 *
 * A bit for each address that there can be, in memory that comes when it is touched: set while the byte there
 * is the device's and unwritten. Kernels are compiled with -fsanitize=thread, so that they call a function
 * with each access, and linked with the ones here in place of that sanitizer's; of memcpy and memset, which
 * they call as well, all calls in the program come here.
 */
#include "written.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <execinfo.h>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

extern "C" void *__real_memcpy(void *to, const void *from, size_t size);
extern "C" void *__real_memset(void *to, int value, size_t size);

namespace {

constexpr size_t ADDRESSES = (size_t)1 << 48, MOST_AT_ONCE = 16;
constexpr int FRAMES = 8, STATUS = 99;

/* ---- Reports ------------------------------------------------------------------------------------------- */

typedef std::array<void *, FRAMES> call_chain;

/* Each is told once. */
struct reports {
    std::set<call_chain> places;
    ~reports() {
        if (places.empty())
            return;
        fprintf(stderr, "emulated device: %zu places read what nobody wrote\n", places.size());
        fflush(nullptr);
        _exit(STATUS);
    }
} found;

void report(const void *at, size_t size, const char *who) {
    call_chain frames = {};
    const int count = backtrace(frames.data(), FRAMES);
    if (!found.places.insert(frames).second)
        return;
    fprintf(stderr, "emulated device: %s reads %zu bytes at %p of which some were written by nobody\n", who,
            size, at);
    backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
}

/* ---- Bits ---------------------------------------------------------------------------------------------- */

uint8_t *all_bits() {
    static uint8_t *const bits = [] {
        void *memory = mmap(nullptr, ADDRESSES / 8, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            fprintf(stderr, "emulated device: no addresses left for what is written "
                            "(build with -DGUMBEL_EMULATED_INITCHECK=OFF)\n");
            abort();
        }
        return static_cast<uint8_t *>(memory);
    }();
    return bits;
}

void set_bit(uintptr_t address, bool unwritten) {
    uint8_t *const bits = &all_bits()[address / 8];
    *bits = (uint8_t)((*bits & ~(1 << address % 8)) | unwritten << address % 8);
}

void set_bits(uintptr_t address, size_t size, bool unwritten) {
    for (; size > 0 && address % 8 != 0; address++, size--)
        set_bit(address, unwritten);
    __real_memset(all_bits() + address / 8, unwritten ? 0xff : 0, size / 8);
    address += size / 8 * 8;
    for (size %= 8; size > 0; address++, size--)
        set_bit(address, unwritten);
}

/* The bits of up to MOST_AT_ONCE bytes, in the lowest ones. */
uint32_t bits_of(uintptr_t address, size_t size) {
    uint32_t bits;
    __real_memcpy(&bits, all_bits() + address / 8, sizeof bits);
    return bits >> address % 8 & ((1u << size) - 1);
}

void kernel_reads(const void *at, size_t size) {
    if (bits_of((uintptr_t)at, size) != 0)
        report(at, size, "a kernel");
}

void kernel_writes(const void *at, size_t size) {
    if (bits_of((uintptr_t)at, size) != 0)
        set_bits((uintptr_t)at, size, false);
}

} // namespace

namespace emulated {

void set_unwritten(const void *memory, size_t size) {
    set_bits((uintptr_t)memory, size, true);
}

void set_written(const void *memory, size_t size) {
    set_bits((uintptr_t)memory, size, false);
}

void check_written(const void *memory, size_t size, const char *who) {
    for (size_t i = 0; i < size; i += MOST_AT_ONCE)
        if (bits_of((uintptr_t)memory + i, size - i < MOST_AT_ONCE ? size - i : MOST_AT_ONCE) != 0)
            return report(static_cast<const uint8_t *>(memory) + i, size - i, who);
}

} // namespace emulated

/* ---- What kernels call --------------------------------------------------------------------------------- */

extern "C" {

void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}

#define ACCESSES(size)                                                                                       \
    void __tsan_read##size(void *at) {                                                                       \
        kernel_reads(at, size);                                                                              \
    }                                                                                                        \
    void __tsan_write##size(void *at) {                                                                      \
        kernel_writes(at, size);                                                                             \
    }

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *at, size_t size) {
    emulated::check_written(at, size, "a kernel");
}
void __tsan_write_range(void *at, size_t size) {
    emulated::set_written(at, size);
}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

void *__wrap_memcpy(void *to, const void *from, size_t size) {
    emulated::check_written(from, size, "a copy");
    emulated::set_written(to, size);
    return __real_memcpy(to, from, size);
}
void *__wrap_memset(void *to, int value, size_t size) {
    emulated::set_written(to, size);
    return __real_memset(to, value, size);
}
}
