/* SPDX-License-Identifier: Apache-2.0 */
#include "support/checkpoints/gguf_writer.h"

#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TYPE_U32 = 4, TYPE_I32 = 5, TYPE_F32 = 6, TYPE_BOOL = 7, TYPE_STRING = 8, TYPE_ARRAY = 9 };

void put_bytes(gguf_bytes *bytes, const void *data, size_t size) {
    uint8_t *grown = realloc(bytes->data, bytes->size + size + 1);
    assert_non_null(grown);
    bytes->data = grown;
    if (data)
        memcpy(grown + bytes->size, data, size);
    else
        memset(grown + bytes->size, 0, size);
    bytes->size += size;
}

static void put_number(gguf_bytes *bytes, uint64_t value, size_t size) {
    uint8_t little[8];
    for (size_t i = 0; i < size; i++)
        little[i] = (uint8_t)(value >> (8 * i));
    put_bytes(bytes, little, size);
}

void put_u32(gguf_bytes *bytes, uint32_t value) {
    put_number(bytes, value, 4);
}

void put_u64(gguf_bytes *bytes, uint64_t value) {
    put_number(bytes, value, 8);
}

void put_text(gguf_bytes *bytes, const char *text) {
    put_u64(bytes, strlen(text));
    put_bytes(bytes, text, strlen(text));
}

static gguf_bytes *begin_key(gguf_writer *writer, const char *key, uint32_t type) {
    put_text(&writer->keys, key);
    put_u32(&writer->keys, type);
    writer->key_count++;
    return &writer->keys;
}

static gguf_bytes *begin_array(gguf_writer *writer, const char *key, uint32_t item_type, size_t count) {
    gguf_bytes *bytes = begin_key(writer, key, TYPE_ARRAY);
    put_u32(bytes, item_type);
    put_u64(bytes, count);
    return bytes;
}

void gguf_add_u32(gguf_writer *writer, const char *key, uint32_t value) {
    put_u32(begin_key(writer, key, TYPE_U32), value);
}

void gguf_add_f32(gguf_writer *writer, const char *key, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u32(begin_key(writer, key, TYPE_F32), bits);
}

void gguf_add_bool(gguf_writer *writer, const char *key, bool value) {
    put_number(begin_key(writer, key, TYPE_BOOL), value, 1);
}

void gguf_add_text(gguf_writer *writer, const char *key, const char *text) {
    put_text(begin_key(writer, key, TYPE_STRING), text);
}

void gguf_add_i32s(gguf_writer *writer, const char *key, const int32_t *values, size_t count) {
    gguf_bytes *bytes = begin_array(writer, key, TYPE_I32, count);
    for (size_t i = 0; i < count; i++)
        put_u32(bytes, (uint32_t)values[i]);
}

void gguf_add_f32s(gguf_writer *writer, const char *key, const float *values, size_t count) {
    gguf_bytes *bytes = begin_array(writer, key, TYPE_F32, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        put_u32(bytes, bits);
    }
}

void gguf_add_bools(gguf_writer *writer, const char *key, const bool *values, size_t count) {
    gguf_bytes *bytes = begin_array(writer, key, TYPE_BOOL, count);
    for (size_t i = 0; i < count; i++)
        put_number(bytes, values[i], 1);
}

void gguf_add_texts(gguf_writer *writer, const char *key, const char *const *texts, size_t count) {
    gguf_bytes *bytes = begin_array(writer, key, TYPE_STRING, count);
    for (size_t i = 0; i < count; i++)
        put_text(bytes, texts[i]);
}

void gguf_add_raw(gguf_writer *writer, const char *key, uint32_t type, const void *bytes, size_t size) {
    put_bytes(begin_key(writer, key, type), bytes, size);
}

static void pad(gguf_bytes *bytes, uint64_t alignment) {
    uint64_t step = alignment ? alignment : 32;
    put_bytes(bytes, NULL, (size_t)((step - bytes->size % step) % step));
}

void gguf_add_tensor(gguf_writer *writer, const char *name, uint32_t type, int32_t rank, const int64_t *dims,
                     const void *data, size_t size) {
    put_text(&writer->tensors, name);
    put_u32(&writer->tensors, (uint32_t)rank);
    for (int32_t i = rank - 1; i >= 0; i--)
        put_u64(&writer->tensors, (uint64_t)dims[i]);
    put_u32(&writer->tensors, type);
    put_u64(&writer->tensors, writer->data.size);
    put_bytes(&writer->data, data, size);
    pad(&writer->data, writer->alignment);
    writer->tensor_count++;
}

uint8_t *gguf_finish(gguf_writer *writer, size_t *size) {
    gguf_bytes file = {0};
    put_bytes(&file, "GGUF", 4);
    put_u32(&file, writer->version);
    put_u64(&file, writer->tensor_count);
    put_u64(&file, writer->key_count);
    put_bytes(&file, writer->keys.data, writer->keys.size);
    put_bytes(&file, writer->tensors.data, writer->tensors.size);
    if (writer->tensor_count > 0)
        pad(&file, writer->alignment);
    put_bytes(&file, writer->data.data, writer->data.size);
    free(writer->keys.data);
    free(writer->tensors.data);
    free(writer->data.data);
    *writer = (gguf_writer){0};
    *size = file.size;
    return file.data;
}

void gguf_write(gguf_writer *writer, const char *path) {
    size_t size = 0;
    uint8_t *bytes = gguf_finish(writer, &size);
    write_file(path, bytes, size);
    free(bytes);
}
