/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of a block as fibers: each has a stack of its own and runs until it waits or returns.
 */
#include "device.h"
#include "races.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

namespace {

constexpr size_t STACK_BYTES = 128 * 1024, SHARED_BYTES = 228 * 1024;
constexpr unsigned MOST_THREADS = 1024;

enum class state { READY, GIVING_WAY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, RETURNED };

struct fiber {
    void *stack = nullptr;
    void *pointer = nullptr; /* of its stack while it waits */
    ucontext_t context;
    state is;
    dim3 index;
};

struct warp {
    unsigned alive, waiting, giving_way, turn;
    uint8_t values[2][WARP][EXCHANGE_BYTES];
};

/* Of the host's thread, since its block may be interrupted by another device's. */
thread_local fiber fibers[MOST_THREADS];
thread_local warp *const warps =
    new warp[MOST_THREADS / WARP]; /* kernels have only static variables in common */
thread_local fiber scheduler;
thread_local const std::function<void()> *running_kernel;
thread_local unsigned running, thread_count;
thread_local bool others_are_awaited;
alignas(128) uint8_t shared[SHARED_BYTES];

/* One launch runs at a time, whatever its device: shared memory is the kernels' static variables. */
std::mutex one_at_a_time;

[[noreturn]] void fail(const char *what) {
    fprintf(stderr, "emulated device: %s\n", what);
    abort();
}

/* ---- Switching ----------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
extern "C" void emulated_switch(void **from, void *to);
__asm__(".text\n.globl emulated_switch\n.type emulated_switch,@function\nemulated_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size emulated_switch,.-emulated_switch\n");
#endif

void switch_to(fiber &from, fiber &to) {
#if defined(__SANITIZE_ADDRESS__)
    void *fake = nullptr;
    const void *bottom = to.stack;
    size_t size = STACK_BYTES;
    static const void *own_bottom;
    static size_t own_size;
    if (&to == &scheduler) {
        bottom = own_bottom;
        size = own_size;
    }
    __sanitizer_start_switch_fiber(from.is == state::RETURNED ? nullptr : &fake, bottom, size);
#endif
#if defined(__x86_64__)
    emulated_switch(&from.pointer, to.pointer);
#else
    swapcontext(&from.context, &to.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
    const void *came_from;
    size_t came_from_size;
    __sanitizer_finish_switch_fiber(fake, &came_from, &came_from_size);
    if (&from != &scheduler) {
        own_bottom = came_from;
        own_size = came_from_size;
    }
#endif
}

void run_fiber() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    (*running_kernel)();
    fiber &self = fibers[running];
    self.is = state::RETURNED;
    warps[running / WARP].alive--;
    switch_to(self, scheduler);
    fail("a thread that returned went on");
}

void prepare(fiber &f) {
    if (!f.stack) {
        f.stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (f.stack == MAP_FAILED)
            fail("no memory for a stack");
    }
    f.is = state::READY;
#if defined(__x86_64__)
    /* As emulated_switch leaves it: six registers and where to go on; the stack is aligned as after a call.
     */
    void **top = reinterpret_cast<void **>(static_cast<uint8_t *>(f.stack) + STACK_BYTES - 64);
    top[7] = nullptr;
    top[6] = reinterpret_cast<void *>(run_fiber);
    for (int i = 0; i < 6; i++)
        top[i] = nullptr;
    f.pointer = top;
#else
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack;
    f.context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&f.context, run_fiber, 0);
#endif
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

/* Runs a warp's lanes until all wait for the block, give way to it or have returned. */
void run_warp(unsigned first, bool backwards) {
    warp &w = warps[first / WARP];
    const unsigned lanes = thread_count - first < WARP ? thread_count - first : (unsigned)WARP;
    for (bool progress = true; progress;) {
        progress = false;
        for (unsigned i = 0; i < lanes; i++) {
            running = first + (backwards ? lanes - 1 - i : i);
            if (fibers[running].is != state::READY)
                continue;
            threadIdx = fibers[running].index;
            set_running_thread((int)running);
            switch_to(scheduler, fibers[running]);
            set_running_thread(NO_THREAD);
            progress = true;
        }
        if (w.waiting > 0 && w.waiting == w.alive) {
            w.waiting = 0;
            order_warp(first, lanes);
            w.turn ^= 1;
            for (unsigned i = first; i < first + lanes; i++)
                if (fibers[i].is == state::AT_WARP_BARRIER)
                    fibers[i].is = state::READY;
            progress = true;
        }
    }
    if (w.waiting > 0 && w.giving_way == 0)
        fail("lanes of one warp wait at different barriers");
}

