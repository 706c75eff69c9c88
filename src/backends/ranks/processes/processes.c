/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/processes/processes.h"

#include "backends/ranks/processes/run_on_all.h"
#include "backends/ranks/processes/sockets.h"
#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Changed with what processes send each other. */
enum { PROTOCOL = 1 };

/* Messages on control connections are short: who does not take or end one in so long hangs. */
enum { CONTROL_SECONDS = 2, MOST_SECONDS = 24 * 60 * 60 };

typedef enum purpose { FOR_DATA = 0, FOR_CONTROL = 1 } purpose;

/* What a process says of itself on each of its connections, and rank 0 answers once all are there. */
typedef struct introduction {
    char magic[8];
    uint32_t protocol, rank, count, purpose;
    char job[96], version[32], name[96];
} introduction;

static const char magic[8] = "gumbel\n";

static introduction introduce(const gb_launch *launch, purpose why) {
    introduction own = {.protocol = PROTOCOL, .rank = launch->rank, .count = launch->count, .purpose = why};
    char host[48] = "";
    gethostname(host, sizeof host - 1);
    memcpy(own.magic, magic, sizeof magic);
    snprintf(own.job, sizeof own.job, "%s", launch->job);
    snprintf(own.version, sizeof own.version, "%s", GUMBEL_VERSION);
    snprintf(own.name, sizeof own.name, "rank %u (%s, process %ld)", launch->rank, host, (long)getpid());
    return own;
}

/* ---- Rank 0 -------------------------------------------------------------------------------------------- */

/* Whether somebody of this launch speaks; anybody may connect. */
static bool is_process(const gumbel_process_group *p, const introduction *other) {
    return memcmp(other->magic, magic, sizeof magic) == 0 && memchr(other->name, 0, sizeof other->name) &&
           memchr(other->version, 0, sizeof other->version) && memchr(other->job, 0, sizeof other->job) &&
           strcmp(other->job, p->launch.job) == 0;
}

static gumbel_status check_process(const gumbel_process_group *p, const introduction *other,
                                   gumbel_error *error) {
    if (other->protocol != PROTOCOL || strcmp(other->version, GUMBEL_VERSION) != 0)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "%s has version %s, and rank 0 has %s", other->name,
                       other->version, GUMBEL_VERSION);
    if (other->count != p->launch.count || other->rank == 0 || other->rank >= p->launch.count)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s of %u: rank 0 is one of %u", other->name,
                       other->count, p->launch.count);
    return GUMBEL_OK;
}

