/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/cache.h"

#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 && S_ISDIR(file.st_mode);
}

bool hub_join(const char *folder, const char *name, char path[HUB_PATH]) {
    char joined[HUB_PATH];
    size_t first = strlen(folder), second = strlen(name);
    if (first + second + 2 > HUB_PATH)
        return false;
    memcpy(joined, folder, first);
    joined[first] = '/';
    memcpy(joined + first + 1, name, second + 1);
    memcpy(path, joined, first + second + 2);
    return true;
}

gumbel_status hub_make_folder(const char *path, mode_t mode, gumbel_error *error) {
    char made[HUB_PATH];
    if (strlen(path) >= sizeof made)
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: the path is too long", path);
    strcpy(made, path);
    for (char *slash = strchr(made + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(made, mode) != 0 && errno != EEXIST && access(made, X_OK) != 0)
            return gb_fail_errno(error, errno, "%s", made);
        if (!slash)
            return GUMBEL_OK;
        *slash = '/';
    }
}

/* ---- Folders ------------------------------------------------------------------------------------------- */

typedef struct place {
    const char *variable, *below;
} place;

/* The first of the variables that is set, with what is below it; "~" is the user's home. */
static bool find_place(const place *places, size_t count, char path[HUB_PATH]) {
    const char *home = getenv("HOME");
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(places[i].variable);
        if (!value || !value[0])
            continue;
        bool is_home = value[0] == '~' && (value[1] == '/' || !value[1]) && home;
        int length = snprintf(path, HUB_PATH, "%s%s%s", is_home ? home : "", is_home ? value + 1 : value,
                              places[i].below);
        return length > 0 && length < HUB_PATH;
    }
    return false;
}

bool hub_cache_folder(char path[HUB_PATH]) {
    static const place places[] = {{"HF_HUB_CACHE", ""},
                                   {"HF_HOME", "/hub"},
                                   {"XDG_CACHE_HOME", "/huggingface/hub"},
                                   {"HOME", "/.cache/huggingface/hub"}};
    return find_place(places, sizeof places / sizeof *places, path);
}

bool hub_home_path(const char *name, char path[HUB_PATH]) {
    static const place places[] = {
        {"HF_HOME", ""}, {"XDG_CACHE_HOME", "/huggingface"}, {"HOME", "/.cache/huggingface"}};
    return find_place(places, sizeof places / sizeof *places, path) && hub_join(path, name, path);
}

bool hub_records_folder(char path[HUB_PATH]) {
    static const place places[] = {{"XDG_CACHE_HOME", "/gumbel/blobs"}, {"HOME", "/.cache/gumbel/blobs"}};
    return find_place(places, sizeof places / sizeof *places, path) && path[0] == '/';
}

bool hub_repository_folder(const char *repository, char path[HUB_PATH]) {
    char folder[HUB_REPOSITORY + 16];
    int organization = (int)strcspn(repository, "/");
    snprintf(folder, sizeof folder, "models--%.*s--%s", organization, repository,
             repository + organization + (repository[organization] == '/'));
    return hub_cache_folder(path) && hub_join(path, folder, path);
}

bool hub_is_repository(const char *path) {
    const char *last = strrchr(path, '/');
    char snapshots[HUB_PATH];
    return strncmp(last ? last + 1 : path, "models--", 8) == 0 && hub_join(path, "snapshots", snapshots) &&
           is_folder(snapshots);
}

/* ---- Snapshots ----------------------------------------------------------------------------------------- */

