/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/mapped_file.h"

#include <fcntl.h>
#include <unistd.h>

/* A line of /proc/self/maps, read byte by byte: "FIRST-END rwxp OFFSET DEVICE INODE    /PATH". */
typedef struct map_line {
    enum { FIRST, END, OTHERS, PATH } field;
    uintptr_t first, end;
    char *path;
    size_t length, capacity; /* of path */
} map_line;

static void begin_line(map_line *line) {
    line->field = FIRST;
    line->first = line->end = 0;
    line->length = 0;
}

static uintptr_t add_digit(uintptr_t number, char digit) {
    return number * 16 + (uintptr_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

static void add_byte(map_line *line, char byte) {
    if (line->field == FIRST && byte == '-')
        line->field = END;
    else if (line->field == FIRST)
        line->first = add_digit(line->first, byte);
    else if (line->field == END && byte == ' ')
        line->field = OTHERS;
    else if (line->field == END)
        line->end = add_digit(line->end, byte);
    else if (line->field == OTHERS && byte == '/')
        line->field = PATH;
    if (line->field == PATH && line->length + 1 < line->capacity)
        line->path[line->length++] = byte;
}

bool cli_find_mapped_file(uintptr_t address, char *path, size_t capacity) {
    map_line line = {.path = path, .capacity = capacity};
    char bytes[1024];
    bool found = false;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    begin_line(&line);
    for (ssize_t count; maps >= 0 && !found && (count = read(maps, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < count && !found; i++) {
            if (bytes[i] != '\n') {
                add_byte(&line, bytes[i]);
                continue;
            }
            found = line.field == PATH && address >= line.first && address < line.end;
            if (!found)
                begin_line(&line);
        }
    path[found ? line.length : 0] = '\0';
    if (maps >= 0)
        close(maps);
    return found;
}
