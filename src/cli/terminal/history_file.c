/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/history_file.h"

#include "cli/base/storage.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The file ------------------------------------------------------------------------------------------ */

/* Opens and locks it until it is closed; -1: there is no such regular file. */
static int open_locked(const char *path, int flags) {
    int file = open(path, flags | O_RDWR | O_NONBLOCK | O_CLOEXEC, 0600); /* a FIFO would wait */
    struct stat state;
    if (file < 0)
        return -1;
    if (fstat(file, &state) != 0 || !S_ISREG(state.st_mode)) {
        close(file);
        return -1;
    }
    if ((state.st_mode & 077) != 0)
        fchmod(file, 0600);
    flock(file, LOCK_EX); /* where locks are not known, as well as can be */
    return file;
}

static bool write_all(int file, const char *bytes, size_t length, off_t at) {
    while (length > 0) {
        ssize_t written = pwrite(file, bytes, length, at);
        if (written <= 0)
            return false;
        bytes += written;
        at += written;
        length -= (size_t)written;
    }
    return true;
}

/* Adds the end of the file, so much of it as a file should have, from the beginning of an entry on. */
static off_t read_end(int file, gb_byte_buffer *text) {
    char buffer[16384];
    off_t size = lseek(file, 0, SEEK_END);
    off_t begin = size > CLI_HISTORY_FILE_BYTES ? size - CLI_HISTORY_FILE_BYTES : 0;
    ssize_t count;
    for (off_t at = begin; (count = pread(file, buffer, sizeof buffer, at)) > 0; at += count)
        cli_append(text, buffer, (size_t)count);
    cli_append(text, "", 0);
    const char *newline = begin > 0 ? memchr(text->text, '\n', text->size) : NULL;
    size_t cut = newline ? (size_t)(newline + 1 - text->text) : 0;
    memmove(text->text, text->text + cut, text->size + 1 - cut);
    text->size -= cut;
    return size;
}

/* ---- Entries ------------------------------------------------------------------------------------------- */

static void spell_entry(const char *entry, gb_byte_buffer *line) {
    for (; *entry; entry++)
        if (*entry == '\n' || *entry == '\\')
            cli_append(line, *entry == '\n' ? "\\n" : "\\\\", 2);
        else
            cli_append(line, entry, 1);
    cli_append_string(line, "\n");
}

/* The reverse, in place, up to the newline or the end. */
static void read_entry(char *line) {
    char *to = line;
    for (; *line && *line != '\n'; line++) {
        bool is_escape = line[0] == '\\' && (line[1] == 'n' || line[1] == '\\');
        line += is_escape;
        *to++ = is_escape && *line == 'n' ? '\n' : *line;
    }
    *to = '\0';
}

/* Where the last entries begin, at most so many of at most so many bytes. */
static size_t begin_of_last(const gb_byte_buffer *text, size_t entries, size_t bytes) {
    size_t at = text->size;
    for (size_t count = 0; count < entries && at > 0; count++) {
        size_t begin = at - 1;
        while (begin > 0 && text->text[begin - 1] != '\n')
            begin--;
        if (text->size - begin > bytes)
            break;
        at = begin;
    }
    return at;
}

/* In place: what is written takes no new room, so that a full disk loses nothing. */
static void shorten(int file, const gb_byte_buffer *text, off_t size) {
    size_t half = CLI_HISTORY_FILE_BYTES / 2;
    size_t longest = begin_of_last(text, 2 * CLI_HISTORY_ENTRIES, half);
    if (longest == 0 && size <= CLI_HISTORY_FILE_BYTES)
        return;
    size_t begin = begin_of_last(text, CLI_HISTORY_ENTRIES, half / 2);
    bool is_done = write_all(file, text->text + begin, text->size - begin, 0) &&
                   ftruncate(file, (off_t)(text->size - begin)) == 0;
    (void)is_done; /* the next one may succeed */
}

void cli_history_read(const char *path, cli_history_callback callback, void *user) {
    int file = open_locked(path, 0);
    if (file < 0)
        return;
    gb_byte_buffer text = {0};
    off_t size = read_end(file, &text);
    shorten(file, &text, size);
    close(file);
    size_t at = begin_of_last(&text, CLI_HISTORY_ENTRIES, text.size);
    while (at < text.size) {
        char *line = text.text + at;
        at += strcspn(line, "\n") + 1;
        read_entry(line);
        if (*line)
            callback(user, line);
    }
    gb_buffer_free(&text);
}

void cli_history_append(const char *path, const char *entry) {
    gb_byte_buffer line = {0};
    char last = '\n';
    int file = strlen(entry) <= CLI_HISTORY_ENTRY_BYTES ? open_locked(path, O_CREAT) : -1;
    if (file < 0)
        return;
    off_t end = lseek(file, 0, SEEK_END);
    if (end > 0 && pread(file, &last, 1, end - 1) == 1 && last != '\n')
        cli_append_string(&line, "\n"); /* another one could not write all of its own */
    spell_entry(entry, &line);
    bool is_whole = write_all(file, line.text, line.size, end) || ftruncate(file, end) == 0;
    (void)is_whole; /* the next one ends a line that is not */
    close(file);
    gb_buffer_free(&line);
}