/* The commit that refs/REVISION names; false where there is none. */
static bool read_ref(const char *folder, const char *revision, char commit[HUB_REVISION]) {
    char path[HUB_PATH];
    struct stat information;
    if (!hub_join(folder, "refs", path) || !hub_join(path, revision, path) || stat(path, &information) != 0 ||
        !S_ISREG(information.st_mode))
        return false;
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(commit, 1, HUB_REVISION - 1, file) : 0;
    commit[length] = '\0';
    commit[strspn(commit, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")] = '\0';
    if (file)
        fclose(file);
    return commit[0] != '\0';
}

static bool find_commit(const char *folder, const char *commit, char snapshot[HUB_PATH]) {
    return hub_join(folder, "snapshots", snapshot) && hub_join(snapshot, commit, snapshot) &&
           is_folder(snapshot);
}

/* The names of the snapshots that are there, for messages. */
typedef struct commits {
    size_t count;
    char only[HUB_REVISION]; /* the first */
    char text[192];          /* "a, b and 2 more" */
} commits;

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void list_commits(const char *folder, commits *found) {
    enum { MOST_SHOWN = 2 };
    char path[HUB_PATH];
    struct dirent **entries;
    *found = (commits){0};
    int count = hub_join(folder, "snapshots", path) ? scandir(path, &entries, is_visible, alphasort) : -1;
    for (int i = 0; i < count; i++) {
        size_t used = strlen(found->text);
        if (i == 0)
            snprintf(found->only, sizeof found->only, "%.100s", entries[0]->d_name);
        if (i < MOST_SHOWN)
            snprintf(found->text + used, sizeof found->text - used, "%s%.64s", i ? ", " : "",
                     entries[i]->d_name);
        free(entries[i]);
    }
    if (count > MOST_SHOWN)
        snprintf(found->text + strlen(found->text), sizeof found->text - strlen(found->text), " and %d more",
                 count - MOST_SHOWN);
    if (count >= 0)
        free(entries);
    found->count = count > 0 ? (size_t)count : 0;
}

static gumbel_status refuse_revision(const char *folder, const char *revision, const commits *there,
                                     gumbel_error *error) {
    char repository[HUB_REPOSITORY];
    const char *name = hub_repository_of(folder, repository) ? repository : "ORG/NAME";
    if (there->count > 0)
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: no revision %s, only %s; get it with: gumbel pull %s@%s",
                       folder, revision, there->text, name, revision);
    return gb_fail(error, GUMBEL_ERROR_IO, "%s: no revision was downloaded; get one with: gumbel pull %s",
                   folder, name);
}

gumbel_status hub_find_snapshot(const char *folder, const char *revision, char snapshot[HUB_PATH],
                                gumbel_error *error) {
    const char *wanted = revision[0] ? revision : "main";
    char commit[HUB_REVISION];
    commits there;
    if (read_ref(folder, wanted, commit) && find_commit(folder, commit, snapshot))
        return GUMBEL_OK;
    if (revision[0] && !strchr(revision, '/') && find_commit(folder, revision, snapshot))
        return GUMBEL_OK;
    list_commits(folder, &there);
    if (!revision[0] && there.count == 1 && find_commit(folder, there.only, snapshot))
        return GUMBEL_OK;
    return refuse_revision(folder, wanted, &there, error);
}

/* ---- Weights ------------------------------------------------------------------------------------------- */

static bool has_file(const char *folder, const char *name) {
    char path[HUB_PATH];
    return hub_join(folder, name, path) && access(path, R_OK) == 0;
}

/* Whether every file is there that the index of split weights names. */
static bool has_indexed_weights(const char *snapshot) {
    char path[HUB_PATH];
    if (!hub_join(snapshot, "model.safetensors.index.json", path))
        return false;
    json_t *index = json_load_file(path, 0, NULL), *file;
    json_t *map = json_object_get(index, "weight_map");
    const char *tensor;
    bool is_whole = json_object_size(map) > 0;
    json_object_foreach(map, tensor, file) {
        const char *name = json_string_value(file);
        is_whole = is_whole && name && hub_stays_below(name) && has_file(snapshot, name);
    }
    json_decref(index);
    return is_whole;
}

bool hub_has_weights(const char *snapshot) {
    return has_file(snapshot, "config.json") &&
           (has_file(snapshot, "model.safetensors") || has_indexed_weights(snapshot));
}
