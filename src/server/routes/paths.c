/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes/paths.h"

#include <stddef.h>
#include <string.h>

enum { MOST_PATH = 128 };

static const char *next_segment(const char *path, size_t *length) {
    path += strspn(path, "/");
    *length = strcspn(path, "/");
    return path;
}

static bool is_prefix(const char *segment, size_t length) {
    static const char *const prefixes[] = {"v1", "api", "openai", "anthropic"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strlen(prefixes[i]) == length && strncmp(prefixes[i], segment, length) == 0)
            return true;
    return false;
}

/* What a path says without prefixes and doubled slashes: "chat/completions". */
static void shorten(const char *path, char text[MOST_PATH]) {
    size_t length, used = 0;
    for (path = next_segment(path, &length); length > 0; path = next_segment(path + length, &length)) {
        if (used == 0 && is_prefix(path, length))
            continue;
        if (used + length + 2 > MOST_PATH)
            break;
        if (used > 0)
            text[used++] = '/';
        memcpy(text + used, path, length);
        used += length;
    }
    text[used] = '\0';
}

/* Ollama's and llama.cpp's names. */
static const char *translate(const char *name) {
    static const char *const names[][2] = {{"chat", "chat/completions"},
                                           {"generate", "completions"},
                                           {"completion", "completions"},
                                           {"tags", "models"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], name) == 0)
            return names[i][1];
    return name;
}

bool server_is_path_meant(const char *path, const char *route) {
    char given[MOST_PATH], known[MOST_PATH];
    shorten(path, given);
    shorten(route, known);
    return known[0] && strcmp(translate(given), known) == 0;
}
