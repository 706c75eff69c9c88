/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/checkpoint/fingerprint.h"

#include "base/input_file.h"
#include "base/portable.h"
#include "cli/checkpoint/names.h"
#include "hub/gguf_names.h"
#include "hub/names.h"

#include <errno.h>
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

/* gb_open_input sees to it that no output replaces a file that the program is made from. */
gumbel_status cli_fingerprint_file(const char *path, const char *name, gb_byte_buffer *print,
                                   gumbel_error *error) {
    struct stat file;
    int descriptor;
    GB_TRY(gb_open_input(path, &descriptor, &file, error));
    gb_buffer_append(print, name, strlen(name) + 1);
    gb_buffer_append_u64(print, (uint64_t)file.st_size);
    gb_buffer_append_u64(print, (uint64_t)file.st_mtim.tv_sec);
    gb_buffer_append_u64(print, (uint64_t)file.st_mtim.tv_nsec);
    add_blocks(descriptor, file.st_size, print);
    close(descriptor);
    return print->failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its hashes", path)
                         : GUMBEL_OK;
}

/* Whether an export of the folder, or of its GGUF of that name, may read the file. */
static bool is_part(const char *name, const char *gguf) {
    return gguf ? hub_is_same_gguf(name, gguf)
                : hub_ends_with(name, ".safetensors") || hub_ends_with(name, ".json") ||
                      hub_ends_with(name, ".jinja");
}

/* In the order of names. What cannot be read is the export's to refuse, if it needs it. */
static gumbel_status add_folder(const char *folder, const char *gguf, gb_byte_buffer *print,
                                gumbel_error *error) {
    cli_names names = {0};
    gumbel_status status = GUMBEL_OK;
    if (!cli_names_read(&names, folder))
        return gb_fail_errno(error, errno, "%s", folder);
    for (size_t i = 0; i < names.count && status != GUMBEL_ERROR_MEMORY; i++) {
        char *path = cli_join(folder, names.items[i]);
        if (is_part(names.items[i], gguf))
            status = cli_fingerprint_file(path, names.items[i], print, error);
        free(path);
    }
    cli_names_free(&names);
    return status == GUMBEL_ERROR_MEMORY ? status : GUMBEL_OK;
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
    const char *name = strrchr(checkpoint, '/') + 1;
    char *folder = cli_copy_text(checkpoint, (size_t)(name - checkpoint));
    gumbel_status status = add_folder(folder, name, print, error);
    free(folder);
    return status;
}
