/* SPDX-License-Identifier: Apache-2.0
 *
 * A meeting of processes, at rank 0: it receives everybody's bytes and sends all of them to each.
 */
#include "backends/ranks/processes/processes.h"
#include "backends/ranks/processes/sockets.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

static void destroy(gb_meeting *meeting) {
    (void)meeting; /* it goes with its processes */
}

void gb_processes_lose(gumbel_process_group *p, const gb_peer *peer) {
    enum { LOOKS = 100 };
    const struct timespec pause = {.tv_nsec = 10000000};
    gumbel_error gone;
    for (int i = 0; i < LOOKS && !p->meeting.is_broken; i++)
        nanosleep(&pause, NULL);
    gb_fail(&gone, GUMBEL_ERROR_BACKEND, "%s has ended", peer->name);
    gb_meeting_break(&p->meeting, &gone);
}

static void lose_step(gumbel_process_group *p, const gb_peer *peer) {
    gumbel_error error;
    gb_fail(&error, GUMBEL_ERROR_BACKEND, "%s is not where rank 0 is in its step", peer->name);
    gb_meeting_break(&p->meeting, &error);
}

/* Who shares another number of bytes is not at the same place. */
static bool receive_part(gumbel_process_group *p, uint32_t rank, size_t size, uint8_t *to) {
    uint64_t of_peer = 0;
    const gb_peer *peer = &p->peers[rank];
    const bool has_come = gb_receive_all(peer->data, &of_peer, sizeof of_peer);
    if (has_come && of_peer == size && gb_receive_all(peer->data, to, size))
        return true;
    if (has_come && of_peer != size)
        lose_step(p, peer);
    else
        gb_processes_lose(p, peer);
    return false;
}

static bool gather_at_first(gumbel_process_group *p, size_t size, uint8_t *all) {
    for (uint32_t r = p->first_peer; r < p->end_peer; r++)
        if (!receive_part(p, r, size, all + r * size))
            return false;
    for (uint32_t r = p->first_peer; r < p->end_peer; r++)
        if (!gb_send_all(p->peers[r].data, all, p->launch.count * size, NULL, 0)) {
            gb_processes_lose(p, &p->peers[r]);
            return false;
        }
    return true;
}

static bool gather_elsewhere(gumbel_process_group *p, const void *mine, size_t size, uint8_t *all) {
    const uint64_t own = size;
    if (gb_send_all(p->peers[0].data, &own, sizeof own, mine, size) &&
        gb_receive_all(p->peers[0].data, all, p->launch.count * size))
        return true;
    gb_processes_lose(p, &p->peers[0]);
    return false;
}

/* Without memory the others cannot go on, either. */
static uint8_t *reserve(gumbel_process_group *p, size_t size) {
    gumbel_error error;
    gb_buffer_clear(&p->shared);
    uint8_t *all = gb_buffer_extend(&p->shared, p->launch.count * size + 1);
    if (!all) {
        gb_no_memory(&error, "what ranks share");
        gb_meeting_break(&p->meeting, &error);
    }
    return all;
}

static bool share(gb_meeting *meeting, uint32_t index, const void *mine, size_t size,
                  const void *all[GB_MOST_RANKS]) {
    gumbel_process_group *p = (gumbel_process_group *)meeting;
    uint8_t *to = meeting->is_broken ? NULL : reserve(p, size);
    if (!to)
        return false;
    for (uint32_t r = 0; r < p->launch.count; r++)
        all[r] = to + r * size;
    if (index > 0)
        return gather_elsewhere(p, mine, size, to);
    memcpy(to, mine, size);
    return gather_at_first(p, size, to);
}

static bool meet(gb_meeting *meeting, uint32_t index) {
    const void *all[GB_MOST_RANKS];
    return share(meeting, index, "", 0, all);
}

/* Everybody has copies. */
static bool release(gb_meeting *meeting, uint32_t index) {
    (void)index;
    return !meeting->is_broken;
}

/* Who is blocked in a connection goes on. */
static void wake(gb_meeting *meeting) {
    gumbel_process_group *p = (gumbel_process_group *)meeting;
    gb_processes_tell(p, &meeting->why);
    for (uint32_t r = p->first_peer; r < p->end_peer; r++)
        if (p->peers[r].data >= 0)
            shutdown(p->peers[r].data, SHUT_RDWR);
    gb_processes_call_back(p, &meeting->why);
}

const gb_meeting_functions gb_meeting_of_processes = {destroy, meet, share, release, false, wake};
