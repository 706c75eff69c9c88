/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/gguf.h"

#include "base/memory.h"
#include "export/checkpoint/ggml_types.h"
#include "export/checkpoint/gguf_value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_KEYS = 1 << 16,
    MAX_TENSORS = 1 << 20,
    MAX_KEY_BYTES = 65535,
    MAX_TENSOR_NAME = 255,
    MAX_DIMENSIONS = 4,
    DEFAULT_ALIGNMENT = 32,
    MAX_ALIGNMENT = 1 << 20,
    LEAST_KEY_BYTES = 8 + 1 + 4 + 1, /* name, type, value */
    LEAST_TENSOR_BYTES = 8 + 1 + 4 + 4 + 8
};

bool gb_is_gguf(const char *path) {
    char magic[4];
    struct stat information;
    int descriptor;
    bool is_magic = false;
    if (gb_open_input(path, &descriptor, &information, NULL) == GUMBEL_OK) {
        is_magic =
            read(descriptor, magic, sizeof magic) == sizeof magic && memcmp(magic, "GGUF", sizeof magic) == 0;
        close(descriptor);
    }
    size_t length = strlen(path);
    return is_magic || (length >= 5 && strcmp(path + length - 5, ".gguf") == 0);
}

/* ---- Header ---- */

typedef struct header {
    uint64_t tensor_count, key_count;
} header;

static gumbel_status read_version(gb_byte_reader *reader, gumbel_error *error) {
    const uint8_t *magic = gb_read_bytes(reader, 4);
    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "it does not begin with \"GGUF\"");
    uint32_t version = gb_read_u32(reader);
    if (reader->failed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the header is cut short");
    if (version == 2 || version == 3)
        return GUMBEL_OK;
    bool is_swapped = (version & 0xffff) == 0 && version != 0;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "GGUF version %" PRIu32 "%s; expected 2 or 3",
                   is_swapped ? version >> 24 : version, is_swapped ? " in big-endian byte order" : "");
}

/* Each entry takes some bytes, so that a count is checked before anything is allocated for it. */
static gumbel_status check_count(const gb_byte_reader *reader, const char *what, uint64_t count,
                                 uint64_t least_bytes, uint64_t limit, gumbel_error *error) {
    uint64_t possible = reader->size / least_bytes;
    if (possible > limit)
        possible = limit;
    if (count <= possible)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_FORMAT,
                   "the header counts %" PRIu64 " %s, expected at most %" PRIu64 " in a file of this size",
                   count, what, possible);
}

