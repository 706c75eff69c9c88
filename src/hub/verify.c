/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/verify.h"

#include "base/output_file.h"
#include "base/portable.h"
#include "base/status.h"
#include "hub/cache.h"
#include "hub/gguf_names.h"
#include "hub/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- What is known ------------------------------------------------------------------------------------- */

enum { STATE = 96 };

/* "SIZE TIME INODE\n" of the file, which another file with these bytes or this name does not have. */
static bool describe(const char *blob, char state[STATE]) {
    struct stat file;
    if (stat(blob, &file) != 0)
        return false;
    snprintf(state, STATE, "%" PRIu64 " %" PRId64 ".%09ld %" PRIu64 "\n", (uint64_t)file.st_size,
             (int64_t)file.st_mtim.tv_sec, file.st_mtim.tv_nsec, (uint64_t)file.st_ino);
    return true;
}

static bool is_known(const char *hash, const char *state) {
    char path[HUB_PATH], known[STATE];
    if (!hub_records_folder(path) || !hub_join(path, hash, path))
        return false;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, known, sizeof known) : -1;
    if (file >= 0)
        close(file);
    return length == (ssize_t)strlen(state) && memcmp(known, state, (size_t)length) == 0;
}

static void remember(const char *hash, const char *state) {
    char path[HUB_PATH], buffer[STATE];
    gb_output_file file;
    if (!hub_records_folder(path) || hub_make_folder(path, 0700, NULL) != GUMBEL_OK ||
        !hub_join(path, hash, path))
        return;
    if (gb_output_create(&file, path, NULL, buffer, sizeof buffer, NULL) == GUMBEL_OK &&
        gb_output_write(&file, state, strlen(state), NULL) == GUMBEL_OK)
        (void)gb_output_commit(&file, NULL, 0, NULL);
    gb_output_close(&file);
}

void hub_note_whole(const char *blob, const char *hash) {
    char state[STATE];
    if (describe(blob, state))
        remember(hash, state);
}

/* ---- Hashing ------------------------------------------------------------------------------------------- */

typedef struct reading {
    const char *blob, *what;
    const hub_callbacks *callbacks;
    hub_file file; /* the blob's hash and size */
    int descriptor;
    hub_hash *hash;
} reading;

static bool goes_on(const reading *r, uint64_t done) {
    const hub_callbacks *callbacks = r->callbacks;
    return !callbacks || !callbacks->progress ||
           callbacks->progress(callbacks->user, r->what, done, r->file.size);
}

