/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/signals.h"

#include "cli/base/report.h"
#include "cli/terminal/terminal.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* A signal handler takes no arguments, so what it works on stands here. */
static _Atomic(gumbel_session *) session_at_work;
static atomic_bool interrupted;

static void on_interrupt(int number) {
    (void)number;
    gumbel_session *session = atomic_load(&session_at_work);
    if (atomic_exchange(&interrupted, true) && session) {
        cli_terminal_restore();
        _exit(CLI_INTERRUPTED);
    }
    if (session)
        gumbel_session_cancel(session);
}

/* Those that are taken over, and what they did before. */
static struct {
    int number;
    bool is_taken;
    struct sigaction before;
} taken[] = {{.number = SIGINT}, {.number = SIGTERM}, {.number = SIGHUP}, {.number = SIGPIPE}};
enum { SIGNAL_COUNT = sizeof taken / sizeof *taken };

static void take_signal(size_t i) {
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    if (!taken[i].is_taken)
        taken[i].is_taken = sigaction(taken[i].number, &action, &taken[i].before) == 0;
}

void cli_catch_interrupt(void) {
    take_signal(0);
}

void cli_catch_termination(void) {
    struct sigaction now;
    for (size_t i = 1; i < SIGNAL_COUNT; i++)
        if (sigaction(taken[i].number, NULL, &now) == 0 && now.sa_handler != SIG_IGN) /* nohup */
            take_signal(i);
}

void cli_release_signals(void) {
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (taken[i].is_taken)
            taken[i].is_taken = sigaction(taken[i].number, &taken[i].before, NULL) != 0;
}

void cli_cancel_on_interrupt(gumbel_session *session) {
    atomic_store(&session_at_work, session);
}

bool cli_interrupted(void) {
    return atomic_load(&interrupted);
}

void cli_clear_interrupt(void) {
    atomic_store(&interrupted, false);
}
