/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/fatal_signals.h"

#include "base/temporary_file.h"
#include "cli/base/mapped_file.h"
#include "cli/base/report.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* ---- Temporary files ----------------------------------------------------------------------------------- */

enum { MOST_DESCRIPTORS = 1024 }; /* a command has some ten files open */

/* "/proc/self/fd/17"; snprintf is not for signal handlers. */
static void name_descriptor(int descriptor, char name[32]) {
    static const char folder[] = "/proc/self/fd/";
    size_t digits = 1;
    for (int rest = descriptor; rest >= 10; rest /= 10)
        digits++;
    memcpy(name, folder, sizeof folder);
    char *end = name + sizeof folder - 1 + digits;
    *end = '\0';
    for (; digits > 0; digits--, descriptor /= 10)
        *--end = (char)('0' + descriptor % 10);
}

/* Removes the file of a descriptor if it is a temporary one that is being written. */
static void remove_temporary(int descriptor) {
    char name[32], path[PATH_MAX];
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) != O_RDWR)
        return;
    name_descriptor(descriptor, name);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length <= 0)
        return;
    path[length] = '\0';
    const char *slash = strrchr(path, '/');
    if (slash && gb_is_temporary_name(slash + 1))
        unlink(path);
}

/* The system's own list of open files spares one of ours. Without /proc the next writer removes them. */
static void remove_temporaries(void) {
    for (int i = STDERR_FILENO + 1; i < MOST_DESCRIPTORS; i++)
        remove_temporary(i);
}

/* ---- Mapped files -------------------------------------------------------------------------------------- */

typedef struct line {
    char bytes[PATH_MAX + 256];
    size_t length;
} line;

static void add_text(line *text, const char *added) {
    for (; *added && text->length < sizeof text->bytes; added++)
        text->bytes[text->length++] = *added;
}

/* A path may hold what a terminal obeys. */
static void add_path(line *text, char *path) {
    for (char *byte = path; *byte; byte++)
        if ((unsigned char)*byte < ' ' || *byte == 0x7f)
            *byte = '?';
    add_text(text, path);
}

static void report_cut_file(char *path) {
    struct termios settings;
    line text = {.length = 0};
    if (tcgetattr(STDERR_FILENO, &settings) == 0)
        add_text(&text, "\r\033[K"); /* a line of progress may be there */
    add_text(&text, "gumbel: ");
    add_path(&text, path);
    add_text(&text, ": was cut short while it was in use, or cannot be read from its disk\n");
    if (write(STDERR_FILENO, text.bytes, text.length) < 0)
        return;
}

/* Whether the address is in a map of a file, not of a device or of memory that has a name. */
static bool find_file(uintptr_t address, char *path, size_t capacity) {
    struct stat file;
    return cli_find_mapped_file(address, path, capacity) && (stat(path, &file) != 0 || S_ISREG(file.st_mode));
}

/* ---- Handlers ------------------------------------------------------------------------------------------ */

/* The signal is blocked until its handler returns, and then does what it does by itself. */
static void end_by(int number) {
    signal(number, SIG_DFL);
    raise(number);
}

static void on_end(int number) {
    remove_temporaries();
    end_by(number);
}

static void on_bus_error(int number, siginfo_t *information, void *context) {
    static atomic_flag is_handled = ATOMIC_FLAG_INIT;
    char path[PATH_MAX];
    (void)context;
    while (atomic_flag_test_and_set(&is_handled)) /* by another thread, which ends them all */
        pause();
    remove_temporaries();
    if (information->si_code == BUS_ADRERR && find_file((uintptr_t)information->si_addr, path, sizeof path)) {
        report_cut_file(path);
        _exit(CLI_FAILED);
    }
    end_by(number);
}

static bool is_default(int number) {
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

void cli_handle_fatal_signals(void) {
    static const int ends[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXCPU};
    struct sigaction end = {.sa_handler = on_end};
    sigemptyset(&end.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (is_default(ends[i])) /* not where nohup or a shell has it ignored */
            sigaction(ends[i], &end, NULL);
    struct sigaction bus_error = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&bus_error.sa_mask);
    sigaction(SIGBUS, &bus_error, NULL);
    if (is_default(SIGXFSZ))
        signal(SIGXFSZ, SIG_IGN);
}
