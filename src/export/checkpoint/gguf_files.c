/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/gguf_files.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PARTS = 1024, ENDING_BYTES = 64 };

/* An integer of a part's split.* keys; fallback when the key is absent. */
static gumbel_status split_number(const gb_gguf *file, const char *path, const char *key, int64_t fallback,
                                  int64_t *number, gumbel_error *error) {
    const gb_gguf_value *value = gb_gguf_find(file, key);
    *number = fallback;
    if (!value)
        return GUMBEL_OK;
    if (!gb_gguf_integer(value, number) || *number < 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %s: expected an integer of 0 or more, found %s", path,
                       key, gb_gguf_type_name(value->type));
    return GUMBEL_OK;
}

/* "-00001-of-00003.gguf" */
static void part_ending(int64_t number, int64_t count, char ending[ENDING_BYTES]) {
    snprintf(ending, ENDING_BYTES, "-%05" PRId64 "-of-%05" PRId64 ".gguf", number + 1, count);
}

static gumbel_status check_part(const gb_gguf *file, const char *path, int64_t number, int64_t count,
                                gumbel_error *error) {
    int64_t found_number = 0, found_count = 0;
    GB_TRY(split_number(file, path, "split.no", -1, &found_number, error));
    GB_TRY(split_number(file, path, "split.count", -1, &found_count, error));
    if (found_number != number || found_count != count)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s: split.no %" PRId64 " and split.count %" PRId64 ", expected %" PRId64
                       " and %" PRId64 "%s",
                       path, found_number, found_count, number, count,
                       number == 0 ? ": give the first part of a split model" : "");
    return GUMBEL_OK;
}

static gumbel_status open_parts(const char *path, int64_t count, gb_gguf_files *files, gumbel_error *error) {
    char ending[ENDING_BYTES];
    part_ending(0, count, ending);
    size_t length = strlen(path), tail = strlen(ending);
    if (length < tail || strcmp(path + length - tail, ending) != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s: it is one of %" PRId64 " parts, expected a name that ends in %s", path, count,
                       ending);
    char *part = gb_copy_string(path, length);
    gumbel_status status =
        part ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for file names", path);
    for (int64_t i = 1; i < count && status == GUMBEL_OK; i++) {
        part_ending(i, count, ending);
        memcpy(part + length - tail, ending, tail);
        status = gb_gguf_open(part, &files->files[i], error);
        if (status != GUMBEL_OK)
            break;
        files->count++;
        status = check_part(&files->files[i], part, i, count, error);
    }
    gb_free(part);
    return status;
}

static gumbel_status check_total(const char *path, gb_gguf_files *files, gumbel_error *error) {
    int64_t expected = 0;
    for (size_t i = 0; i < files->count; i++)
        files->tensor_count += files->files[i].tensor_count;
    GB_TRY(split_number(&files->files[0], path, "split.tensors.count", (int64_t)files->tensor_count,
                        &expected, error));
    if (expected != (int64_t)files->tensor_count)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s: %zu tensors in all parts, expected the %" PRId64 " of split.tensors.count", path,
                       files->tensor_count, expected);
    return GUMBEL_OK;
}

static gumbel_status open_all(const char *path, gb_gguf_files *files, gumbel_error *error) {
    gb_gguf first;
    int64_t count = 1;
    GB_TRY(gb_gguf_open(path, &first, error));
    gumbel_status status = split_number(&first, path, "split.count", 1, &count, error);
    if (status == GUMBEL_OK && count > MAX_PARTS)
        status = gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: split.count: %" PRId64 ", expected at most %d",
                         path, count, MAX_PARTS);
    if (count < 1)
        count = 1;
    files->files = status == GUMBEL_OK ? gb_allocate((size_t)count, sizeof *files->files) : NULL;
    if (!files->files) {
        gb_gguf_close(&first);
        return status != GUMBEL_OK ? status
                                   : gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its parts", path);
    }
    files->files[0] = first;
    files->count = 1;
    if (count > 1) {
        GB_TRY(check_part(&files->files[0], path, 0, count, error));
        GB_TRY(open_parts(path, count, files, error));
    }
    return check_total(path, files, error);
}

gumbel_status gb_gguf_files_open(const char *path, gb_gguf_files *files, gumbel_error *error) {
    *files = (gb_gguf_files){0};
    gumbel_status status = open_all(path, files, error);
    if (status != GUMBEL_OK)
        gb_gguf_files_close(files);
    return status;
}

void gb_gguf_files_close(gb_gguf_files *files) {
    for (size_t i = 0; i < files->count; i++)
        gb_gguf_close(&files->files[i]);
    gb_free(files->files);
    *files = (gb_gguf_files){0};
}

const gb_tensor *gb_gguf_files_find(const gb_gguf_files *files, const char *name) {
    for (size_t f = 0; f < files->count; f++)
        for (size_t i = 0; i < files->files[f].tensor_count; i++)
            if (strcmp(files->files[f].tensors[i].name, name) == 0)
                return &files->files[f].tensors[i];
    return NULL;
}
