/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/record.h"

#include "base/status.h"
#include "cli/base/storage.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/fingerprint.h"
#include "cli/checkpoint/names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>
#include <xxhash.h>

#define NEW_RECORD CLI_CACHE_RECORD ".new"

static char *copy(const char *text) {
    return cli_copy_text(text, strlen(text));
}

/* ---- Hashes -------------------------------------------------------------------------------------------- */

/* Adds the options, each ended by a zero byte. Of no recipe another program may come than of "none". */
static void add_options(const cli_cache_record *record, gb_byte_buffer *text) {
    char context[24];
    int length = snprintf(context, sizeof context, "%" PRIu32, record->max_context);
    cli_append(text, context, (size_t)length + 1);
    const char *recipe = record->recipe ? record->recipe : "";
    cli_append(text, recipe, strlen(recipe) + 1);
}

uint32_t cli_cache_identity(const cli_cache_record *record) {
    gb_byte_buffer text = {0};
    cli_append(&text, record->source, strlen(record->source) + 1);
    add_options(record, &text);
    uint32_t identity = (uint32_t)XXH3_64bits(text.text, text.size);
    gb_buffer_free(&text);
    return identity;
}

static gumbel_status find_state(const cli_cache_record *record, uint64_t *state, gumbel_error *error) {
    gb_byte_buffer text = {0};
    struct stat recipe;
    const uint64_t format = gumbel_program_format();
    cli_append(&text, gumbel_version(), strlen(gumbel_version()) + 1);
    cli_append(&text, (const char *)&format, sizeof format);
    add_options(record, &text);
    if (record->recipe && record->recipe[0] == '/' && stat(record->recipe, &recipe) == 0)
        cli_fingerprint_file(record->recipe, &recipe, &text);
    gumbel_status status = cli_fingerprint_files(record->source, &text, error);
    *state = XXH3_64bits(text.text, text.size);
    gb_buffer_free(&text);
    return status;
}

bool cli_cache_state_now(const cli_cache_record *record, uint64_t *state) {
    gumbel_error error;
    return find_state(record, state, &error) == GUMBEL_OK;
}

/* ---- Describing ---------------------------------------------------------------------------------------- */

/* A recipe that is a file is known by its absolute path. */
static char *describe_recipe(const char *recipe) {
    struct stat file;
    char *whole = recipe && stat(recipe, &file) == 0 && S_ISREG(file.st_mode) ? realpath(recipe, NULL) : NULL;
    return whole ? whole : recipe ? copy(recipe) : NULL;
}

/* The last part of a path, of a GGUF without its ending. */
static char *last_name(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    return cli_copy_text(name, cli_ends_with(name, ".gguf") ? length - 5 : length);
}

gumbel_status cli_cache_describe(const char *path, const char *repository, const cli_cache_options *options,
                                 cli_cache_record *record, gumbel_error *error) {
    *record = (cli_cache_record){.source = cli_canonical_path(path), .max_context = options->max_context};
    if (!record->source)
        return gb_fail_errno(error, errno, "%s", path);
    record->model = repository ? copy(repository) : last_name(record->source);
    record->recipe = describe_recipe(options->quantize);
    return find_state(record, &record->state, error);
}

void cli_cache_record_free(cli_cache_record *record) {
    free(record->source);
    free(record->model);
    free(record->recipe);
    *record = (cli_cache_record){0};
}

/* ---- The file ------------------------------------------------------------------------------------------ */

/* Paths need not be UTF-8, JSON must be: other bytes than printable ASCII are written as in URIs, %XX. */
static json_t *encode(const char *path) {
    gb_byte_buffer text = {0};
    for (const char *byte = path; *byte; byte++) {
        char escaped[4];
        bool is_plain = *byte >= ' ' && *byte <= '~' && *byte != '%';
        snprintf(escaped, sizeof escaped, "%%%02X", (unsigned char)*byte);
        cli_append(&text, is_plain ? byte : escaped, is_plain ? 1 : 3);
    }
    json_t *string = json_stringn(text.text ? text.text : "", text.size);
    gb_buffer_free(&text);
    return string;
}

static char *decode(const char *text) {
    gb_byte_buffer path = {0};
    cli_append(&path, "", 0);
    for (const char *byte = text; *byte; byte++) {
        char digits[3] = "";
        if (*byte == '%' && byte[1] && byte[2]) {
            memcpy(digits, byte + 1, 2);
            byte += 2;
        }
        char plain = digits[0] ? (char)strtoul(digits, NULL, 16) : *byte;
        cli_append(&path, &plain, 1);
    }
    return path.text;
}

static char *read_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? decode(text) : NULL;
}

static uint64_t read_hash(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? strtoull(text, NULL, 16) : 0;
}

bool cli_cache_read_record(const char *folder, cli_cache_record *record) {
    char *path = cli_join(folder, CLI_CACHE_RECORD);
    json_t *object = json_load_file(path, 0, NULL);
    free(path);
    json_int_t context = json_integer_value(json_object_get(object, "max_context"));
    *record = (cli_cache_record){.source = read_text(object, "source"),
                                 .model = read_text(object, "model"),
                                 .recipe = read_text(object, "recipe"),
                                 .max_context = context > 0 && context <= INT32_MAX ? (uint32_t)context : 0,
                                 .state = read_hash(object, "state"),
                                 .sample = read_hash(object, "sample")};
    json_decref(object);
    if (record->source && record->source[0] == '/' && record->model)
        return true;
    cli_cache_record_free(record);
    return false;
}

static json_t *as_json(const cli_cache_record *record) {
    char state[24], sample[24];
    snprintf(state, sizeof state, "%016" PRIx64, record->state);
    snprintf(sample, sizeof sample, "%016" PRIx64, record->sample);
    return json_pack("{s:o, s:o, s:o*, s:I, s:s, s:s, s:s}", "source", encode(record->source), "model",
                     encode(record->model), "recipe", record->recipe ? encode(record->recipe) : NULL,
                     "max_context", (json_int_t)record->max_context, "state", state, "sample", sample,
                     "gumbel", gumbel_version());
}

gumbel_status cli_cache_write_record(const char *folder, const cli_cache_record *record,
                                     gumbel_error *error) {
    char *path = cli_join(folder, CLI_CACHE_RECORD), *new_path = cli_join(folder, NEW_RECORD);
    json_t *object = as_json(record);
    errno = ENOMEM;
    bool is_written =
        object && json_dump_file(object, new_path, JSON_INDENT(2)) == 0 && rename(new_path, path) == 0;
    gumbel_status status = is_written ? GUMBEL_OK : gb_fail_errno(error, errno, "%s", path);
    json_decref(object);
    free(path);
    free(new_path);
    return status;
}

/* ---- Use ----------------------------------------------------------------------------------------------- */

void cli_cache_note_use(const char *folder) {
    char *path = cli_join(folder, CLI_CACHE_RECORD);
    (void)utimensat(AT_FDCWD, path, NULL, 0);
    free(path);
}

int64_t cli_cache_last_use(const char *folder) {
    char *path = cli_join(folder, CLI_CACHE_RECORD);
    struct stat file;
    int64_t seconds = stat(path, &file) == 0 ? (int64_t)file.st_mtim.tv_sec : 0;
    free(path);
    return seconds;
}
