/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/files.h"

#include "base/output_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static gumbel_status refuse_file(const char *path, gumbel_error *error) {
    return gb_fail_errno(error, errno, "%s", strcmp(path, "-") == 0 ? "standard input" : path);
}

/* 0 at the end and after an error. A signal that a handler has taken is no error. */
static size_t read_some(FILE *file, char *buffer, size_t size) {
    size_t count;
    while ((count = fread(buffer, 1, size, file)) == 0 && ferror(file) && errno == EINTR)
        clearerr(file);
    return count;
}

gumbel_status cli_read_file(const char *path, gb_byte_buffer *text, gumbel_error *error) {
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (!file)
        return refuse_file(path, error);
    char buffer[16384];
    size_t count;
    while ((count = read_some(file, buffer, sizeof buffer)) > 0)
        cli_append(text, buffer, count);
    cli_append(text, "", 0);
    gumbel_status status = ferror(file) ? refuse_file(path, error) : GUMBEL_OK;
    if (!is_stdin)
        fclose(file);
    return status;
}

gumbel_status cli_write_file(const char *path, const gb_byte_buffer *text, gumbel_error *error) {
    char buffer[4096];
    gb_output_file file;
    gumbel_status status = gb_output_create(&file, path, NULL, buffer, sizeof buffer, error);
    if (status == GUMBEL_OK)
        status = gb_output_write(&file, text->data, text->size, error);
    if (status == GUMBEL_OK)
        status = gb_output_commit(&file, NULL, 0, error);
    gb_output_close(&file);
    return status;
}

/* Links are followed as outputs do. */
void cli_clear_folder_of(const char *path) {
    gb_output_target target;
    if (gb_open_target(&target, path, NULL, NULL) == GUMBEL_OK)
        gb_collect_temporaries(target.directory);
    gb_close_target(&target);
}

void cli_drop_last_newline(gb_byte_buffer *text) {
    size_t length = text->size;
    if (length == 0 || text->text[length - 1] != '\n')
        return;
    length -= length > 1 && text->text[length - 2] == '\r' ? 2 : 1;
    text->text[text->size = length] = '\0';
}
