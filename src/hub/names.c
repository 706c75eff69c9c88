/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/names.h"

#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
#define FOLDER_PREFIX "models--"
enum { LONGEST_NAME = 96 };

/* Whether length bytes may be an organization's or a repository's name. */
static bool is_name(const char *text, size_t length) {
    return length > 0 && length <= LONGEST_NAME && strspn(text, LETTERS "-.") >= length &&
           memchr(LETTERS, text[0], sizeof LETTERS - 1) &&
           memchr(LETTERS, text[length - 1], sizeof LETTERS - 1);
}

/* Bytes of "ORG/NAME" at the beginning of text; 0: there is none. */
static size_t repository_length(const char *text) {
    size_t organization = strcspn(text, "/@:");
    if (text[organization] != '/' || !is_name(text, organization))
        return 0;
    const char *name = text + organization + 1;
    size_t length = strcspn(name, "/@:"), whole = organization + 1 + length;
    if (!is_name(name, length))
        return 0;
    for (size_t i = 0; i + 1 < whole; i++)
        if ((text[i] == '-' || text[i] == '.') && text[i + 1] == text[i])
            return 0;
    return whole;
}

bool hub_stays_below(const char *path) {
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.'))))
            return false;
        for (size_t i = 0; i < length; i++)
            if ((unsigned char)part[i] < ' ' || part[i] == 0x7f || part[i] == '\\')
                return false;
        part += length;
        if (*part == '\0')
            return true;
    }
}

bool hub_ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

bool hub_is_hash(const char *text, size_t length) {
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* Copies length bytes; false where they are none or too many. */
static bool copy_part(char *part, size_t capacity, const char *text, size_t length) {
    if (length == 0 || length >= capacity)
        return false;
    memcpy(part, text, length);
    part[length] = '\0';
    return true;
}

/* A path part: also one that stays below its folder. */
static bool copy_path(char *part, size_t capacity, const char *text, size_t length) {
    return copy_part(part, capacity, text, length) && hub_stays_below(part);
}

static const char *without_host(const char *text) {
    static const char *const hosts[] = {"hf.co/", "huggingface.co/", "https://hf.co/",
                                        "https://huggingface.co/"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (strncmp(text, hosts[i], strlen(hosts[i])) == 0)
            return text + strlen(hosts[i]);
    return text;
}

/* What follows "ORG/NAME". */
static bool parse_rest(const char *rest, hub_name *name) {
    size_t length = strcspn(rest, "@");
    if (rest[length] == '@' &&
        !copy_path(name->revision, sizeof name->revision, rest + length + 1, strlen(rest + length + 1)))
        return false;
    if (rest[0] == ':')
        return strspn(rest + 1, LETTERS "-.") + 1 == length &&
               copy_part(name->quant, sizeof name->quant, rest + 1, length - 1);
    return length == 0 || copy_path(name->file, sizeof name->file, rest + 1, length - 1);
}

bool hub_parse_name(const char *text, hub_name *name) {
    *name = (hub_name){0};
    text = without_host(text);
    size_t repository = repository_length(text);
    if (repository > 0 && !hub_ends_with(text, ".gumbel") &&
        copy_part(name->repository, sizeof name->repository, text, repository) &&
        parse_rest(text + repository, name))
        return true;
    *name = (hub_name){0};
    return false;
}

/* "ORG/NAME" of one part of a path, or "NAME" of a repository that no organization has. */
static bool repository_of_folder(const char *folder, size_t length, char repository[HUB_REPOSITORY]) {
    size_t prefix = sizeof FOLDER_PREFIX - 1;
    if (length <= prefix || strncmp(folder, FOLDER_PREFIX, prefix) != 0 ||
        !copy_part(repository, HUB_REPOSITORY, folder + prefix, length - prefix))
        return false;
    char *dashes = strstr(repository, "--");
    if (!dashes)
        return is_name(repository, strlen(repository));
    *dashes = '/';
    memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    return repository_length(repository) == strlen(repository);
}

bool hub_repository_of(const char *path, char repository[HUB_REPOSITORY]) {
    for (const char *folder = path;; folder++) {
        size_t length = strcspn(folder, "/");
        if (repository_of_folder(folder, length, repository))
            return true;
        folder += length;
        if (*folder == '\0')
            return false;
    }
}