static gumbel_status read_header(gb_byte_reader *reader, header *counts, gumbel_error *error) {
    GB_TRY(read_version(reader, error));
    counts->tensor_count = gb_read_u64(reader);
    counts->key_count = gb_read_u64(reader);
    if (reader->failed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the header is cut short");
    GB_TRY(check_count(reader, "tensors", counts->tensor_count, LEAST_TENSOR_BYTES, MAX_TENSORS, error));
    return check_count(reader, "keys", counts->key_count, LEAST_KEY_BYTES, MAX_KEYS, error);
}

/* ---- Names ---- */

/* A name in new memory: the file's strings have no zero at the end. */
static gumbel_status read_name(gb_byte_reader *reader, const char *what, size_t index, uint64_t limit,
                               const char **name, gumbel_error *error) {
    uint64_t length = gb_read_u64(reader);
    if (reader->failed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the file ends in the name of %s %zu", what, index);
    if (length == 0 || length > limit)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s %zu: a name of %" PRIu64 " bytes, expected 1 to %" PRIu64, what, index, length,
                       limit);
    const uint8_t *text = gb_read_bytes(reader, length);
    if (!text)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the file ends in the name of %s %zu", what, index);
    if (memchr(text, 0, (size_t)length))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s %zu: a name with a zero byte", what, index);
    char *copy = gb_copy_string((const char *)text, (size_t)length);
    *name = copy;
    return copy ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for names");
}

static int compare_keys(const void *a, const void *b) {
    const gb_gguf_key *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static int compare_key_name(const void *name, const void *key) {
    return strcmp(name, ((const gb_gguf_key *)key)->name);
}

const gb_gguf_value *gb_gguf_find(const gb_gguf *file, const char *key) {
    if (file->key_count == 0)
        return NULL;
    const gb_gguf_key *found =
        bsearch(key, file->keys, file->key_count, sizeof *file->keys, compare_key_name);
    return found ? &found->value : NULL;
}

/* ---- Keys ---- */

static gumbel_status read_key(gb_byte_reader *reader, gb_gguf_key *key, gumbel_error *error) {
    uint32_t type = gb_read_u32(reader);
    if (reader->failed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the file ends before the value");
    return gb_gguf_read_value(reader, type, &key->value, error);
}

static gumbel_status read_keys(gb_byte_reader *reader, size_t count, gb_gguf *file, gumbel_error *error) {
    file->keys = gb_allocate(count, sizeof *file->keys);
    if (!file->keys)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu keys", count);
    for (size_t i = 0; i < count; i++) {
        gb_gguf_key *key = &file->keys[i];
        GB_TRY(read_name(reader, "key", i, MAX_KEY_BYTES, &key->name, error));
        file->key_count++;
        gumbel_status status = read_key(reader, key, error);
        if (status != GUMBEL_OK)
            return gb_prefix(error, status, "%.200s", key->name);
    }
    if (count > 1)
        qsort(file->keys, count, sizeof *file->keys, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (strcmp(file->keys[i - 1].name, file->keys[i].name) == 0)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%.200s: the key stands twice", file->keys[i].name);
    return GUMBEL_OK;
}

static gumbel_status read_alignment(const gb_gguf *file, uint64_t *alignment, gumbel_error *error) {
    const gb_gguf_value *value = gb_gguf_find(file, "general.alignment");
    int64_t found = DEFAULT_ALIGNMENT;
    if (value && (value->type != GB_GGUF_UINT32 || !gb_gguf_integer(value, &found)))
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "general.alignment: expected a uint32, found a value of type %s",
                       gb_gguf_type_name(value->type));
    if (found < 1 || found > MAX_ALIGNMENT || (found & (found - 1)) != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "general.alignment: %" PRId64 ", expected a power of two up to %d", found,
                       MAX_ALIGNMENT);
    *alignment = (uint64_t)found;
    return GUMBEL_OK;
}

/* ---- Tensors ---- */

/* The file's first dimension is the one that is consecutive in memory. */
static gumbel_status read_shape(gb_byte_reader *reader, gb_tensor *tensor, uint64_t *elements,
                                gumbel_error *error) {
    uint32_t rank = gb_read_u32(reader);
    if (reader->failed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the file ends in its description");
    if (rank > MAX_DIMENSIONS)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%" PRIu32 " dimensions, expected at most %d", rank,
                       MAX_DIMENSIONS);
    tensor->rank = (int32_t)rank;
    *elements = 1;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t size = gb_read_u64(reader);
        if (size > INT64_MAX || !gb_multiply_size(*elements, size, elements) || *elements > INT64_MAX)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "more than 2^63 elements");
        tensor->dims[rank - 1 - i] = (int64_t)size;
    }
    return GUMBEL_OK;
}

static gumbel_status read_type(gb_byte_reader *reader, uint64_t elements, gb_tensor *tensor,
                               gumbel_error *error) {
    uint32_t number = gb_read_u32(reader);
    if (reader->failed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the file ends in its description");
    const gb_ggml_type *type = gb_ggml_type_find(number);
    if (!type)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "type %" PRIu32 ", which this version does not know",
                       number);
    uint64_t columns = tensor->rank > 0 ? (uint64_t)tensor->dims[tensor->rank - 1] : 1;
    if (columns % type->block_elements != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "rows of %" PRIu64 " elements, expected a multiple of the %" PRIu32
                       " that a block of %s holds",
                       columns, type->block_elements, type->name);
    if (!gb_multiply_size(elements / type->block_elements, type->block_bytes, &tensor->size))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "more than 2^64 bytes");
    tensor->dtype = type->dtype;
    tensor->dtype_name = type->name;
    tensor->blocks = type;
    return GUMBEL_OK;
}

/* Reads a description; *next is where the tensor's data must begin in the data section, and then where it
 * ends, aligned. */
static gumbel_status read_tensor(gb_byte_reader *reader, uint64_t alignment, gb_tensor *tensor,
                                 uint64_t *next, gumbel_error *error) {
    uint64_t elements = 0, end = 0;
    GB_TRY(read_shape(reader, tensor, &elements, error));
    GB_TRY(read_type(reader, elements, tensor, error));
    uint64_t offset = gb_read_u64(reader);
    if (reader->failed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the file ends in its description");
    if (offset != *next)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "its data begins at %" PRIu64 ", expected %" PRIu64
                       ", where the tensor before it ends",
                       offset, *next);
    if (!gb_add_size(offset, tensor->size, &end) || !gb_align_size(end, alignment, next))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "its data ends past 2^64 bytes");
    return GUMBEL_OK;
}

static gumbel_status read_tensors(gb_byte_reader *reader, size_t count, uint64_t alignment, gb_gguf *file,
                                  gumbel_error *error) {
    uint64_t next = 0;
    file->tensors = gb_allocate(count, sizeof *file->tensors);
    if (!file->tensors)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu tensors", count);
    for (size_t i = 0; i < count; i++) {
        gb_tensor *tensor = &file->tensors[i];
        GB_TRY(read_name(reader, "tensor", i, MAX_TENSOR_NAME, &tensor->name, error));
        file->tensor_count++;
        gumbel_status status = read_tensor(reader, alignment, tensor, &next, error);
        if (status != GUMBEL_OK)
            return gb_prefix(error, status, "tensor %s", tensor->name);
    }
    return GUMBEL_OK;
}

