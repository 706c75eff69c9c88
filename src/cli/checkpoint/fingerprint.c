/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/checkpoint/fingerprint.h"

#include "base/input_file.h"
#include "cli/checkpoint/names.h"
#include "hub/gguf_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

/* Every command reads them: few enough for a disk that has to seek, all of a config or template. */
enum { BLOCK_BYTES = 4096, BLOCKS = 32 };

static void add_blocks(int descriptor, off_t size, gb_byte_buffer *print) {
    char block[BLOCK_BYTES];
    off_t blocks = (size + BLOCK_BYTES - 1) / BLOCK_BYTES;
    off_t count = blocks < BLOCKS ? blocks : BLOCKS;
    for (off_t i = 0; i < count; i++) {
        off_t at = count > 1 ? i * (blocks - 1) / (count - 1) : 0;
        ssize_t length = pread(descriptor, block, sizeof block, at * BLOCK_BYTES);
        gb_buffer_append_u64(print, XXH3_64bits(block, length > 0 ? (size_t)length : 0));
    }
}

/* No output may replace a file that the program is made from, even where the program is in the cache. What
 * cannot be read is the export's to refuse, if it needs it. */
static gumbel_status add_file(const char *path, const char *name, const struct stat *file,
                              gb_byte_buffer *print, gumbel_error *error) {
    GB_TRY(gb_note_input(path, file, error));
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    gb_buffer_append(print, name, strlen(name) + 1);
    gb_buffer_append_u64(print, (uint64_t)file->st_size);
    gb_buffer_append_u64(print, (uint64_t)file->st_mtim.tv_sec);
    gb_buffer_append_u64(print, (uint64_t)file->st_mtim.tv_nsec);
    add_blocks(descriptor, file->st_size, print);
    if (descriptor >= 0)
        close(descriptor);
    return print->failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its hashes", path)
                         : GUMBEL_OK;
}

gumbel_status cli_fingerprint_file(const char *path, const char *name, gb_byte_buffer *print,
                                   gumbel_error *error) {
    struct stat file;
    return stat(path, &file) == 0 ? add_file(path, name, &file, print, error)
                                  : gb_fail_errno(error, errno, "%s", path);
}

/* Whether an export of the folder, or of its GGUF of that name, may read the file. */
static bool is_part(const char *name, const char *gguf) {
    return gguf ? hub_is_same_gguf(name, gguf)
                : cli_ends_with(name, ".safetensors") || cli_ends_with(name, ".json") ||
                      cli_ends_with(name, ".jinja");
}

/* In the order of names. A folder that cannot be read: errno says why. */
static gumbel_status add_folder(const char *folder, const char *gguf, gb_byte_buffer *print,
                                gumbel_error *error) {
    cli_names names = {0};
    struct stat file;
    gumbel_status status =
        cli_names_read(&names, folder) ? GUMBEL_OK : gb_fail_errno(error, errno, "%s", folder);
    for (size_t i = 0; i < names.count && status == GUMBEL_OK; i++) {
        char *path = cli_join(folder, names.items[i]);
        if (is_part(names.items[i], gguf) && stat(path, &file) == 0 && S_ISREG(file.st_mode))
            status = add_file(path, names.items[i], &file, print, error);
        free(path);
    }
    cli_names_free(&names);
    return status;
}

/* The chat templates in a folder of their own. */
static gumbel_status add_templates(const char *checkpoint, gb_byte_buffer *print, gumbel_error *error) {
    char *folder = cli_join(checkpoint, "additional_chat_templates");
    gumbel_status status = access(folder, F_OK) == 0 ? add_folder(folder, NULL, print, error) : GUMBEL_OK;
    free(folder);
    return status;
}

gumbel_status cli_fingerprint(const char *checkpoint, gb_byte_buffer *print, gumbel_error *error) {
    struct stat file;
    if (stat(checkpoint, &file) != 0)
        return gb_fail_errno(error, errno, "%s", checkpoint);
    if (S_ISDIR(file.st_mode)) {
        GB_TRY(add_folder(checkpoint, NULL, print, error));
        return add_templates(checkpoint, print, error);
    }
    const char *slash = strrchr(checkpoint, '/');
    char *folder =
        slash ? cli_copy_text(checkpoint, (size_t)(slash - checkpoint) + 1) : cli_copy_text(".", 1);
    gumbel_status status = add_folder(folder, slash ? slash + 1 : checkpoint, print, error);
    free(folder);
    return status;
}