static gumbel_status take_connection(gumbel_process_group *p, int made, const introduction *other,
                                     gumbel_error *error) {
    GB_TRY(check_process(p, other, error));
    gb_peer *peer = &p->peers[other->rank];
    int *place = other->purpose == FOR_CONTROL ? &peer->control : &peer->data;
    if (*place >= 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s is there twice: %s", peer->name, other->name);
    memcpy(peer->name, other->name, sizeof peer->name);
    *place = made;
    return GUMBEL_OK;
}

/* Whether all are there, with rank 0's name, or why not. Whoever does not hear it is missed later. */
static void send_outcome(const gumbel_process_group *p, int made, gumbel_status status,
                         const gumbel_error *error) {
    const introduction own = introduce(&p->launch, FOR_DATA);
    gumbel_error outcome = {.status = GUMBEL_OK};
    if (status == GUMBEL_OK)
        snprintf(outcome.message, sizeof outcome.message, "%s", own.name);
    else
        outcome = gb_error_to_send(error);
    gb_send_all(made, &outcome, sizeof outcome, NULL, 0);
}

/* Who says nothing, or something else, is turned away. */
static gumbel_status accept_one(gumbel_process_group *p, int listener, uint32_t *missing,
                                gumbel_error *error) {
    enum { PATIENCE = 100, SECONDS = 2 };
    introduction other;
    const int made = gb_accept(&p->launch, listener, PATIENCE);
    if (made < 0)
        return GUMBEL_OK;
    gb_limit_waiting(made, SECONDS);
    if (!gb_receive_all(made, &other, sizeof other) || !is_process(p, &other)) {
        close(made);
        return GUMBEL_OK;
    }
    gb_limit_waiting(made, other.purpose == FOR_CONTROL ? CONTROL_SECONDS : 0);
    const gumbel_status status = take_connection(p, made, &other, error);
    if (status == GUMBEL_OK) {
        --*missing;
        return status;
    }
    send_outcome(p, made, status, error);
    close(made);
    return status;
}

static gumbel_status name_missing(const gumbel_process_group *p, uint32_t seconds, gumbel_error *error) {
    for (uint32_t r = 1; r < p->launch.count; r++)
        if (p->peers[r].control < 0 || p->peers[r].data < 0)
            return gb_fail(error, GUMBEL_ERROR_IO, "rank %u has not come within %u seconds", r, seconds);
    return GUMBEL_OK;
}

static gumbel_status accept_all(gumbel_process_group *p, int listener, uint32_t seconds,
                                gumbel_error *error) {
    uint32_t missing = 2 * (p->launch.count - 1);
    const double end = gb_seconds() + seconds;
    while (missing > 0 && gb_seconds() < end)
        GB_TRY(accept_one(p, listener, &missing, error));
    return name_missing(p, seconds, error);
}

/* All are told whether all are there. */
static void answer(const gumbel_process_group *p, gumbel_status status, const gumbel_error *error) {
    for (uint32_t r = 1; r < p->launch.count; r++)
        if (p->peers[r].data >= 0)
            send_outcome(p, p->peers[r].data, status, error);
}

static gumbel_status gather_processes(gumbel_process_group *p, uint32_t seconds, gumbel_error *error) {
    int listener;
    GB_TRY(gb_listen(&p->launch, &listener, error));
    const gumbel_status status = accept_all(p, listener, seconds, error);
    answer(p, status, error);
    gb_listen_end(&p->launch, listener);
    return status;
}

/* ---- The others ---------------------------------------------------------------------------------------- */

static gumbel_status present(const gumbel_process_group *p, purpose why, int made, gumbel_error *error) {
    const introduction own = introduce(&p->launch, why);
    return gb_send_all(made, &own, sizeof own, NULL, 0) ? GUMBEL_OK
                                                        : gb_fail(error, GUMBEL_ERROR_IO, "rank 0 has ended");
}

/* Both connections are there before rank 0 knows who comes: one that is refused does not look for a place to
 * connect to that is gone by then. */
static gumbel_status connect_with_first(gumbel_process_group *p, uint32_t seconds, gumbel_error *error) {
    gb_peer *first = &p->peers[0];
    GB_TRY(gb_connect(&p->launch, seconds, &first->data, error));
    GB_TRY(gb_connect_again(&p->launch, first->data, &first->control, error));
    GB_TRY(present(p, FOR_DATA, first->data, error));
    present(p, FOR_CONTROL, first->control, error); /* where it fails, the first connection says why */
    return GUMBEL_OK;
}

static gumbel_status find_first(gumbel_process_group *p, uint32_t seconds, gumbel_error *error) {
    enum { LONGER = 10 }; /* than rank 0 waits */
    gb_peer *first = &p->peers[0];
    gumbel_error outcome;
    GB_TRY(connect_with_first(p, seconds, error));
    gb_limit_waiting(first->data, seconds + LONGER);
    if (!gb_receive_all(first->data, &outcome, sizeof outcome))
        return gb_fail(error, GUMBEL_ERROR_IO, "rank 0 has ended, or does not answer");
    gb_limit_waiting(first->data, 0);
    gb_limit_waiting(first->control, CONTROL_SECONDS);
    outcome.message[sizeof outcome.message - 1] = '\0';
    if (outcome.status != GUMBEL_OK)
        return gb_fail(error, outcome.status, "%s", outcome.message);
    snprintf(first->name, sizeof first->name, "%.90s", outcome.message);
    return GUMBEL_OK;
}

/* ---- All ----------------------------------------------------------------------------------------------- */

static void destroy(gumbel_process_group *p) {
    gb_processes_watch_end(p);
    for (uint32_t r = 0; r < GB_MOST_RANKS; r++) {
        if (p->peers[r].data >= 0)
            close(p->peers[r].data);
        if (p->peers[r].control >= 0)
            close(p->peers[r].control);
    }
    gb_buffer_free(&p->message);
    gb_buffer_free(&p->shared);
    pthread_mutex_destroy(&p->meeting.mutex);
    pthread_mutex_destroy(&p->running);
    pthread_mutex_destroy(&p->telling);
    gb_free(p);
}

static gumbel_process_group *new_processes(const gb_launch *launch) {
    gumbel_process_group *p = gb_allocate(1, sizeof *p);
    if (!p)
        return NULL;
    p->launch = *launch;
    p->meeting.functions = &gb_meeting_of_processes;
    p->meeting.ranks = launch->count;
    p->first_peer = launch->rank == 0 ? 1 : 0;
    p->end_peer = launch->rank == 0 ? launch->count : 1;
    p->ending[0] = p->ending[1] = -1;
    for (uint32_t r = 0; r < GB_MOST_RANKS; r++)
        p->peers[r].data = p->peers[r].control = -1;
    pthread_mutex_init(&p->meeting.mutex, NULL);
    pthread_mutex_init(&p->running, NULL);
    pthread_mutex_init(&p->telling, NULL);
    return p;
}

gumbel_status gb_processes_join(const gb_launch *launch, uint32_t seconds, gumbel_process_group **processes,
                                gumbel_error *error) {
    *processes = NULL;
    gumbel_process_group *p = new_processes(launch);
    seconds = seconds < MOST_SECONDS ? seconds : MOST_SECONDS;
    if (!p)
        return gb_no_memory(error, "a group of processes");
    gumbel_status status = GUMBEL_OK;
    if (launch->count > 1)
        status = launch->rank == 0 ? gather_processes(p, seconds, error) : find_first(p, seconds, error);
    if (status == GUMBEL_OK && !gb_processes_watch(p))
        status = gb_fail(error, GUMBEL_ERROR_IO, "no thread or pipe to watch other processes");
    if (status != GUMBEL_OK)
        destroy(p);
    else
        *processes = p;
    return status;
}

void gb_processes_leave(gumbel_process_group *p) {
    if (!p)
        return;
    atomic_store(&p->is_leaving, true);
    if (p->launch.rank == 0)
        gb_processes_dismiss(p);
    destroy(p);
}

/* ---- Groups -------------------------------------------------------------------------------------------- */

gumbel_status gb_processes_add_group(gumbel_process_group *p, gb_group *group, gumbel_error *error) {
    uint32_t i = 0;
    pthread_mutex_lock(&p->running);
    while (i < GB_MOST_GROUPS && p->groups[i])
        i++;
    group->number = i;
    if (i < GB_MOST_GROUPS)
        p->groups[i] = group;
    pthread_mutex_unlock(&p->running);
    return i < GB_MOST_GROUPS
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_ARGUMENT, "more than %d engines on one group of processes",
                         (int)GB_MOST_GROUPS);
}

void gb_processes_forget_group(gumbel_process_group *p, const gb_group *group) {
    pthread_mutex_lock(&p->running);
    if (group->number < GB_MOST_GROUPS && p->groups[group->number] == group)
        p->groups[group->number] = NULL;
    pthread_mutex_unlock(&p->running);
}
