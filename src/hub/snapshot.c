/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/snapshot.h"

#include "base/output_file.h"
#include "base/status.h"
#include "hub/cache.h"
#include "hub/verify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_file_of(const char *path, uint64_t size) {
    struct stat information;
    return stat(path, &information) == 0 && S_ISREG(information.st_mode) &&
           (uint64_t)information.st_size == size;
}

static void note_damage(const char *blob, const hub_file *file, const hub_callbacks *callbacks) {
    char line[HUB_PATH + HUB_FILE];
    snprintf(line, sizeof line, "%.1000s: %.3000s is damaged, and is downloaded again", file->name, blob);
    if (callbacks && callbacks->note)
        callbacks->note(callbacks->user, line);
}

/* Whether a tool has put it into the snapshot without a blob. */
static bool is_in_snapshot(const hub_plan *plan, const hub_file *file) {
    char path[HUB_PATH];
    struct stat information;
    return hub_join(plan->snapshot, file->name, path) && lstat(path, &information) == 0 &&
           S_ISREG(information.st_mode) && is_file_of(path, file->size);
}

gumbel_status hub_look_for(const hub_plan *plan, hub_file *file, const hub_callbacks *callbacks,
                           gumbel_error *error) {
    char blob[HUB_PATH], name[HUB_HASH + 8];
    snprintf(name, sizeof name, "blobs/%s", file->hash);
    if (!hub_join(plan->folder, name, blob) || !is_file_of(blob, file->size)) {
        file->is_here = is_in_snapshot(plan, file);
        return GUMBEL_OK;
    }
    GB_TRY(hub_verify_blob(blob, file->hash, file->name, callbacks, &file->is_here, error));
    if (!file->is_here)
        note_damage(blob, file, callbacks);
    return GUMBEL_OK;
}

static gumbel_status make_folder_of(const char *path, gumbel_error *error) {
    char folder[HUB_PATH];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return hub_make_folder(folder, 0777, error);
}

/* "../../blobs/HASH", with one more step up for each folder of the name. */
static bool write_target(const hub_file *file, char target[HUB_PATH]) {
    size_t used = (size_t)snprintf(target, HUB_PATH, "../../");
    for (const char *slash = strchr(file->name, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (used + 4 > HUB_PATH)
            return false;
        used += (size_t)snprintf(target + used, HUB_PATH - used, "../");
    }
    return (size_t)snprintf(target + used, HUB_PATH - used, "blobs/%s", file->hash) < HUB_PATH - used;
}

/* A link is made in one step, so none is ever half there. */
static gumbel_status link_file(const hub_plan *plan, const hub_file *file, gumbel_error *error) {
    char path[HUB_PATH], target[HUB_PATH], found[HUB_PATH];
    if (!hub_join(plan->snapshot, file->name, path) || !write_target(file, target))
        return gb_fail(error, GUMBEL_ERROR_IO, "%s/%s: the path is too long", plan->snapshot, file->name);
    ssize_t length = readlink(path, found, sizeof found);
    bool is_right =
        length >= 0 && (size_t)length == strlen(target) && memcmp(found, target, strlen(target)) == 0;
    if (is_right || (length < 0 && errno == EINVAL && is_file_of(path, file->size)))
        return GUMBEL_OK;
    GB_TRY(make_folder_of(path, error));
    (void)unlink(path);
    if (symlink(target, path) != 0 && errno != EEXIST)
        return gb_fail_errno(error, errno, "%s: it cannot become a link", path);
    return GUMBEL_OK;
}

/* A reader sees the old commit or the new one. */
static gumbel_status write_commit(const char *path, const char *commit, gumbel_error *error) {
    char buffer[HUB_COMMIT];
    gb_output_file file;
    gumbel_status status = gb_output_create(&file, path, NULL, buffer, sizeof buffer, error);
    if (status == GUMBEL_OK)
        status = gb_output_write(&file, commit, strlen(commit), error);
    if (status == GUMBEL_OK)
        status = gb_output_commit(&file, NULL, 0, error);
    gb_output_close(&file);
    return status;
}

static gumbel_status write_ref(const hub_plan *plan, gumbel_error *error) {
    const char *revision = plan->name.revision[0] ? plan->name.revision : "main";
    char path[HUB_PATH];
    if (strcmp(revision, plan->listing.commit) == 0)
        return GUMBEL_OK;
    if (!hub_join(plan->folder, "refs", path) || !hub_join(path, revision, path))
        return gb_fail(error, GUMBEL_ERROR_IO, "%s/refs: the path is too long", plan->folder);
    GB_TRY(make_folder_of(path, error));
    return write_commit(path, plan->listing.commit, error);
}

gumbel_status hub_publish(const hub_plan *plan, gumbel_error *error) {
    for (size_t i = 0; i < plan->listing.count; i++)
        GB_TRY(link_file(plan, &plan->listing.files[i], error));
    return write_ref(plan, error);
}
