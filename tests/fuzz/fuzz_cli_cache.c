/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the record of a program in the cache: it is listed, whatever the record says.
 */
#include "cli/cache/list.h"
#include "support/temporary.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *cache_once(void) {
    static char path[512];
    if (!path[0]) {
        snprintf(path, sizeof path, "%s/cache", temporary_directory());
        if (mkdir(path, 0700) != 0)
            abort();
        snprintf(path, sizeof path, "%s/cache/model-0123456789abcdef", temporary_directory());
        if (mkdir(path, 0700) != 0)
            abort();
        snprintf(path, sizeof path, "%s/cache", temporary_directory());
    }
    return path;
}

static void check(const cli_cache_entry *entry) {
    if (!entry->source)
        return;
    const char *end = entry->record.text + entry->record.size;
    if (entry->source[0] != '/' || entry->model > end || entry->recipe + strlen(entry->recipe) > end)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *cache = cache_once();
    cli_cache_entries entries;
    gumbel_error error;
    char record[600];
    snprintf(record, sizeof record, "%s/model-0123456789abcdef/entry", cache);
    write_file(record, data, size);
    if (cli_cache_list(cache, &entries, &error) != GUMBEL_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    for (size_t i = 0; i < entries.count; i++) {
        check(&entries.items[i]);
        if (!cli_entry_state_name(entries.items[i].state))
            abort();
    }
    cli_cache_choose_old(&entries, 30, 1000);
    cli_cache_entries_free(&entries);
    return 0;
}
