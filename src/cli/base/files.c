/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/files.h"

#include "cli/base/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static gumbel_status refuse_file(const char *path, gumbel_error *error) {
    cli_refuse(error, "%s: %s", strcmp(path, "-") == 0 ? "standard input" : path, strerror(errno));
    return error->status = GUMBEL_ERROR_IO;
}

gumbel_status cli_read_file(const char *path, cli_text *text, gumbel_error *error) {
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (!file)
        return refuse_file(path, error);
    char buffer[16384];
    size_t count;
    while ((count = fread(buffer, 1, sizeof buffer, file)) > 0)
        cli_text_add(text, buffer, count);
    cli_text_add(text, "", 0);
    gumbel_status status = ferror(file) ? refuse_file(path, error) : GUMBEL_OK;
    if (!is_stdin)
        fclose(file);
    return status;
}

void cli_drop_last_newline(cli_text *text) {
    size_t length = text->length;
    if (length == 0 || text->bytes[length - 1] != '\n')
        return;
    length -= length > 1 && text->bytes[length - 2] == '\r' ? 2 : 1;
    text->bytes[text->length = length] = '\0';
}
