/* SPDX-License-Identifier: Apache-2.0
 *
 * In a command the environment says which call has a fault, from the start of main():
 *
 *     GUMBEL_FAILING_CALL="KIND N"     the N-th, 0: none; KIND is a call_fault
 *     GUMBEL_CALL_COUNT=FILE           where the number of calls is written at the end
 */
#include "failing_calls.h"
#include "fault_command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void write_count(void) {
    char text[32];
    const int length = snprintf(text, sizeof text, "%zu", end_call_fault());
    const char *path = getenv("GUMBEL_CALL_COUNT");
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (file >= 0 && write(file, text, (size_t)length) != length)
        _exit(99);
}

static call_fault kind;
static size_t nth;

static void begin(void) {
    begin_call_fault(kind, nth);
}

int __real_main(int count, char **words);
int __wrap_main(int count, char **words);

int __wrap_main(int count, char **words) {
    const char *call = getenv("GUMBEL_FAILING_CALL");
    if (call) {
        char *rest;
        kind = (call_fault)strtoul(call, &rest, 10);
        nth = strtoull(rest, NULL, 10);
        atexit(write_count);
        start_faults(begin);
    }
    return __real_main(count, words);
}
