/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/pull.h"

#include "base/status.h"
#include "hub/cache.h"
#include "hub/gguf_names.h"
#include "hub/http.h"
#include "hub/lock.h"
#include "hub/partial.h"
#include "hub/snapshot.h"
#include "hub/transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

bool hub_can_pull(void) {
    return true;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

static gumbel_status fetch_listing(hub_plan *plan, const hub_callbacks *callbacks, gumbel_error *error) {
    enum { LONGEST_LISTING = 64 << 20 };
    char url[HUB_URL];
    gb_byte_buffer body = {0};
    if (!hub_listing_url(&plan->settings, &plan->name, url))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: its name is too long", plan->name.repository);
    gumbel_status status =
        hub_get(&plan->settings, url, plan->name.repository, LONGEST_LISTING, callbacks, &body, error);
    if (status == GUMBEL_OK)
        status = hub_parse_listing((const char *)body.data, body.size, plan->name.repository, &plan->listing,
                                   error);
    gb_buffer_free(&body);
    return status;
}

/* The snapshot, or in it the file or the GGUF that was chosen. */
static bool place_plan(hub_plan *plan) {
    char below[HUB_PATH];
    const char *file = plan->name.file;
    for (size_t i = 0; i < plan->listing.count && !file[0]; i++)
        if (hub_is_gguf_model(plan->listing.files[i].name) && hub_is_first_part(plan->listing.files[i].name))
            file = plan->listing.files[i].name;
    if (!hub_repository_folder(plan->name.repository, plan->folder) ||
        !hub_join("snapshots", plan->listing.commit, below) || !hub_join(plan->folder, below, plan->snapshot))
        return false;
    strcpy(plan->path, plan->snapshot);
    return !file[0] || hub_join(plan->snapshot, file, plan->path);
}

/* Equal files share a blob, which is downloaded once. */
static bool comes_with_another(const hub_plan *plan, size_t index) {
    const hub_file *files = plan->listing.files;
    for (size_t i = 0; i < index; i++)
        if (strcmp(files[i].hash, files[index].hash) == 0)
            return true;
    return false;
}

static gumbel_status count_missing(hub_plan *plan, const hub_callbacks *callbacks, gumbel_error *error) {
    char blobs[HUB_PATH];
    bool has_blobs = hub_join(plan->folder, "blobs", blobs);
    plan->bytes = plan->missing_bytes = 0;
    plan->missing = 0;
    for (size_t i = 0; i < plan->listing.count; i++) {
        hub_file *file = &plan->listing.files[i];
        file->is_here = comes_with_another(plan, i);
        if (!file->is_here)
            GB_TRY(hub_look_for(plan, file, callbacks, error));
        plan->bytes += file->size;
        plan->missing += !file->is_here;
        if (!file->is_here)
            plan->missing_bytes += file->size - (has_blobs ? hub_partial_bytes_there(blobs, file) : 0);
    }
    return GUMBEL_OK;
}

/* Sizes are at most 2^50 each: their sum cannot overflow. */
static gumbel_status check_size(const hub_plan *plan, gumbel_error *error) {
    enum { MOST_FILES = 10000 };
    uint64_t bytes = 0;
    if (plan->listing.count > MOST_FILES)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "%s: a model of %zu files; expected %d at most",
                       plan->name.repository, plan->listing.count, MOST_FILES);
    for (size_t i = 0; i < plan->listing.count; i++)
        if ((bytes += plan->listing.files[i].size) > UINT64_C(1) << 60)
            return gb_fail(error, GUMBEL_ERROR_LIMIT, "%s: its files have more than 2^60 bytes",
                           plan->name.repository);
    return GUMBEL_OK;
}

static gumbel_status make_plan(hub_plan *plan, const hub_callbacks *callbacks, gumbel_error *error) {
    GB_TRY(fetch_listing(plan, callbacks, error));
    GB_TRY(hub_select(&plan->listing, &plan->name, error));
    GB_TRY(check_size(plan, error));
    if (!place_plan(plan))
        return gb_fail(error, GUMBEL_ERROR_IO,
                       "%s: no place for it: neither HF_HUB_CACHE, HF_HOME nor HOME names a folder, or its "
                       "path is too long",
                       plan->name.repository);
    return count_missing(plan, callbacks, error);
}

gumbel_status hub_plan_pull(const hub_name *name, const hub_callbacks *callbacks, hub_plan *plan,
                            gumbel_error *error) {
    *plan = (hub_plan){.name = *name};
    GB_TRY(hub_read_settings(&plan->settings, error));
    if (plan->settings.is_offline)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "%s: HF_HUB_OFFLINE is set, so nothing is downloaded; unset it to download",
                       name->repository);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: libcurl does not start", name->repository);
    gumbel_status status = make_plan(plan, callbacks, error);
    curl_global_cleanup();
    return status;
}

void hub_plan_free(hub_plan *plan) {
    hub_listing_free(&plan->listing);
    *plan = (hub_plan){0};
}

/* ---- Download ------------------------------------------------------------------------------------------ */

static gumbel_status check_space(const hub_plan *plan, const char *blobs, gumbel_error *error) {
    struct statvfs disk;
    if (statvfs(blobs, &disk) != 0)
        return GUMBEL_OK;
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (room >= plan->missing_bytes)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_LIMIT,
                   "%s: the download needs %" PRIu64 " MB, and %s has room for %" PRIu64
                   " MB; HF_HUB_CACHE can name a folder on another disk",
                   plan->name.repository, plan->missing_bytes / 1000000 + 1, blobs, room / 1000000);
}

/* Under the repository's lock: another process may have downloaded it meanwhile. */
static gumbel_status download(hub_plan *plan, unsigned connections, const hub_callbacks *callbacks,
                              gumbel_error *error) {
    char blobs[HUB_PATH];
    GB_TRY(count_missing(plan, callbacks, error));
    if (!hub_join(plan->folder, "blobs", blobs))
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: the path is too long", plan->folder);
    GB_TRY(hub_make_folder(blobs, 0777, error));
    GB_TRY(check_space(plan, blobs, error));
    GB_TRY(hub_transfer(plan, blobs, connections, callbacks, error));
    return hub_publish(plan, error);
}

gumbel_status hub_pull(hub_plan *plan, unsigned connections, const hub_callbacks *callbacks,
                       gumbel_error *error) {
    int lock;
    GB_TRY(hub_lock(plan->name.repository, callbacks, &lock, error));
    curl_global_init(CURL_GLOBAL_DEFAULT);
    gumbel_status status = download(plan, connections, callbacks, error);
    curl_global_cleanup();
    hub_unlock(lock);
    return status;
}
