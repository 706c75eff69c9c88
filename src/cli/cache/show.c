/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of the cache's entries on standard output, for people and for programs.
 */
#include "cli/base/json.h"
#include "cli/base/report.h"
#include "cli/base/units.h"
#include "cli/cache/list.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TIME_TEXT = 32, RECIPE_TEXT = 144, LINE = 512 };

static const char *describe_time(int64_t seconds, const char *format, char text[TIME_TEXT]) {
    time_t time = (time_t)seconds;
    struct tm local;
    if (seconds == 0 || !localtime_r(&time, &local) || strftime(text, TIME_TEXT, format, &local) == 0)
        snprintf(text, TIME_TEXT, "-");
    return text;
}

/* ---- For people ---------------------------------------------------------------------------------------- */

typedef struct widths {
    int name, recipe;
} widths;

static const char *describe_recipe(const cli_cache_entry *entry, char text[RECIPE_TEXT]) {
    snprintf(text, RECIPE_TEXT, "%.120s", !entry->source ? "-" : entry->recipe[0] ? entry->recipe : "none");
    size_t used = strlen(text);
    if (entry->max_context > 0)
        snprintf(text + used, RECIPE_TEXT - used, " -c %u", (unsigned)entry->max_context);
    return text;
}

static void print_row(const char *const cells[6], widths w) {
    char line[LINE];
    snprintf(line, sizeof line, "%-*s  %-8s  %-16s  %-10s  %-*s  ", w.name, cells[0], cells[1], cells[2],
             cells[3], w.recipe, cells[4]);
    cli_print_escaped(stdout, line);
    cli_print_escaped(stdout, cells[5]);
    putchar('\n');
}

static void print_entry(const cli_cache_entry *entry, widths w) {
    char bytes[CLI_BYTES_TEXT], time[TIME_TEXT], recipe[RECIPE_TEXT];
    print_row((const char *const[]){entry->name, cli_describe_bytes(entry->bytes, bytes),
                                    describe_time(entry->last_use, "%Y-%m-%d %H:%M", time),
                                    cli_entry_state_name(entry->state), describe_recipe(entry, recipe),
                                    entry->source ? entry->source : "-"},
              w);
}

static void widen(int *width, const char *text) {
    int length = (int)strlen(text);
    *width = length > *width ? length : *width;
}

void cli_cache_show(const cli_cache_entries *entries, const char *path) {
    uint64_t bytes = 0;
    char text[CLI_BYTES_TEXT], recipe[RECIPE_TEXT];
    widths w = {sizeof "NAME" - 1, sizeof "RECIPE" - 1};
    for (size_t i = 0; i < entries->count; i++) {
        widen(&w.name, entries->items[i].name);
        widen(&w.recipe, describe_recipe(&entries->items[i], recipe));
        bytes += entries->items[i].bytes;
    }
    if (entries->count > 0)
        print_row((const char *const[]){"NAME", "SIZE", "LAST USE", "STATE", "RECIPE", "SOURCE"}, w);
    for (size_t i = 0; i < entries->count; i++)
        print_entry(&entries->items[i], w);
    if (entries->count > 0)
        printf("%zu program%s, %s in %s\n", entries->count, entries->count == 1 ? "" : "s",
               cli_describe_bytes(bytes, text), path);
    else
        printf("no programs in %s\n", path);
    for (size_t i = 0; i < entries->count; i++)
        if (entries->items[i].reason)
            cli_note("%s", entries->items[i].reason);
}

/* ---- For programs -------------------------------------------------------------------------------------- */

static json_t *text_json(const char *text) {
    return text ? cli_json_text(text, strlen(text)) : json_null();
}

static json_t *entry_json(const cli_cache_entry *entry) {
    char text[TIME_TEXT];
    bool is_used = entry->last_use > 0, has_recipe = entry->recipe && entry->recipe[0];
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:o, s:s, s:o}", "name", text_json(entry->name),
                     "model", text_json(entry->model), "path", text_json(entry->folder), "bytes",
                     (json_int_t)entry->bytes, "source", text_json(entry->source), "recipe",
                     text_json(has_recipe ? entry->recipe : NULL), "max_context",
                     (json_int_t)entry->max_context, "last_use",
                     text_json(is_used ? describe_time(entry->last_use, "%Y-%m-%dT%H:%M:%S%z", text) : NULL),
                     "state", cli_entry_state_name(entry->state), "reason", text_json(entry->reason));
}

void cli_cache_show_json(const cli_cache_entries *entries) {
    json_t *array = json_array();
    for (size_t i = 0; i < entries->count; i++)
        json_array_append_new(array, entry_json(&entries->items[i]));
    cli_json_print(array, JSON_INDENT(2), stdout);
    putchar('\n');
    json_decref(array);
}
