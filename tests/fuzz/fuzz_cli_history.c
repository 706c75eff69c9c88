/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the file of what was typed: its entries are read, and an entry that is added, the text up to
 * the first zero byte, is the last one then.
 */
#include "base/memory.h"
#include "cli/terminal/history_file.h"
#include "support/temporary.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *last; /* entry that was read */
static size_t count;

static void take(void *user, const char *entry) {
    (void)user;
    gb_free(last);
    last = gb_copy_string(entry, strlen(entry));
    if (!entry[0] || ++count > CLI_HISTORY_ENTRIES)
        abort();
}

static void read_all(const char *path) {
    count = 0;
    cli_history_read(path, take, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = temporary_path("history");
    char *entry = gb_copy_string((const char *)data, size);
    if (!entry)
        return 0;
    write_file(path, data, size);
    read_all(path);
    cli_history_append(path, entry);
    read_all(path);
    if (entry[0] && size <= CLI_HISTORY_ENTRY_BYTES && (!last || strcmp(last, entry) != 0))
        abort();
    gb_free(entry);
    gb_free(last);
    last = NULL;
    return 0;
}
