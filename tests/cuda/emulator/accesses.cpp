/* SPDX-License-Identifier: Apache-2.0
 *
 * Every access of a kernel: kernels are compiled with -fsanitize=thread and linked with these functions in
 * place of that sanitizer's; all calls of memcpy and memset in the program come here too. GCC does not report
 * structures that are passed by value to functions that are not inlined, or returned by them.
 */
#include "cuda_runtime_api.h"
#include "races.h"
#include "written.h"

#include <cstdint>

extern "C" char __data_start, _end; /* of what is static */

void (*emulated_access)(const void *at, size_t size, bool writes);

namespace {

inline void report_access(const void *at, size_t size, bool writes) {
    const uintptr_t address = (uintptr_t)at;
    const bool is_shared = address >= (uintptr_t)&__data_start && address < (uintptr_t)&_end;
    if (emulated_access && !is_shared)
        emulated_access(at, size, writes);
}

inline void read(const void *at, size_t size, const char *who) {
    report_access(at, size, false);
    if (emulated::order_is_followed)
        emulated::check_read_order(at, size);
    if (size > emulated::MOST_AT_ONCE || emulated::is_unwritten(at, size))
        emulated::check_written(at, size, who);
}

inline void write(const void *at, size_t size, const void *place) {
    report_access(at, size, true);
    if (emulated::order_is_followed)
        emulated::check_write_order(at, size, place);
    if (size > emulated::MOST_AT_ONCE || emulated::is_unwritten(at, size))
        emulated::set_written(at, size);
}

} // namespace

extern "C" {

void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}

#define ACCESSES(size)                                                                                       \
    void __tsan_read##size(void *at) {                                                                       \
        read(at, size, "a kernel");                                                                          \
    }                                                                                                        \
    void __tsan_write##size(void *at) {                                                                      \
        write(at, size, __builtin_return_address(0));                                                        \
    }

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *at, size_t size) {
    read(at, size, "a kernel");
}
void __tsan_write_range(void *at, size_t size) {
    write(at, size, __builtin_return_address(0));
}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memset(void *to, int value, size_t size);

void *__wrap_memcpy(void *to, const void *from, size_t size) {
    read(from, size, "a copy");
    write(to, size, __builtin_return_address(0));
    return __real_memcpy(to, from, size);
}
void *__wrap_memset(void *to, int value, size_t size) {
    write(to, size, __builtin_return_address(0));
    return __real_memset(to, value, size);
}
}