static gumbel_status hash_bytes(const reading *r, gumbel_error *error) {
    enum { PIECE = 1 << 16, PIECES_SHOWN = 256 };
    char bytes[PIECE];
    uint64_t done = 0;
    for (size_t pieces = 0;; pieces++) {
        const ssize_t count = read(r->descriptor, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return gb_fail_errno(error, errno, "%s", r->blob);
        if (count == 0)
            return GUMBEL_OK;
        if (!hub_hash_add(r->hash, bytes, (size_t)count))
            return gb_fail(error, GUMBEL_ERROR_IO, "%s: its hash cannot be computed", r->blob);
        done += (uint64_t)count;
        if (pieces % PIECES_SHOWN == 0 && !goes_on(r, done))
            return gb_fail(error, GUMBEL_ERROR_CANCELLED, "%s: cancelled while its hash was computed",
                           r->what);
    }
}

/* Hashes the open file from its start in one of the ways to begin. */
static gumbel_status compare(reading *r, hub_hash *(*begin)(const hub_file *), bool *is_equal,
                             gumbel_error *error) {
    char digits[HUB_HASH];
    if (lseek(r->descriptor, 0, SEEK_SET) != 0)
        return gb_fail_errno(error, errno, "%s", r->blob);
    r->hash = begin(&r->file);
    if (!r->hash)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its hash", r->blob);
    gumbel_status status = hash_bytes(r, error);
    hub_hash_end(r->hash, digits);
    *is_equal = status == GUMBEL_OK && strcmp(digits, r->file.hash) == 0;
    return status;
}

static gumbel_status hash_file(reading *r, bool *is_whole, gumbel_error *error) {
    struct stat file;
    r->descriptor = open(r->blob, O_RDONLY | O_CLOEXEC);
    if (r->descriptor < 0 || fstat(r->descriptor, &file) != 0)
        return gb_fail_errno(error, errno, "%s", r->blob);
    r->file.size = (uint64_t)file.st_size;
    GB_TRY(compare(r, hub_hash_begin, is_whole, error));
    if (*is_whole || strlen(r->file.hash) != HUB_SHA1)
        return GUMBEL_OK;
    return compare(r, hub_hash_begin_plain, is_whole, error);
}

gumbel_status hub_verify_blob(const char *blob, const char *hash, const char *what,
                              const hub_callbacks *callbacks, bool *is_whole, gumbel_error *error) {
    char state[STATE];
    reading r = {.blob = blob, .what = what, .callbacks = callbacks, .descriptor = -1};
    if (!describe(blob, state))
        return gb_fail_errno(error, errno, "%s", blob);
    *is_whole = is_known(hash, state);
    if (*is_whole)
        return GUMBEL_OK;
    snprintf(r.file.hash, sizeof r.file.hash, "%s", hash);
    gumbel_status status = hash_file(&r, is_whole, error);
    if (r.descriptor >= 0)
        close(r.descriptor);
    if (*is_whole) /* as it was before it was read */
        remember(hash, state);
    return status;
}

/* ---- Checkpoints --------------------------------------------------------------------------------------- */

/* The hash that names the blob which the link at path leads to; false for what is no such link. */
static bool find_hash(const char *path, char hash[HUB_HASH]) {
    char target[HUB_PATH];
    const ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    const char *name = strrchr(target, '/');
    static const char folder[] = "/blobs";
    const size_t before = sizeof folder - 1;
    if (!name || (size_t)(name - target) < before || memcmp(name - before, folder, before) != 0)
        return false;
    snprintf(hash, HUB_HASH, "%.*s", HUB_HASH - 1, name + 1);
    return hub_is_hash(name + 1, HUB_SHA1) || hub_is_hash(name + 1, HUB_SHA256);
}

static gumbel_status refuse(const char *path, const char *hash, gumbel_error *error) {
    char repository[HUB_REPOSITORY];
    return gb_fail(
        error, GUMBEL_ERROR_FORMAT,
        "%s: it is damaged: its bytes are not those of its blob's name, %s; get it again with: gumbel "
        "pull %s",
        path, hash, hub_repository_of(path, repository) ? repository : "ORG/NAME");
}

static gumbel_status verify_link(const char *folder, const char *name, const hub_callbacks *callbacks,
                                 gumbel_error *error) {
    char path[HUB_PATH], hash[HUB_HASH];
    bool is_whole;
    if (!hub_join(folder, name, path) || !find_hash(path, hash) || access(path, F_OK) != 0)
        return GUMBEL_OK; /* what lacks is the export's to refuse, if it needs it */
    GB_TRY(hub_verify_blob(path, hash, name, callbacks, &is_whole, error));
    return is_whole ? GUMBEL_OK : refuse(path, hash, error);
}

/* Whether an export of the folder, or of its GGUF of that name, may read the file. */
static bool is_read(const char *name, const char *gguf) {
    return gguf ? hub_is_same_gguf(name, gguf)
                : hub_ends_with(name, ".safetensors") || hub_ends_with(name, ".json") ||
                      hub_ends_with(name, ".jinja");
}

static gumbel_status verify_folder(const char *folder, const char *gguf, const hub_callbacks *callbacks,
                                   gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && !status && (entry = readdir(directory));)
        if (is_read(entry->d_name, gguf))
            status = verify_link(folder, entry->d_name, callbacks, error);
    if (directory)
        closedir(directory);
    return status;
}

gumbel_status hub_verify(const char *checkpoint, const hub_callbacks *callbacks, gumbel_error *error) {
    char folder[HUB_PATH];
    struct stat file;
    if (stat(checkpoint, &file) != 0)
        return GUMBEL_OK;
    if (S_ISDIR(file.st_mode))
        return verify_folder(checkpoint, NULL, callbacks, error);
    const char *slash = strrchr(checkpoint, '/'), *name = slash ? slash + 1 : checkpoint;
    if ((size_t)(name - checkpoint) >= sizeof folder)
        return GUMBEL_OK;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - checkpoint) : 1, slash ? checkpoint : ".");
    return verify_folder(folder[0] ? folder : "/", name, callbacks, error);
}
