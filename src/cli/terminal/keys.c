/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/keys.h"

#include "cli/base/signals.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Milliseconds: a terminal sends a sequence at once, and a paste without pauses. */
enum { SEQUENCE_WAIT = 50, PASTE_WAIT = 200 };

static const char paste_begin[] = "\033[200~", paste_end[] = "\033[201~";

/* As read() of one byte. It waits in poll, which any signal ends, those as well whose handlers let other
 * calls go on. */
static ssize_t read_byte(cli_terminal_keys *keys, char *byte) {
    if (keys->ahead_count > 0) {
        *byte = keys->ahead[0];
        memmove(keys->ahead, keys->ahead + 1, --keys->ahead_count);
        return 1;
    }
    struct pollfd file = {.fd = keys->file, .events = POLLIN};
    return poll(&file, 1, -1) < 0 ? -1 : read(keys->file, byte, 1);
}

static bool is_ready(const cli_terminal_keys *keys, int milliseconds) {
    struct pollfd file = {.fd = keys->file, .events = POLLIN};
    return keys->ahead_count > 0 || poll(&file, 1, milliseconds) > 0;
}

/* Whether the rest of the sequence follows its first byte; otherwise what does follow is kept for later. */
static bool follows(cli_terminal_keys *keys, const char *rest) {
    char read_now[sizeof keys->ahead];
    size_t count = 0;
    bool matches = true;
    while (matches && rest[count] && is_ready(keys, SEQUENCE_WAIT) &&
           read_byte(keys, &read_now[count]) == 1) {
        matches = read_now[count] == rest[count];
        count++;
    }
    if (matches && !rest[count])
        return true;
    memmove(keys->ahead + count, keys->ahead, keys->ahead_count);
    memcpy(keys->ahead, read_now, count);
    keys->ahead_count += count;
    return false;
}

/* ---- Pastes -------------------------------------------------------------------------------------------- */

/* Leaves out zero bytes, which messages cannot have, and newlines at the end. A newline may have come as CR,
 * LF, or as either pair of them: the terminal's driver may have swapped them. */
static void tidy(gb_byte_buffer *paste) {
    size_t kept = 0;
    for (size_t i = 0; i < paste->size; i++) {
        char byte = paste->text[i], next = i + 1 < paste->size ? paste->text[i + 1] : '\0';
        bool is_newline = byte == '\r' || byte == '\n';
        if (is_newline && (next == '\r' || next == '\n') && next != byte)
            i++;
        if (byte)
            paste->text[kept++] = is_newline ? '\n' : byte;
    }
    while (kept > 0 && paste->text[kept - 1] == '\n')
        kept--;
    paste->text[paste->size = kept] = '\0';
}

static bool ends_in(const gb_byte_buffer *text, const char *end) {
    size_t length = strlen(end);
    return text->size >= length && memcmp(text->text + text->size - length, end, length) == 0;
}

/* Reads up to the end of the paste, of one that is interrupted as well: its rest must not count as typed. A
 * Ctrl-C that nothing follows is a key; the end was lost. */
static int read_paste(cli_terminal_keys *keys) {
    gb_byte_buffer *paste = &keys->paste;
    gb_buffer_clear(paste);
    while (!ends_in(paste, paste_end)) {
        char byte;
        if (cli_interrupted() && !is_ready(keys, PASTE_WAIT))
            return -1;
        ssize_t count = read_byte(keys, &byte);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return (int)count;
        cli_append(paste, &byte, 1);
        if (cli_terminal_signal_of(byte) == SIGINT && !is_ready(keys, PASTE_WAIT))
            raise(SIGINT);
    }
    paste->size -= sizeof paste_end - 1;
    tidy(paste);
    return cli_interrupted() ? -1 : 1;
}

/* ---- Keys ---------------------------------------------------------------------------------------------- */

/* Whether the byte completes a character. Bytes that are none, and C1, are left out. */
static bool decode(cli_terminal_keys *keys, char byte, wchar_t *key) {
    bool is_first = mbsinit(&keys->partial);
    size_t length = mbrtowc(key, &byte, 1, &keys->partial);
    if (length == (size_t)-1) {
        memset(&keys->partial, 0, sizeof keys->partial);
        return !is_first && decode(keys, byte, key);
    }
    return length != (size_t)-2 && (*key < CLI_KEY_PASTE || *key > 0x9F);
}

int cli_next_key(cli_terminal_keys *keys, wchar_t *key) {
    for (;;) {
        char byte;
        if (cli_terminal_changed()) {
            *key = CLI_KEY_REDRAW;
            return 1;
        }
        ssize_t count = read_byte(keys, &byte);
        int number = count == 1 ? cli_terminal_signal_of(byte) : 0;
        if (number)
            raise(number);
        if (cli_interrupted())
            return -1;
        if (number || (count < 0 && errno == EINTR))
            continue;
        if (count <= 0)
            return (int)count;
        if (byte == paste_begin[0] && follows(keys, paste_begin + 1)) {
            *key = CLI_KEY_PASTE;
            return read_paste(keys);
        }
        if (decode(keys, byte, key))
            return 1;
    }
}

void cli_terminal_keys_free(cli_terminal_keys *keys) {
    gb_buffer_free(&keys->paste);
}
