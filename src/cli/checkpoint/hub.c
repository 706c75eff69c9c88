/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/checkpoint/hub.h"

#include "cli/base/report.h"
#include "cli/checkpoint/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
#define FOLDER_PREFIX "models--"
enum { LONGEST_NAME = 96, LONGEST_REF = 128 };

static bool is_folder(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 && S_ISDIR(file.st_mode);
}

/* ---- Names --------------------------------------------------------------------------------------------- */

/* Whether length bytes may be an organization's or a repository's name. */
static bool is_name(const char *text, size_t length) {
    return length > 0 && length <= LONGEST_NAME && strspn(text, LETTERS "-.") >= length &&
           memchr(LETTERS, text[0], sizeof LETTERS - 1) &&
           memchr(LETTERS, text[length - 1], sizeof LETTERS - 1);
}

/* Bytes of "ORG/NAME" at the beginning of text; 0: there is none. */
static size_t repository_length(const char *text) {
    size_t organization = strcspn(text, "/@");
    if (text[organization] != '/' || !is_name(text, organization))
        return 0;
    const char *name = text + organization + 1;
    size_t length = strcspn(name, "/@"), whole = organization + 1 + length;
    if (!is_name(name, length))
        return 0;
    for (size_t i = 0; i + 1 < whole; i++)
        if ((text[i] == '-' || text[i] == '.') && text[i + 1] == text[i])
            return 0;
    return whole;
}

/* A revision or a file must stay below the folder that it is looked for in. */
static bool stays_below(const char *path, size_t length) {
    if (length == 0 || path[0] == '/')
        return false;
    for (size_t i = 0; i + 1 < length; i++)
        if (path[i] == '.' && path[i + 1] == '.')
            return false;
    return true;
}

bool cli_hub_parse(const char *text, cli_hub_name *name) {
    *name = (cli_hub_name){0};
    size_t repository = repository_length(text);
    const char *file = text + repository, *at = strchr(file, '@');
    size_t file_length = at ? (size_t)(at - file) : strlen(file);
    if (repository == 0 || cli_ends_with(text, ".gumbel") || (at && !stays_below(at + 1, strlen(at + 1))) ||
        (file_length > 0 && !stays_below(file + 1, file_length - 1)))
        return false;
    name->repository = cli_copy_text(text, repository);
    if (file_length > 0)
        name->file = cli_copy_text(file + 1, file_length - 1);
    if (at)
        name->revision = cli_copy_text(at + 1, strlen(at + 1));
    return true;
}

void cli_hub_name_free(cli_hub_name *name) {
    free(name->repository);
    free(name->file);
    free(name->revision);
    *name = (cli_hub_name){0};
}

char *cli_hub_repository(const char *path) {
    const char *folder = path;
    do {
        const char *begin = *folder == '/' ? folder + 1 : folder;
        size_t length = strcspn(begin, "/"), prefix = sizeof FOLDER_PREFIX - 1;
        if (length > prefix && strncmp(begin, FOLDER_PREFIX, prefix) == 0) {
            char *name = cli_copy_text(begin + prefix, length - prefix), *dashes = strstr(name, "--");
            if (dashes) {
                *dashes = '/';
                memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
            }
            bool is_whole = dashes ? repository_length(name) == strlen(name) : is_name(name, strlen(name));
            if (is_whole)
                return name;
            free(name);
        }
        folder = strchr(begin, '/');
    } while (folder);
    return NULL;
}

/* ---- Folders ------------------------------------------------------------------------------------------- */

/* The hub's folder; false where the environment tells of none. */
static bool add_hub(cli_text *path) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    const char *home = getenv("HOME");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *value = getenv(places[i].variable);
        if (!value || !value[0])
            continue;
        if (value[0] == '~' && (value[1] == '/' || !value[1]) && home) {
            cli_text_add(path, home, strlen(home));
            value++;
        }
        cli_text_add(path, value, strlen(value));
        cli_text_add(path, places[i].below, strlen(places[i].below));
        return true;
    }
    return false;
}

char *cli_hub_folder(const char *repository) {
    cli_text path = {0};
    if (!add_hub(&path))
        return NULL;
    size_t organization = strcspn(repository, "/");
    cli_text_add(&path, "/" FOLDER_PREFIX, sizeof FOLDER_PREFIX);
    cli_text_add(&path, repository, organization);
    cli_text_add(&path, "--", 2);
    cli_text_add(&path, repository + organization + 1, strlen(repository + organization + 1));
    return path.bytes;
}

bool cli_hub_is_repository(const char *path) {
    const char *last = strrchr(path, '/');
    char *snapshots = cli_join(path, "snapshots");
    bool is_repository =
        strncmp(last ? last + 1 : path, FOLDER_PREFIX, sizeof FOLDER_PREFIX - 1) == 0 && is_folder(snapshots);
    free(snapshots);
    return is_repository;
}

/* ---- Snapshots ----------------------------------------------------------------------------------------- */

/* The commit that refs/REVISION names; false where there is none. */
static bool read_ref(const char *folder, const char *revision, char commit[LONGEST_REF]) {
    char *refs = cli_join(folder, "refs"), *path = cli_join(refs, revision);
    struct stat information;
    bool is_file = stat(path, &information) == 0 && S_ISREG(information.st_mode);
    FILE *file = is_file ? fopen(path, "rb") : NULL;
    size_t length = file ? fread(commit, 1, LONGEST_REF - 1, file) : 0;
    commit[length] = '\0';
    commit[strspn(commit, LETTERS)] = '\0';
    if (file)
        fclose(file);
    free(refs);
    free(path);
    return commit[0] != '\0';
}

/* The folder of the commit, or NULL. */
static char *snapshot_of(const char *folder, const char *commit) {
    char *snapshots = cli_join(folder, "snapshots"), *path = cli_join(snapshots, commit);
    free(snapshots);
    if (is_folder(path))
        return path;
    free(path);
    return NULL;
}

static gumbel_status refuse_revision(const char *folder, const char *revision, const cli_names *commits,
                                     gumbel_error *error) {
    char list[192], *repository = cli_hub_repository(folder);
    const char *name = repository ? repository : "ORG/NAME";
    cli_names_describe(commits, list, sizeof list);
    if (commits->count > 0)
        cli_refuse(error, "%s: no revision %s, only %s; get it with: hf download %s --revision %s", folder,
                   revision, list, name, revision);
    else
        cli_refuse(error, "%s: no revision was downloaded; get one with: hf download %s", folder, name);
    free(repository);
    return error->status = GUMBEL_ERROR_IO;
}

gumbel_status cli_hub_find_snapshot(const char *folder, const char *revision, char **snapshot,
                                    gumbel_error *error) {
    char commit[LONGEST_REF], *snapshots = cli_join(folder, "snapshots");
    const char *wanted = revision ? revision : "main";
    cli_names commits = {0};
    cli_names_read(&commits, snapshots);
    free(snapshots);
    *snapshot = read_ref(folder, wanted, commit) ? snapshot_of(folder, commit) : NULL;
    if (!*snapshot && revision && !strchr(revision, '/'))
        *snapshot = snapshot_of(folder, revision);
    if (!*snapshot && !revision && commits.count == 1)
        *snapshot = snapshot_of(folder, commits.items[0]);
    gumbel_status status = *snapshot ? GUMBEL_OK : refuse_revision(folder, wanted, &commits, error);
    cli_names_free(&commits);
    return status;
}
