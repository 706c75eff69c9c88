/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/processes/processes.h"
#include "backends/ranks/processes/sockets.h"
#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* A process that says nothing for so long has ended or hangs, with its host maybe. Seconds are those that
 * this process has seen pass: where all were stopped and go on, nobody is missed. */
enum { MOST_SILENCE = 7 };

typedef enum gb_signal { ALIVE = 1, BROKEN = 2 } gb_signal;

typedef struct control_message {
    uint32_t signal;
    gumbel_error why; /* where the meeting is broken */
} control_message;

/* What cannot be told is found out by itself. */
static void tell_all(gumbel_process_group *p, const control_message *message) {
    pthread_mutex_lock(&p->telling);
    for (uint32_t r = p->first_peer; r < p->end_peer; r++)
        gb_send_all(p->peers[r].control, message, sizeof *message, NULL, 0);
    pthread_mutex_unlock(&p->telling);
}

void gb_processes_call_back(gumbel_process_group *p, const gumbel_error *why) {
    pthread_mutex_lock(&p->telling);
    if (p->on_failure)
        p->on_failure(p->failure_user, why);
    p->on_failure = NULL;
    pthread_mutex_unlock(&p->telling);
}

void gb_processes_tell(gumbel_process_group *p, const gumbel_error *why) {
    const control_message message = {.signal = BROKEN, .why = gb_error_to_send(why)};
    tell_all(p, &message);
}

void gb_processes_on_failure(gumbel_process_group *p,
                             void (*on_failure)(void *user, const gumbel_error *error), void *user) {
    pthread_mutex_lock(&p->telling);
    p->on_failure = on_failure;
    p->failure_user = user;
    pthread_mutex_unlock(&p->telling);
    if (p->meeting.is_broken)
        gb_processes_call_back(p, &p->meeting.why);
}

static void miss(gumbel_process_group *p, gb_peer *peer, const char *what) {
    gumbel_error gone;
    if (!atomic_load(&p->is_leaving)) {
        gb_fail(&gone, GUMBEL_ERROR_BACKEND, "%s %s", peer->name, what);
        gb_meeting_break(&p->meeting, &gone);
    }
}

/* False: there is nothing more to hear from it. */
static bool hear(gumbel_process_group *p, gb_peer *peer) {
    control_message message;
    if (!gb_receive_all(peer->control, &message, sizeof message)) {
        miss(p, peer, "has ended");
        return false;
    }
    peer->silence = 0;
    message.why.message[sizeof message.why.message - 1] = '\0';
    if (message.signal == BROKEN)
        gb_meeting_break(&p->meeting, &message.why);
    return true;
}

static void count_silence(gumbel_process_group *p, const bool *listens) {
    for (uint32_t i = 0; i < p->end_peer - p->first_peer; i++) {
        gb_peer *peer = &p->peers[p->first_peer + i];
        if (listens[i] && ++peer->silence == MOST_SILENCE)
            miss(p, peer, "does not answer any more");
    }
}

/* Waits for what others say, or to be ended: false. */
static bool wait_for_word(gumbel_process_group *p, bool *listens, double seconds) {
    struct pollfd waits[GB_MOST_RANKS + 1];
    const uint32_t count = p->end_peer - p->first_peer;
    for (uint32_t i = 0; i < count; i++)
        waits[i] =
            (struct pollfd){.fd = listens[i] ? p->peers[p->first_peer + i].control : -1, .events = POLLIN};
    waits[count] = (struct pollfd){.fd = p->ending[0], .events = POLLIN};
    const int ready = poll(waits, count + 1, (int)(1000 * seconds) + 1);
    for (uint32_t i = 0; ready > 0 && i < count; i++)
        if (waits[i].revents)
            listens[i] = hear(p, &p->peers[p->first_peer + i]);
    return ready <= 0 || !waits[count].revents;
}

static void *watch(void *argument) {
    static const control_message alive = {.signal = ALIVE};
    gumbel_process_group *p = argument;
    bool listens[GB_MOST_RANKS];
    memset(listens, true, sizeof listens);
    double next = gb_seconds() + 1;
    while (wait_for_word(p, listens, next > gb_seconds() ? next - gb_seconds() : 0)) {
        if (gb_seconds() < next)
            continue;
        next = gb_seconds() + 1;
        count_silence(p, listens);
        if (!p->meeting.is_broken)
            tell_all(p, &alive);
    }
    return NULL;
}

bool gb_processes_watch(gumbel_process_group *p) {
    p->ending[0] = p->ending[1] = -1;
    if (pipe(p->ending) != 0)
        return false;
    fcntl(p->ending[0], F_SETFD, FD_CLOEXEC);
    fcntl(p->ending[1], F_SETFD, FD_CLOEXEC);
    p->watches = gb_start_thread(&p->watcher, watch, p);
    return p->watches;
}

void gb_processes_watch_end(gumbel_process_group *p) {
    if (p->watches) {
        while (write(p->ending[1], "", 1) < 0 && errno == EINTR)
            continue;
        pthread_join(p->watcher, NULL);
    }
    for (int i = 0; i < 2; i++)
        if (p->ending[i] >= 0)
            close(p->ending[i]);
}
