/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "backends/threads/cores.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

/* A list such as "0,4" or "2-3,10-11" of the threads of one core: the first of them that is allowed, or
 * `thread` where there is none before it. */
static size_t first_sibling(FILE *list, const bool *is_allowed, size_t thread) {
    size_t first, last;
    while (fscanf(list, "%zu", &first) == 1) {
        int next = fgetc(list);
        last = first;
        if (next == '-') {
            if (fscanf(list, "%zu", &last) != 1)
                break;
            next = fgetc(list);
        }
        for (size_t i = first; i <= last && i < thread; i++)
            if (is_allowed[i])
                return i;
        if (next != ',')
            break;
    }
    return thread;
}

unsigned gb_count_cores(const char *directory, const bool *is_allowed, size_t count) {
    unsigned cores = 0;
    for (size_t i = 0; i < count; i++) {
        char path[256];
        if (!is_allowed[i])
            continue;
        snprintf(path, sizeof path, "%s/cpu%zu/topology/thread_siblings_list", directory, i);
        FILE *list = fopen(path, "r");
        cores += !list || first_sibling(list, is_allowed, i) == i;
        if (list)
            fclose(list);
    }
    return cores > 0 ? cores : 1;
}

unsigned gb_available_threads(void) {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
#endif
    long threads = sysconf(_SC_NPROCESSORS_ONLN);
    return threads > 0 ? (unsigned)threads : 1;
}

unsigned gb_available_cores(void) {
#if defined(__linux__)
    cpu_set_t set;
    bool is_allowed[CPU_SETSIZE];
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (size_t i = 0; i < CPU_SETSIZE; i++)
            is_allowed[i] = CPU_ISSET(i, &set) != 0;
        return gb_count_cores("/sys/devices/system/cpu", is_allowed, CPU_SETSIZE);
    }
#elif defined(__APPLE__)
    int cores = 0;
    size_t size = sizeof cores;
    if (sysctlbyname("hw.physicalcpu", &cores, &size, NULL, 0) == 0 && cores > 0)
        return (unsigned)cores;
#endif
    return gb_available_threads();
}

bool gb_has_own_cores(void) {
#if defined(__linux__)
    cpu_set_t own, of_parent;
    return sched_getaffinity(0, sizeof own, &own) == 0 &&
           sched_getaffinity(getppid(), sizeof of_parent, &of_parent) == 0 && !CPU_EQUAL(&own, &of_parent);
#else
    return false;
#endif
}
