/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/checkpoint/checkpoint.h"

#include "base/status.h"
#include "cli/checkpoint/gguf.h"
#include "cli/checkpoint/names.h"
#include "hub/cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *copy(const char *text) {
    return cli_copy_text(text, strlen(text));
}

char *cli_canonical_path(const char *path) {
    struct stat file;
    const char *slash = strrchr(path, '/');
    if (stat(path, &file) == 0 && S_ISDIR(file.st_mode))
        return realpath(path, NULL);
    char *folder = slash ? cli_copy_text(path, slash == path ? 1 : (size_t)(slash - path)) : copy(".");
    char *real = realpath(folder, NULL);
    char *whole = real ? cli_join(strcmp(real, "/") == 0 ? "" : real, slash ? slash + 1 : path) : NULL;
    free(folder);
    free(real);
    return whole;
}

static bool is_folder(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 && S_ISDIR(file.st_mode);
}

static bool has_config(const char *folder) {
    char path[HUB_PATH];
    return hub_join(folder, "config.json", path) && access(path, F_OK) == 0;
}

/* A file; or a folder with a checkpoint or a GGUF, which quant chooses as cli_find_gguf says; shown is how a
 * user can name it. What it lacks otherwise the library says best. */
static gumbel_status open_found(const char *path, const char *shown, const char *quant,
                                cli_checkpoint *checkpoint, gumbel_error *error) {
    bool is_asked = quant && quant[0];
    if (is_folder(path) && (is_asked || !has_config(path)))
        GB_TRY(cli_find_gguf(path, shown, quant, &checkpoint->path, error));
    if (checkpoint->path)
        return GUMBEL_OK;
    if (is_folder(path) && is_asked) {
        checkpoint->is_absent = true;
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: no .gguf of %s is there; get it with: gumbel pull %s:%s",
                       path, quant, shown, quant);
    }
    checkpoint->path = copy(path);
    return GUMBEL_OK;
}

/* What name says of the repository whose folder is given; name is zeroed where the folder itself was named.
 */
static gumbel_status open_repository(const char *folder, const hub_name *name, cli_checkpoint *checkpoint,
                                     gumbel_error *error) {
    char path[HUB_PATH];
    checkpoint->is_absent = true;
    GB_TRY(hub_find_snapshot(folder, name->revision, path, error));
    if (name->file[0] && (!hub_join(path, name->file, path) || access(path, F_OK) != 0))
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: %s; get it with: gumbel pull %s/%s", path,
                       strerror(errno), checkpoint->repository, name->file);
    checkpoint->is_absent = false;
    return open_found(path, name->repository[0] ? name->repository : path, name->quant, checkpoint, error);
}

/* ---- What was named ------------------------------------------------------------------------------------ */

/* A path that is there. */
static gumbel_status open_path(const char *given, cli_checkpoint *checkpoint, gumbel_error *error) {
    char repository[HUB_REPOSITORY];
    if (!is_folder(given) && !cli_is_gguf(given))
        return GUMBEL_OK;
    char *whole = cli_canonical_path(given);
    if (whole && hub_repository_of(whole, repository))
        checkpoint->repository = copy(repository);
    checkpoint->shown = copy(checkpoint->repository ? checkpoint->repository : given);
    bool is_repository = checkpoint->repository && hub_is_repository(whole);
    gumbel_status status = is_repository ? open_repository(whole, &(hub_name){.file = ""}, checkpoint, error)
                                         : open_found(given, given, NULL, checkpoint, error);
    free(whole);
    return status;
}

static gumbel_status refuse_name(const char *given, const hub_name *name, const char *folder,
                                 gumbel_error *error) {
    const char *where = folder ? folder : "place: neither HF_HUB_CACHE, HF_HOME nor HOME is set";
    const char *mark = name->revision[0] ? "@" : name->quant[0] ? ":" : "";
    return gb_fail(error, GUMBEL_ERROR_IO,
                   "%s: no such file, and the hub's cache has no %s; get it with: gumbel pull %s%s%s", given,
                   where, name->repository, mark, name->revision[0] ? name->revision : name->quant);
}

static gumbel_status open_name(const char *given, const hub_name *name, cli_checkpoint *checkpoint,
                               gumbel_error *error) {
    char folder[HUB_PATH];
    struct stat information;
    bool has_place = hub_repository_folder(name->repository, folder);
    checkpoint->repository = copy(name->repository);
    checkpoint->shown = copy(given);
    if (has_place && stat(folder, &information) == 0)
        return open_repository(folder, name, checkpoint, error);
    checkpoint->is_absent = true;
    return refuse_name(given, name, has_place ? folder : NULL, error);
}

gumbel_status cli_checkpoint_find(const char *given, cli_checkpoint *checkpoint, gumbel_error *error) {
    *checkpoint = (cli_checkpoint){0};
    struct stat file;
    if (stat(given, &file) == 0)
        return open_path(given, checkpoint, error);
    bool is_missing = errno == ENOENT || errno == ENOTDIR;
    hub_name name;
    return is_missing && hub_parse_name(given, &name) ? open_name(given, &name, checkpoint, error)
                                                      : GUMBEL_OK;
}

void cli_checkpoint_free(cli_checkpoint *checkpoint) {
    free(checkpoint->path);
    free(checkpoint->repository);
    free(checkpoint->shown);
    *checkpoint = (cli_checkpoint){0};
}

void cli_checkpoint_explain(const cli_checkpoint *checkpoint, gumbel_error *error) {
    const char *path = checkpoint->path, *repository = checkpoint->repository;
    if (!path || error->status != GUMBEL_ERROR_IO || strncmp(error->message, path, strlen(path)) != 0)
        return;
    size_t used = strlen(error->message), room = sizeof error->message - used;
    if (repository)
        snprintf(error->message + used, room, "; get it with: gumbel pull %s", repository);
    else if (is_folder(path) && !has_config(path))
        snprintf(error->message + used, room, ", and there is no .gguf either");
}
