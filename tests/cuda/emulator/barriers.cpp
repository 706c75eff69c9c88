/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers in shared memory, and what all threads of a block find out together.
 */
#include "device.h"

namespace emulated {

static void end_phase_if_complete(copy_barrier *barrier) {
    if (barrier->missing > 0 || barrier->bytes != 0)
        return;
    barrier->missing = barrier->arrivals;
    barrier->parity ^= 1;
}

void begin_barrier(copy_barrier *barrier, unsigned arrivals) {
    *barrier = {arrivals, arrivals, 0, 0};
}

void arrive_expecting(copy_barrier *barrier, unsigned bytes) {
    release_order(barrier);
    barrier->missing--;
    barrier->bytes += (int32_t)bytes;
    end_phase_if_complete(barrier);
}

void count_copied(copy_barrier *barrier, unsigned bytes) {
    release_order(barrier);
    barrier->bytes -= (int32_t)bytes;
    end_phase_if_complete(barrier);
}

bool has_ended(const copy_barrier *barrier, unsigned parity) {
    if (barrier->parity == parity)
        return false;
    acquire_order(barrier);
    return true;
}

void wait_for_phase(const copy_barrier *barrier, unsigned parity) {
    while (!has_ended(barrier, parity))
        give_way();
}

int any_of_block(int predicate) {
    static int any; /* one block runs at a time */
    block_barrier();
    any = 0;
    block_barrier();
    any |= predicate;
    block_barrier();
    return any;
}

} // namespace emulated
