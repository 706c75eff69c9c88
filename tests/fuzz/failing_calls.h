/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the system on files and memory in whose place stand ones that fail on demand and count, for this
 * project's code and the libraries below it; what the C library calls itself is as ever, but for streams that
 * fopen opens. Linking failing_calls.c puts them there.
 */
#ifndef GUMBEL_TESTS_FAILING_CALLS_H
#define GUMBEL_TESTS_FAILING_CALLS_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef enum call_fault {
    CALL_FAILS,          /* EIO; of a map ENOMEM */
    CALL_FINDS_FULL,     /* ENOSPC, of what may need room */
    CALL_IS_INTERRUPTED, /* EINTR, of reads, writes and waits */
    CALL_IS_SHORT,       /* half of the bytes, of reads and writes of more than one */
    CALL_KILLS,          /* SIGKILL, before the call */
    CALL_FAULTS
} call_fault;

/* From here on the nth call (from 1) of those that may have this fault has it, on whichever thread it is;
 * 0: none. */
void begin_call_fault(call_fault fault, size_t nth);

/* Calls since then that may have had it; from here on none has. */
size_t end_call_fault(void);

/* Whether the file system has files without a name, as it is from the start where it can. */
void allow_files_without_name(bool allowed);

/* Descriptors that are open. */
size_t open_descriptors(void);

/* ---- For calls in the C library's place ---------------------------------------------------------------- */

typedef enum call_traits { PLAIN = 0, NEEDS_ROOM = 1, MOVES_BYTES = 2, WAITS = 4 } call_traits;

/* Whether the call is to fail; errno says why, for CALL_FAILS that reason. A short one only gets less to
 * move; size may be NULL. */
bool call_fails(unsigned traits, size_t *size, int reason);

#define REPLACED __attribute__((visibility("default")))

/* Returns what the C library's function of that name does. */
#define FORWARD(type, name, parameters, ...)                                                                 \
    static type(*_Atomic original) parameters;                                                               \
    type(*function) parameters = atomic_load(&original);                                                     \
    if (!function) {                                                                                         \
        void *found = dlsym(RTLD_NEXT, name);                                                                \
        memcpy(&function, &found, sizeof function);                                                          \
        atomic_store(&original, function);                                                                   \
    }                                                                                                        \
    return function(__VA_ARGS__)

#endif
