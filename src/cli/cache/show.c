/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/show.h"

#include "cli/base/json.h"
#include "cli/base/report.h"
#include "cli/base/storage.h"
#include "cli/base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

enum { TIME_TEXT = 32, COLUMNS = 6, CELL = 160 };

static const char *describe_time(int64_t seconds, const char *format, char text[TIME_TEXT]) {
    time_t time = (time_t)seconds;
    struct tm local;
    if (seconds == 0 || !localtime_r(&time, &local) || strftime(text, TIME_TEXT, format, &local) == 0)
        snprintf(text, TIME_TEXT, "-");
    return text;
}

/* ---- For people ---------------------------------------------------------------------------------------- */

typedef struct row {
    char cells[COLUMNS - 1][CELL];
    const char *source; /* the last cell, of any length */
} row;

static void fill_row(const cli_cache_item *item, row *r) {
    const cli_cache_entry *entry = &item->entry;
    const char *recipe = entry->recipe ? entry->recipe : "none";
    char text[TIME_TEXT];
    snprintf(r->cells[0], CELL, "%s", item->name);
    cli_describe_bytes(item->bytes, r->cells[1]);
    snprintf(r->cells[2], CELL, "%s", describe_time(item->last_use, "%Y-%m-%d %H:%M", text));
    snprintf(r->cells[3], CELL, "%s", cli_entry_state_name(item->state));
    if (entry->max_context > 0)
        snprintf(r->cells[4], CELL, "%.100s -c %u", recipe, (unsigned)entry->max_context);
    else
        snprintf(r->cells[4], CELL, "%.120s", entry->source ? recipe : "-");
    r->source = entry->source ? entry->source : "-";
}

static void widen(const row *r, int widths[COLUMNS - 1]) {
    for (size_t i = 0; i + 1 < COLUMNS; i++)
        if ((int)strlen(r->cells[i]) > widths[i])
            widths[i] = (int)strlen(r->cells[i]);
}

/* A name from a file must not reach the terminal as a command to it. */
static void print_plain(const char *text) {
    for (; *text; text++)
        putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static void print_row(const row *r, const int widths[COLUMNS - 1]) {
    for (size_t i = 0; i + 1 < COLUMNS; i++) {
        print_plain(r->cells[i]);
        printf("%*s", widths[i] - (int)strlen(r->cells[i]) + 2, "");
    }
    print_plain(r->source);
    putchar('\n');
}

static void print_table(const cli_cache_items *items) {
    static const row heading = {{"NAME", "SIZE", "LAST USE", "STATE", "RECIPE"}, "SOURCE"};
    int widths[COLUMNS - 1] = {0};
    row r;
    widen(&heading, widths);
    for (size_t i = 0; i < items->count; i++) {
        fill_row(&items->items[i], &r);
        widen(&r, widths);
    }
    print_row(&heading, widths);
    for (size_t i = 0; i < items->count; i++) {
        fill_row(&items->items[i], &r);
        print_row(&r, widths);
    }
}

void cli_cache_show(const cli_cache_items *items, const char *path) {
    uint64_t bytes = 0;
    char text[CLI_BYTES_TEXT];
    if (items->count > 0)
        print_table(items);
    for (size_t i = 0; i < items->count; i++)
        bytes += items->items[i].bytes;
    if (items->count > 0)
        printf("%zu program%s, %s in %s\n", items->count, items->count == 1 ? "" : "s",
               cli_describe_bytes(bytes, text), path);
    else
        printf("no programs in %s\n", path);
    for (size_t i = 0; i < items->count; i++)
        if (items->items[i].reason)
            cli_note("%s", items->items[i].reason);
}

/* ---- For programs -------------------------------------------------------------------------------------- */

static json_t *text_json(const char *text) {
    return text ? cli_json_text(text, strlen(text)) : json_null();
}

static json_t *item_json(const cli_cache_item *item) {
    char text[TIME_TEXT];
    const cli_cache_entry *entry = &item->entry;
    bool is_used = item->last_use > 0;
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:o, s:s, s:o}", "name", text_json(item->name),
                     "model", text_json(entry->model), "path", text_json(item->entry.folder), "bytes",
                     (json_int_t)item->bytes, "source", text_json(entry->source), "recipe",
                     text_json(entry->recipe), "max_context", (json_int_t)entry->max_context, "last_use",
                     text_json(is_used ? describe_time(item->last_use, "%Y-%m-%dT%H:%M:%S%z", text) : NULL),
                     "state", cli_entry_state_name(item->state), "reason", text_json(item->reason));
}

void cli_cache_show_json(const cli_cache_items *items) {
    json_t *array = json_array();
    for (size_t i = 0; i < items->count; i++)
        json_array_append_new(array, item_json(&items->items[i]));
    json_dumpf(array, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(array);
}
