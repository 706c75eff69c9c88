/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/listing.h"

#include "base/memory.h"
#include "base/status.h"

#include <jansson.h>
#include <string.h>

enum { MOST_FILES = 100000 };
static const uint64_t largest_file = UINT64_C(1) << 50;

static gumbel_status refuse(const char *repository, const char *name, const char *field, const char *expected,
                            gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: the hub's list of files: %.200s: %s: expected %s",
                   repository, name, field, expected);
}

/* Copies a hash of that many digits; false where the value is none. */
static bool copy_hash(const json_t *value, size_t digits, char *hash) {
    const char *text = json_string_value(value);
    if (!text || !hub_is_hash(text, digits))
        return false;
    memcpy(hash, text, digits + 1);
    return true;
}

/* A large file's hash and size stand in "lfs"; of others git's hash is "blobId". */
static gumbel_status read_file(const json_t *entry, const char *repository, hub_file *file,
                               gumbel_error *error) {
    const json_t *lfs = json_object_get(entry, "lfs"), *size = json_object_get(entry, "size");
    bool is_large = json_is_object(lfs);
    if (is_large && json_object_get(lfs, "size"))
        size = json_object_get(lfs, "size");
    if (!json_is_integer(size) || json_integer_value(size) < 0 ||
        (uint64_t)json_integer_value(size) > largest_file)
        return refuse(repository, file->name, "size", "a number of bytes", error);
    file->size = (uint64_t)json_integer_value(size);
    if (is_large && !copy_hash(json_object_get(lfs, "sha256"), HUB_SHA256, file->hash))
        return refuse(repository, file->name, "lfs.sha256", "64 hexadecimal digits", error);
    if (!is_large && !copy_hash(json_object_get(entry, "blobId"), HUB_SHA1, file->hash))
        return refuse(repository, file->name, "blobId", "40 hexadecimal digits", error);
    return GUMBEL_OK;
}

static gumbel_status add_file(const json_t *entry, const char *repository, hub_listing *listing,
                              gumbel_error *error) {
    const json_t *value = json_object_get(entry, "rfilename");
    const char *name = json_string_value(value);
    if (!name)
        return refuse(repository, "siblings", "rfilename", "a text", error);
    if (strlen(name) != json_string_length(value) || strlen(name) >= HUB_FILE || !hub_stays_below(name))
        return GUMBEL_OK;
    hub_file *file = &listing->files[listing->count];
    file->name = gb_copy_string(name, strlen(name));
    if (!file->name)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for the list of files", repository);
    listing->count++;
    return read_file(entry, repository, file, error);
}

static gumbel_status read_listing(const json_t *root, const char *repository, hub_listing *listing,
                                  gumbel_error *error) {
    const json_t *siblings = json_object_get(root, "siblings");
    if (!copy_hash(json_object_get(root, "sha"), HUB_COMMIT - 1, listing->commit))
        return refuse(repository, "sha", "the commit", "40 hexadecimal digits", error);
    if (!json_is_array(siblings))
        return refuse(repository, "siblings", "the files", "an array", error);
    size_t count = json_array_size(siblings);
    if (count > MOST_FILES)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "%s: %zu files; expected %d at most", repository, count,
                       MOST_FILES);
    listing->files = gb_allocate(count, sizeof *listing->files);
    if (!listing->files)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for the list of files", repository);
    for (size_t i = 0; i < count; i++)
        GB_TRY(add_file(json_array_get(siblings, i), repository, listing, error));
    return GUMBEL_OK;
}

gumbel_status hub_parse_listing(const char *bytes, size_t length, const char *repository,
                                hub_listing *listing, gumbel_error *error) {
    json_error_t wrong;
    *listing = (hub_listing){0};
    json_t *root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong);
    if (!root)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: the hub's list of files: line %d: %s", repository,
                       wrong.line, wrong.text);
    gumbel_status status = read_listing(root, repository, listing, error);
    json_decref(root);
    return status;
}

void hub_listing_free(hub_listing *listing) {
    for (size_t i = 0; i < listing->count; i++)
        gb_free(listing->files[i].name);
    gb_free(listing->files);
    *listing = (hub_listing){0};
}
