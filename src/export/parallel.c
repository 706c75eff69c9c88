/* SPDX-License-Identifier: Apache-2.0 */
#include "export/parallel.h"

#include "base/thread.h"

#include <stdbool.h>
#include <unistd.h>

typedef struct member {
    gb_parallel_work work;
    void *user;
    unsigned index;
    size_t first, end;
    pthread_t thread;
    bool is_started;
} member;

unsigned gb_export_threads(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > GB_MAX_EXPORT_THREADS ? GB_MAX_EXPORT_THREADS : (unsigned)cores;
}

static void *run(void *given) {
    const member *m = given;
    m->work(m->user, m->index, m->first, m->end);
    return NULL;
}

void gb_parallel_for(unsigned threads, size_t count, gb_parallel_work work, void *user) {
    member members[GB_MAX_EXPORT_THREADS];
    threads = threads < GB_MAX_EXPORT_THREADS ? threads : GB_MAX_EXPORT_THREADS;
    threads = threads < count ? threads : (unsigned)count;
    for (unsigned i = 0; i < threads; i++) {
        members[i] = (member){.work = work,
                              .user = user,
                              .index = i,
                              .first = count * i / threads,
                              .end = count * (i + 1) / threads};
        if (i > 0)
            members[i].is_started = gb_start_thread(&members[i].thread, run, &members[i]);
    }
    for (unsigned i = 0; i < threads; i++)
        if (!members[i].is_started)
            run(&members[i]);
    for (unsigned i = 0; i < threads; i++)
        if (members[i].is_started)
            pthread_join(members[i].thread, NULL);
}