/* Nothing stands after the last tensor but its padding. */
static gumbel_status check_end(uint64_t size, uint64_t end, gumbel_error *error) {
    if (size <= end)
        return GUMBEL_OK;
    return gb_fail(
        error, GUMBEL_ERROR_FORMAT,
        "%" PRIu64 " bytes follow the last tensor, whose data ends at %" PRIu64
        ", expected none: the file is damaged, or several files in one; download it again, or split "
        "it into its files",
        size - end, end);
}

/* The descriptions put tensors one after the other; here they get their places in the file. */
static gumbel_status place_tensors(const uint8_t *data, uint64_t size, uint64_t begin, uint64_t alignment,
                                   gb_gguf *file, gumbel_error *error) {
    for (size_t i = 0; i < file->tensor_count; i++) {
        gb_tensor *tensor = &file->tensors[i];
        if (begin > size || tensor->size > size - begin)
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "tensor %s: %" PRIu64 " bytes from %" PRIu64 " on, in a file of %" PRIu64
                           ": the file is cut short",
                           tensor->name, tensor->size, begin, size);
        tensor->data = data + begin;
        if (!gb_align_size(begin + tensor->size, alignment, &begin))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "tensor %s: its data ends past 2^64 bytes",
                           tensor->name);
    }
    return check_end(size, begin, error);
}

static int compare_names(const void *a, const void *b) {
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

static gumbel_status check_names(const gb_gguf *file, gumbel_error *error) {
    const char **names = gb_allocate(file->tensor_count, sizeof *names);
    if (!names)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu tensors", file->tensor_count);
    for (size_t i = 0; i < file->tensor_count; i++)
        names[i] = file->tensors[i].name;
    if (file->tensor_count > 1)
        qsort(names, file->tensor_count, sizeof *names, compare_names);
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 1; i < file->tensor_count && status == GUMBEL_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = gb_fail(error, GUMBEL_ERROR_FORMAT, "tensor %s: the name stands twice", names[i]);
    gb_free(names);
    return status;
}

/* ---- Whole files ---- */

static gumbel_status parse(const uint8_t *data, size_t size, gb_gguf *file, gumbel_error *error) {
    gb_byte_reader reader = {.data = data, .size = size};
    header counts = {0};
    uint64_t alignment = 0, begin = 0;
    GB_TRY(read_header(&reader, &counts, error));
    GB_TRY(read_keys(&reader, (size_t)counts.key_count, file, error));
    GB_TRY(read_alignment(file, &alignment, error));
    GB_TRY(check_count(&reader, "tensors", counts.tensor_count, LEAST_TENSOR_BYTES, MAX_TENSORS, error));
    GB_TRY(read_tensors(&reader, (size_t)counts.tensor_count, alignment, file, error));
    if (!gb_align_size(size - reader.size, alignment, &begin))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "its data begins past 2^64 bytes");
    GB_TRY(place_tensors(data, size, begin, alignment, file, error));
    return check_names(file, error);
}

gumbel_status gb_gguf_parse(const char *name, const uint8_t *data, size_t size, gb_gguf *file,
                            gumbel_error *error) {
    *file = (gb_gguf){0};
    gumbel_status status = parse(data, size, file, error);
    if (status == GUMBEL_OK)
        return GUMBEL_OK;
    gb_gguf_close(file);
    return gb_prefix(error, status, "%s", name);
}

gumbel_status gb_gguf_open(const char *path, gb_gguf *file, gumbel_error *error) {
    *file = (gb_gguf){0};
    gb_file_map map;
    GB_TRY(gb_map_file(path, &map, error));
    gumbel_status status = gb_gguf_parse(path, map.data, map.size, file, error);
    if (status != GUMBEL_OK) {
        gb_unmap_file(&map);
        return status;
    }
    file->map = map;
    return GUMBEL_OK;
}

/* Names are copies that the file's tables own, though the tables only let them be read. */
static void free_name(const char *name) {
    gb_free((void *)(uintptr_t)name);
}

void gb_gguf_close(gb_gguf *file) {
    for (size_t i = 0; i < file->key_count; i++)
        free_name(file->keys[i].name);
    for (size_t i = 0; i < file->tensor_count; i++)
        free_name(file->tensors[i].name);
    gb_free(file->keys);
    gb_free(file->tensors);
    gb_unmap_file(&file->map);
    *file = (gb_gguf){0};
}