/* The lanes that gave way are ready again. Whether there were none: then all lanes wait for the block. */
bool go_on_where_way_was_given(unsigned warp_count) {
    bool none = true;
    for (unsigned t = 0; t < thread_count; t++)
        if (fibers[t].is == state::GIVING_WAY) {
            fibers[t].is = state::READY;
            none = false;
        }
    for (unsigned w = 0; w < warp_count; w++)
        warps[w].giving_way = 0;
    return none;
}

void let_others_run() {
    const dim3 block = blockIdx, blocks = gridDim, threads = blockDim;
    others_are_awaited = false;
    end_block_order();
    one_at_a_time.unlock();
    usleep(20);
    one_at_a_time.lock();
    blockIdx = block;
    gridDim = blocks;
    blockDim = threads;
}

void run_block(bool backwards) {
    thread_count = blockDim.x * blockDim.y * blockDim.z;
    const unsigned warp_count = (thread_count + WARP - 1) / WARP;
    for (unsigned t = 0; t < thread_count; t++) {
        prepare(fibers[t]);
        fibers[t].index = dim3(t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y));
    }
    for (unsigned w = 0; w < warp_count; w++) {
        memset(&warps[w], 0, sizeof warps[w]);
        warps[w].alive = thread_count - w * WARP < WARP ? thread_count - w * WARP : (unsigned)WARP;
    }
    for (unsigned waiting = 1; waiting > 0;) {
        for (unsigned w = 0; w < warp_count; w++)
            run_warp((backwards ? warp_count - 1 - w : w) * WARP, backwards);
        if (others_are_awaited)
            let_others_run();
        const bool is_waiting_for_all = go_on_where_way_was_given(warp_count);
        waiting = 0;
        for (unsigned t = 0; t < thread_count; t++)
            waiting += fibers[t].is != state::RETURNED;
        if (is_waiting_for_all && waiting > 0)
            order_block();
        for (unsigned t = 0; is_waiting_for_all && t < thread_count; t++)
            if (fibers[t].is == state::AT_BLOCK_BARRIER)
                fibers[t].is = state::READY;
    }
}

} // namespace

unsigned lane() {
    return running % WARP;
}

void require(bool holds, const char *otherwise) {
    if (!holds)
        fail(otherwise);
}

void *dynamic_shared() {
    return shared;
}

void block_barrier() {
    const unsigned self = running;
    fibers[self].is = state::AT_BLOCK_BARRIER;
    switch_to(fibers[self], scheduler);
}

void give_way() {
    const unsigned self = running;
    warps[self / WARP].giving_way++;
    fibers[self].is = state::GIVING_WAY;
    switch_to(fibers[self], scheduler);
}

void give_way_to_others() {
    others_are_awaited = true;
    give_way();
}

const uint8_t *exchange(const void *mine, size_t size) {
    const unsigned self = running;
    warp &w = warps[self / WARP];
    if (size > EXCHANGE_BYTES)
        fail("too many bytes are exchanged");
    const unsigned turn = w.turn;
    if (w.waiting == 0 && w.alive < WARP) /* lanes that have returned leave nothing */
        memset(w.values[turn], 0, sizeof w.values[turn]);
    uint8_t *const to = w.values[turn][self % WARP];
    if (size == 4) /* nearly always: without a call */
        memcpy(to, mine, 4);
    else
        memcpy(to, mine, size);
    w.waiting++;
    fibers[self].is = state::AT_WARP_BARRIER;
    switch_to(fibers[self], scheduler);
    return w.values[turn][0];
}

/* The order of accesses is followed in the first launches of each kernel and then in few, in two blocks: it
 * takes long. */
static bool follows_launch(const std::function<void()> &kernel) {
    static std::map<size_t, unsigned> launches;
    const unsigned before = launches[kernel.target_type().hash_code()]++;
    return before < 16 || before % 256 == 0;
}

static bool is_first(const dim3 &block) {
    return block.x == 0 && block.y == 0 && block.z == 0;
}

static bool is_last(const dim3 &block) {
    return block.x + 1 == gridDim.x && block.y + 1 == gridDim.y && block.z + 1 == gridDim.z;
}

void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel) {
    static bool last_backwards = false;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    const bool is_followed = follows_launch(kernel), backwards = last_backwards = !last_backwards;
    const size_t threads = (size_t)block.x * block.y * block.z;
    if (threads == 0 || threads > MOST_THREADS || shared_bytes > SHARED_BYTES || grid.y > 65535 ||
        grid.z > 65535 || grid.x == 0 || grid.y == 0 || grid.z == 0)
        fail("a launch that no device accepts");
    gridDim = grid;
    blockDim = block;
    running_kernel = &kernel;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                memset(shared, 0xff, shared_bytes);
                if (is_followed && (is_first(blockIdx) || is_last(blockIdx)))
                    begin_block_order((unsigned)threads);
                run_block(backwards);
                end_block_order();
            }
}

} // namespace emulated
