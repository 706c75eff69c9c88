/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/partial.h"

#include "base/memory.h"
#include "base/portable.h"
#include "base/status.h"
#include "hub/cache.h"
#include "hub/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only DONE is written to the file. */
enum { MISSING = 0, DONE = 1, TAKEN = 2 };

static size_t count_chunks(const hub_file *file) {
    return (size_t)((file->size + HUB_CHUNK - 1) / HUB_CHUNK);
}

static uint64_t end_of(const hub_partial *partial, size_t chunk) {
    uint64_t end = ((uint64_t)chunk + 1) * HUB_CHUNK;
    return end < partial->file->size ? end : partial->file->size;
}

static gumbel_status refuse(const hub_partial *partial, gumbel_error *error) {
    if (errno != ENOSPC && errno != EDQUOT)
        return gb_fail_errno(error, errno, "%s", partial->path);
    return gb_fail(error, GUMBEL_ERROR_LIMIT, "%s: %s; what is there is kept", partial->path,
                   strerror(errno));
}

static bool write_all(int descriptor, const void *bytes, size_t count, uint64_t offset) {
    for (size_t done = 0; done < count;) {
        ssize_t written =
            pwrite(descriptor, (const char *)bytes + done, count - done, (off_t)(offset + done));
        if (written < 0 && errno != EINTR)
            return false;
        done += written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool read_all(int descriptor, void *bytes, size_t count, uint64_t offset) {
    for (size_t done = 0; done < count;) {
        ssize_t part = pread(descriptor, (char *)bytes + done, count - done, (off_t)(offset + done));
        if (part == 0)
            errno = EIO;
        if (part == 0 || (part < 0 && errno != EINTR))
            return false;
        done += part > 0 ? (size_t)part : 0;
    }
    return true;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static bool set_paths(const char *blobs, const hub_file *file, hub_partial *partial) {
    char name[HUB_HASH + sizeof HUB_INCOMPLETE];
    snprintf(name, sizeof name, "%s" HUB_INCOMPLETE, file->hash);
    return hub_join(blobs, file->hash, partial->blob) && hub_join(blobs, name, partial->path);
}

static void note_done(hub_partial *partial, size_t chunk) {
    if (partial->states[chunk] != DONE)
        partial->bytes += end_of(partial, chunk) - (uint64_t)chunk * HUB_CHUNK;
    partial->states[chunk] = DONE;
}

/* What an earlier process has left, if its size fits. One that has no marks was cut to its size when it was
 * complete, and its process then killed. False where the file is to begin empty. */
static bool read_marks(hub_partial *partial, uint64_t size) {
    const hub_file *file = partial->file;
    bool is_cut = size == file->size && size > 0;
    if (size != file->size + partial->chunks && !is_cut)
        return false;
    if (!is_cut && !read_all(partial->descriptor, partial->states, partial->chunks, file->size))
        return false;
    for (size_t i = 0; i < partial->chunks; i++) {
        bool is_done = is_cut || partial->states[i] == DONE;
        partial->states[i] = MISSING;
        if (is_done)
            note_done(partial, i);
    }
    partial->is_resumed = partial->bytes > 0;
    return true;
}

static gumbel_status open_file(hub_partial *partial, gumbel_error *error) {
    struct stat information;
    partial->descriptor = open(partial->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (partial->descriptor < 0 || fstat(partial->descriptor, &information) != 0)
        return refuse(partial, error);
    if (!read_marks(partial, (uint64_t)information.st_size) && ftruncate(partial->descriptor, 0) != 0)
        return refuse(partial, error);
    return ftruncate(partial->descriptor, (off_t)(partial->file->size + partial->chunks)) == 0
               ? GUMBEL_OK
               : refuse(partial, error);
}

gumbel_status hub_partial_open(const char *blobs, const hub_file *file, hub_partial *partial,
                               gumbel_error *error) {
    *partial = (hub_partial){.file = file, .descriptor = -1, .chunks = count_chunks(file)};
    if (!set_paths(blobs, file, partial))
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: the path is too long", blobs);
    partial->states = gb_allocate(partial->chunks, 1);
    partial->hash = hub_hash_begin(file);
    if (!partial->states || !partial->hash)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory to download it", file->name);
    return open_file(partial, error);
}

void hub_partial_close(hub_partial *partial) {
    if (partial->file && partial->descriptor >= 0)
        close(partial->descriptor);
    gb_free(partial->states);
    hub_hash_free(partial->hash);
    *partial = (hub_partial){.descriptor = -1};
}

/* ---- Ranges -------------------------------------------------------------------------------------------- */

/* A server without ranges sends everything, once to one connection. */
static bool claim_whole(hub_partial *partial, hub_range *range) {
    bool is_missing = false;
    for (size_t i = 0; i < partial->chunks; i++) {
        if (partial->states[i] == TAKEN)
            return false;
        is_missing = is_missing || partial->states[i] == MISSING;
    }
    for (size_t i = 0; is_missing && i < partial->chunks; i++)
        if (partial->states[i] == MISSING)
            partial->states[i] = TAKEN;
    *range = (hub_range){0, partial->file->size};
    return is_missing;
}

bool hub_partial_claim(hub_partial *partial, size_t limit, hub_range *range) {
    if (partial->is_whole)
        return claim_whole(partial, range);
    while (partial->first_missing < partial->chunks && partial->states[partial->first_missing] != MISSING)
        partial->first_missing++;
    size_t first = partial->first_missing, end = first;
    while (end < partial->chunks && end - first < limit && partial->states[end] == MISSING)
        partial->states[end++] = TAKEN;
    if (end == first)
        return false;
    *range = (hub_range){(uint64_t)first * HUB_CHUNK, end_of(partial, end - 1)};
    return true;
}

/* Bytes first, then their marks. */
static gumbel_status mark(hub_partial *partial, size_t first, size_t end, gumbel_error *error) {
    for (size_t i = first; i < end; i++)
        note_done(partial, i);
    return write_all(partial->descriptor, partial->states + first, end - first, partial->file->size + first)
               ? GUMBEL_OK
               : refuse(partial, error);
}

/* The chunk that the offset lies in; at the file's end the number of chunks. */
static size_t chunk_at(const hub_partial *partial, uint64_t offset) {
    return offset == partial->file->size ? partial->chunks : (size_t)(offset / HUB_CHUNK);
}

gumbel_status hub_partial_write(hub_partial *partial, hub_range *range, const void *bytes, size_t count,
                                gumbel_error *error) {
    if (!write_all(partial->descriptor, bytes, count, range->offset))
        return refuse(partial, error);
    size_t first = chunk_at(partial, range->offset);
    range->offset += count;
    return mark(partial, first, chunk_at(partial, range->offset), error);
}

void hub_partial_release(hub_partial *partial, uint64_t begin, const hub_range *range) {
    size_t end = chunk_at(partial, range->end);
    for (size_t i = chunk_at(partial, begin); i < end; i++)
        if (partial->states[i] == TAKEN) {
            partial->states[i] = MISSING;
            if (i < partial->first_missing)
                partial->first_missing = i;
        }
}

uint64_t hub_partial_bytes_there(const char *blobs, const hub_file *file) {
    hub_partial partial = {.descriptor = -1};
    gumbel_error ignored;
    if (!set_paths(blobs, file, &partial) || access(partial.path, F_OK) != 0)
        return 0;
    uint64_t bytes = hub_partial_open(blobs, file, &partial, &ignored) == GUMBEL_OK ? partial.bytes : 0;
    hub_partial_close(&partial);
    return bytes;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

gumbel_status hub_partial_hash(hub_partial *partial, size_t limit, bool *is_done, gumbel_error *error) {
    static const size_t piece = 1 << 16;
    char bytes[1 << 16];
    for (; limit > 0 && partial->hashed < partial->chunks && partial->states[partial->hashed] == DONE;
         limit--) {
        uint64_t offset = (uint64_t)partial->hashed * HUB_CHUNK, end = end_of(partial, partial->hashed);
        while (offset < end) {
            size_t count = end - offset < piece ? (size_t)(end - offset) : piece;
            if (!read_all(partial->descriptor, bytes, count, offset))
                return refuse(partial, error);
            if (!hub_hash_add(partial->hash, bytes, count))
                return gb_fail(error, GUMBEL_ERROR_IO, "%s: its hash cannot be computed", partial->path);
            offset += count;
        }
        partial->hashed++;
    }
    *is_done = partial->hashed == partial->chunks;
    return GUMBEL_OK;
}

gumbel_status hub_partial_finish(hub_partial *partial, gumbel_error *error) {
    char digits[HUB_HASH];
    const hub_file *file = partial->file;
    hub_hash_end(partial->hash, digits);
    partial->hash = NULL;
    if (strcmp(digits, file->hash) != 0) {
        unlink(partial->path);
        return gb_fail(
            error, GUMBEL_ERROR_FORMAT,
            "%s: what came has the %s %s, and the hub announced %s; it was removed: download again",
            file->name, strlen(file->hash) == HUB_SHA1 ? "git hash" : "SHA-256", digits, file->hash);
    }
    if (fdatasync(partial->descriptor) != 0 || ftruncate(partial->descriptor, (off_t)file->size) != 0 ||
        rename(partial->path, partial->blob) != 0)
        return refuse(partial, error);
    hub_note_whole(partial->blob, file->hash);
    return GUMBEL_OK;
}
