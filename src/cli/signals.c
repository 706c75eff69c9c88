/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signals.h"

#include "cli/report.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* A signal handler takes no arguments, so what it works on stands here. */
static _Atomic(gumbel_session *) session_at_work;
static atomic_bool interrupted;

static void on_interrupt(int number) {
    (void)number;
    gumbel_session *session = atomic_load(&session_at_work);
    if (atomic_exchange(&interrupted, true) && session)
        _exit(CLI_INTERRUPTED);
    if (session)
        gumbel_session_cancel(session);
}

void cli_catch_interrupt(void) {
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void cli_catch_termination(void) {
    struct sigaction before, action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    static const int numbers[] = {SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
            sigaction(numbers[i], &action, NULL);
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
