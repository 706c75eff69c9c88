/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/checkpoint/fingerprint.h"

#include "base/input_file.h"
#include "base/status.h"
#include "cli/checkpoint/names.h"
#include "hub/gguf_names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

enum { BLOCK_BYTES = 4096, BLOCKS = 256 };

/* Whether a folder's export may read the file of that name. */
static bool is_part_of_folder(const char *name) {
    return cli_ends_with(name, ".safetensors") || cli_ends_with(name, ".json") ||
           cli_ends_with(name, ".jinja");
}

/* Calls visit for each file of the checkpoint, in the order of names, until it fails. */
typedef gumbel_status (*visitor)(void *user, const char *path, const char *name, const struct stat *file,
                                 gumbel_error *error);

/* No output may replace a file that the program is made from, even where the program is in the cache. */
static gumbel_status note_and_visit(visitor visit, void *user, const char *path, const char *name,
                                    const struct stat *file, gumbel_error *error) {
    gumbel_status status = gb_note_input(path, file, error);
    return status == GUMBEL_OK ? visit(user, path, name, file, error) : status;
}

static gumbel_status visit_names(const char *folder, const char *gguf, const cli_names *names, visitor visit,
                                 void *user, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i < names->count && status == GUMBEL_OK; i++) {
        const char *name = names->items[i];
        struct stat file;
        if (!(gguf ? hub_is_same_gguf(name, gguf) : is_part_of_folder(name)))
            continue;
        char *path = cli_join(folder, name);
        if (stat(path, &file) == 0 && S_ISREG(file.st_mode))
            status = note_and_visit(visit, user, path, name, &file, error);
        free(path);
    }
    return status;
}

/* The chat templates in a folder of their own. */
static gumbel_status visit_templates(const char *checkpoint, visitor visit, void *user, gumbel_error *error) {
    char *folder = cli_join(checkpoint, "additional_chat_templates");
    cli_names names = {0};
    gumbel_status status = GUMBEL_OK;
    if (cli_names_read(&names, folder))
        status = visit_names(folder, NULL, &names, visit, user, error);
    cli_names_free(&names);
    free(folder);
    return status;
}

static gumbel_status visit_files(const char *checkpoint, visitor visit, void *user, gumbel_error *error) {
    struct stat file;
    if (stat(checkpoint, &file) != 0)
        return gb_fail_errno(error, errno, "%s", checkpoint);
    const char *slash = S_ISDIR(file.st_mode) ? NULL : strrchr(checkpoint, '/');
    const char *gguf = S_ISDIR(file.st_mode) ? NULL : slash ? slash + 1 : checkpoint;
    char *folder = !gguf   ? cli_copy_text(checkpoint, strlen(checkpoint))
                   : slash ? cli_copy_text(checkpoint, (size_t)(slash - checkpoint) + 1)
                           : cli_copy_text(".", 1);
    cli_names names = {0};
    gumbel_status status = cli_names_read(&names, folder)
                               ? visit_names(folder, gguf, &names, visit, user, error)
                               : gb_fail_errno(error, errno, "%s", folder);
    if (status == GUMBEL_OK && !gguf)
        status = visit_templates(checkpoint, visit, user, error);
    cli_names_free(&names);
    free(folder);
    return status;
}

/* ---- Names, sizes, times ------------------------------------------------------------------------------- */

void cli_fingerprint_file(const char *name, const struct stat *file, gb_byte_buffer *state) {
    char line[96];
    int length = snprintf(line, sizeof line, "%jd %jd.%09ld\n", (intmax_t)file->st_size,
                          (intmax_t)file->st_mtim.tv_sec, file->st_mtim.tv_nsec);
    cli_append(state, name, strlen(name) + 1);
    cli_append(state, line, (size_t)length);
}

static gumbel_status add_state(void *user, const char *path, const char *name, const struct stat *file,
                               gumbel_error *error) {
    (void)path;
    (void)error;
    cli_fingerprint_file(name, file, user);
    return GUMBEL_OK;
}

gumbel_status cli_fingerprint_files(const char *checkpoint, gb_byte_buffer *state, gumbel_error *error) {
    return visit_files(checkpoint, add_state, state, error);
}

/* ---- Contents ------------------------------------------------------------------------------------------ */

/* Adds the bytes at offset, BLOCK_BYTES of them or those up to the end. */
static bool add_block(int descriptor, off_t offset, XXH3_state_t *hash) {
    char block[BLOCK_BYTES];
    ssize_t count = pread(descriptor, block, sizeof block, offset);
    return count >= 0 && XXH3_64bits_update(hash, block, (size_t)count) == XXH_OK;
}

static gumbel_status add_sample(void *user, const char *path, const char *name, const struct stat *file,
                                gumbel_error *error) {
    XXH3_state_t *hash = user;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return gb_fail_errno(error, errno, "%s", path);
    off_t blocks = (file->st_size + BLOCK_BYTES - 1) / BLOCK_BYTES;
    off_t count = blocks < BLOCKS ? blocks : BLOCKS;
    bool is_read = XXH3_64bits_update(hash, name, strlen(name) + 1) == XXH_OK;
    for (off_t i = 0; i < count && is_read; i++) {
        off_t block = count > 1 ? i * (blocks - 1) / (count - 1) : 0;
        is_read = add_block(descriptor, block * BLOCK_BYTES, hash);
    }
    gumbel_status status = is_read ? GUMBEL_OK : gb_fail_errno(error, errno, "%s", path);
    close(descriptor);
    return status;
}

gumbel_status cli_fingerprint_sample(const char *checkpoint, uint64_t *sample, gumbel_error *error) {
    XXH3_state_t *hash = XXH3_createState();
    if (!hash || XXH3_64bits_reset(hash) != XXH_OK) {
        XXH3_freeState(hash);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its hash", checkpoint);
    }
    gumbel_status status = visit_files(checkpoint, add_sample, hash, error);
    *sample = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return status;
}
