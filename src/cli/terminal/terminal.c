/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { FEWEST_COLUMNS = 10 };

unsigned cli_terminal_columns(void) {
    struct winsize size;
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= FEWEST_COLUMNS;
    return is_known ? size.ws_col : 0;
}

/* ---- State --------------------------------------------------------------------------------------------- */

/* Signal handlers take no arguments, so what they work on stands here. */
static struct {
    volatile sig_atomic_t is_taken, has_changed, has_suspended;
    bool has_brackets;        /* not enabled on a terminal that may not know them */
    struct termios original;  /* as it is given back */
    struct termios suspended; /* as it was when the program was stopped */
} terminal;

/* Only those in the foreground may set a terminal; others are stopped for it. */
static bool is_foreground(void) {
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void ask_for_brackets(bool wanted) {
    static const char on[] = "\033[?2004h", off[] = "\033[?2004l";
    if (terminal.has_brackets && write(STDOUT_FILENO, wanted ? on : off, sizeof on - 1) < 0)
        return; /* a terminal that is gone has no state left */
}

void cli_terminal_restore(void) {
    if (!terminal.is_taken || !is_foreground())
        return;
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal.original);
    ask_for_brackets(false);
}

/* ---- Signals ------------------------------------------------------------------------------------------- */

static void on_end(int number, siginfo_t *info, void *context);
static void on_stop(int number, siginfo_t *info, void *context);
static void on_continue(int number, siginfo_t *info, void *context);
static void on_resize(int number, siginfo_t *info, void *context);

static struct {
    int number;
    void (*handler)(int, siginfo_t *, void *);
    bool is_fault; /* the instruction can be run again */
    bool is_installed;
    struct sigaction before;
} handled[] = {
    {.number = SIGINT, .handler = on_end}, /* until cli_catch_interrupt */
    {.number = SIGTERM, .handler = on_end},
    {.number = SIGHUP, .handler = on_end},
    {.number = SIGQUIT, .handler = on_end},
    {.number = SIGABRT, .handler = on_end},
    {.number = SIGSEGV, .handler = on_end, .is_fault = true},
    {.number = SIGBUS, .handler = on_end, .is_fault = true},
    {.number = SIGFPE, .handler = on_end, .is_fault = true},
    {.number = SIGILL, .handler = on_end, .is_fault = true},
    {.number = SIGTSTP, .handler = on_stop},
    {.number = SIGCONT, .handler = on_continue},
    {.number = SIGWINCH, .handler = on_resize},
};
enum { HANDLED_COUNT = sizeof handled / sizeof *handled };

static size_t index_of(int number) {
    size_t i = 0;
    while (i + 1 < HANDLED_COUNT && handled[i].number != number)
        i++;
    return i;
}

/* A write to a terminal that is stopped or resized must not fail. */
static void install(size_t i) {
    struct sigaction action = {.sa_sigaction = handled[i].handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(handled[i].number, NULL, &handled[i].before) == 0 &&
        handled[i].before.sa_handler != SIG_IGN) /* nohup; a shell without job control */
        handled[i].is_installed = sigaction(handled[i].number, &action, NULL) == 0;
}

static void uninstall(size_t i) {
    if (handled[i].is_installed)
        handled[i].is_installed = sigaction(handled[i].number, &handled[i].before, NULL) != 0;
}

/* What the signal did before happens next: a fault when its instruction is run again, with its address. */
static void on_end(int number, siginfo_t *info, void *context) {
    (void)context;
    size_t i = index_of(number);
    cli_terminal_restore();
    uninstall(i);
    if (!handled[i].is_fault || info->si_code <= 0)
        raise(number);
}

static void on_stop(int number, siginfo_t *info, void *context) {
    (void)info, (void)context;
    int kept_errno = errno;
    size_t i = index_of(number);
    sigset_t stop;
    if (is_foreground())
        terminal.has_suspended = tcgetattr(STDIN_FILENO, &terminal.suspended) == 0;
    cli_terminal_restore();
    uninstall(i);
    raise(number);
    sigemptyset(&stop);
    sigaddset(&stop, number);
    sigprocmask(SIG_UNBLOCK, &stop, NULL); /* the program stops here */
    install(i);
    errno = kept_errno;
}

static void on_continue(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    int kept_errno = errno;
    if (terminal.is_taken && is_foreground()) {
        if (terminal.has_suspended)
            tcsetattr(STDIN_FILENO, TCSANOW, &terminal.suspended);
        terminal.has_suspended = false;
        ask_for_brackets(true);
    }
    terminal.has_changed = true;
    errno = kept_errno;
}

static void on_resize(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    terminal.has_changed = true;
}

/* ---- Taking it ----------------------------------------------------------------------------------------- */

/* Bytes wait as they come, neither gathered into lines nor dropped by Ctrl-C: the end of a paste must not be
 * lost. Newlines are mapped as libedit has it. */
void cli_terminal_hush(void) {
    if (!terminal.is_taken || !is_foreground())
        return;
    struct termios quiet = terminal.original;
    quiet.c_lflag &= (tcflag_t) ~(ICANON | ECHO | ECHONL | IEXTEN);
    quiet.c_lflag |= ISIG | NOFLSH;
    quiet.c_iflag |= ICRNL | INLCR;
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
}

bool cli_terminal_take(void) {
    static bool is_registered;
    if (terminal.is_taken)
        return true;
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &terminal.original) != 0)
        return false;
    const char *kind = getenv("TERM");
    terminal.has_brackets = kind && *kind && strcmp(kind, "dumb") != 0;
    if (!is_registered)
        is_registered = atexit(cli_terminal_release) == 0;
    terminal.is_taken = true;
    for (size_t i = 0; i < HANDLED_COUNT; i++)
        install(i);
    ask_for_brackets(true);
    cli_terminal_hush();
    return true;
}

int cli_terminal_signal_of(char key) {
    const cc_t *keys = terminal.original.c_cc;
    cc_t byte = (cc_t)key;
    if (!terminal.is_taken || !(terminal.original.c_lflag & ISIG) || byte == _POSIX_VDISABLE)
        return 0;
    return byte == keys[VINTR] ? SIGINT : byte == keys[VQUIT] ? SIGQUIT : byte == keys[VSUSP] ? SIGTSTP : 0;
}

bool cli_terminal_changed(void) {
    bool changed = terminal.has_changed;
    terminal.has_changed = false;
    return changed;
}

void cli_terminal_release(void) {
    cli_terminal_restore();
    for (size_t i = 0; i < HANDLED_COUNT && terminal.is_taken; i++)
        uninstall(i);
    terminal.is_taken = false;
}
