/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/threads/team.h"

#include "backends/threads/cores.h"
#include "base/memory.h"
#include "base/thread.h"

#include <stdatomic.h>

/* About 50 microseconds: longer than the pause between two decoded tokens. In a step, where others are known
 * to be at work, 200: longer than what one of them does alone, such as sampling, since it takes some 50 to
 * wake a thread. Both are shorter than a scheduler's time slice. */
enum { SPINS = 2000, MEETING_SPINS = 8000, CACHE_LINE = 64 };

/* Waiters first spin on the generation, then sleep on a condition variable. The one who comes last advances
 * the generation and then looks whether anybody sleeps; a sleeper counts itself and then looks at the
 * generation again: in sequentially consistent order one of the two sees the other. */
struct gb_team {
    _Alignas(CACHE_LINE) atomic_uint generation;
    _Alignas(CACHE_LINE) atomic_uint arrived;
    atomic_uint sleepers;
    _Alignas(CACHE_LINE) pthread_mutex_t mutex;
    pthread_cond_t awake;
    unsigned count;
    bool has_cores;   /* a core for each thread: it is worth spinning */
    unsigned started; /* threads besides the caller's */
    bool stop;
    gb_team_work work;
    void *user;
    pthread_t *threads;
    struct member {
        gb_team *team;
        unsigned index;
    } * members;
};

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_until_changed(gb_team *team, unsigned generation) {
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&team->sleepers, 1);
    while (atomic_load(&team->generation) == generation)
        pthread_cond_wait(&team->awake, &team->mutex);
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->mutex);
}

static void wake_sleepers(gb_team *team) {
    if (atomic_load(&team->sleepers) == 0)
        return;
    pthread_mutex_lock(&team->mutex);
    pthread_cond_broadcast(&team->awake);
    pthread_mutex_unlock(&team->mutex);
}

static void meet(gb_team *team, unsigned spins, gb_team_pastime pastime, void *user) {
    if (team->count == 1)
        return;
    unsigned generation = atomic_load(&team->generation);
    if (atomic_fetch_add(&team->arrived, 1) + 1 == team->count) {
        atomic_store(&team->arrived, 0);
        atomic_fetch_add(&team->generation, 1); /* emulators of other processors let a load pass a store */
        wake_sleepers(team);
        return;
    }
    for (unsigned i = 0; team->has_cores && i < spins; i++) {
        if (atomic_load_explicit(&team->generation, memory_order_acquire) != generation)
            return;
        if (!pastime || !pastime(user))
            relax();
    }
    sleep_until_changed(team, generation);
}

void gb_team_wait(gb_team *team) {
    meet(team, MEETING_SPINS, NULL, NULL);
}

void gb_team_wait_with(gb_team *team, gb_team_pastime pastime, void *user) {
    meet(team, MEETING_SPINS, pastime, user);
}

static void *member_main(void *argument) {
    struct member *member = argument;
    gb_team *team = member->team;
    for (;;) {
        meet(team, SPINS, NULL, NULL);
        if (team->stop)
            return NULL;
        team->work(team->user, member->index);
        gb_team_wait(team);
    }
}

void gb_team_run(gb_team *team, gb_team_work work, void *user) {
    team->work = work;
    team->user = user;
    gb_team_wait(team);
    work(user, 0);
    gb_team_wait(team);
}

static bool start_threads(gb_team *team) {
    for (unsigned i = 1; i < team->count; i++) {
        team->members[i] = (struct member){team, i};
        if (!gb_start_thread(&team->threads[i], member_main, &team->members[i]))
            break;
        team->started++;
    }
    return team->started == team->count - 1;
}

gumbel_status gb_team_create(unsigned count, gb_team **team, gumbel_error *error) {
    *team = NULL;
    gb_team *created = gb_allocate_aligned(1, sizeof *created);
    if (!created)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %u threads", count);
    created->count = count;
    created->has_cores = count <= gb_available_threads();
    pthread_mutex_init(&created->mutex, NULL);
    pthread_cond_init(&created->awake, NULL);
    created->threads = gb_allocate(count, sizeof *created->threads);
    created->members = gb_allocate(count, sizeof *created->members);
    bool reserved = created->threads && created->members;
    if (!reserved || !start_threads(created)) {
        gb_team_destroy(created);
        return gb_fail(error, GUMBEL_ERROR_MEMORY,
                       reserved ? "the system refuses %u threads" : "no memory for %u threads", count);
    }
    *team = created;
    return GUMBEL_OK;
}

/* Also ends a team of which only some threads could be started: the caller arrives for the missing ones. */
void gb_team_destroy(gb_team *team) {
    if (!team)
        return;
    if (team->started > 0) {
        team->stop = true;
        atomic_fetch_add(&team->arrived, team->count - 1 - team->started);
        gb_team_wait(team);
    }
    for (unsigned i = 1; i <= team->started; i++)
        pthread_join(team->threads[i], NULL);
    pthread_cond_destroy(&team->awake);
    pthread_mutex_destroy(&team->mutex);
    gb_free(team->members);
    gb_free(team->threads);
    gb_free(team);
}
