/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes small GGUF files for tests. Calls append to one file in memory; a failure ends the test.
 */
#ifndef GUMBEL_TESTS_GGUF_WRITER_H
#define GUMBEL_TESTS_GGUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gguf_bytes {
    uint8_t *data; /* owned */
    size_t size;
} gguf_bytes;

/* Zeroed but for the version and, where it is not 32, the alignment (which is a key of its own as well). */
typedef struct gguf_writer {
    uint32_t version;
    uint64_t alignment; /* 0: 32 */
    uint64_t key_count, tensor_count;
    gguf_bytes keys, tensors, data;
} gguf_writer;

void gguf_add_u32(gguf_writer *writer, const char *key, uint32_t value);
void gguf_add_f32(gguf_writer *writer, const char *key, float value);
void gguf_add_bool(gguf_writer *writer, const char *key, bool value);
void gguf_add_text(gguf_writer *writer, const char *key, const char *text);
void gguf_add_i32s(gguf_writer *writer, const char *key, const int32_t *values, size_t count);
void gguf_add_f32s(gguf_writer *writer, const char *key, const float *values, size_t count);
void gguf_add_bools(gguf_writer *writer, const char *key, const bool *values, size_t count);
void gguf_add_texts(gguf_writer *writer, const char *key, const char *const *texts, size_t count);

/* A value of that type number whose bytes are as given. */
void gguf_add_raw(gguf_writer *writer, const char *key, uint32_t type, const void *bytes, size_t size);

/* dims are row-major, as everywhere but in the file. data may be NULL for zeros. */
void gguf_add_tensor(gguf_writer *writer, const char *name, uint32_t type, int32_t rank, const int64_t *dims,
                     const void *data, size_t size);

/* The file's bytes, to be freed; the writer is empty afterwards. */
uint8_t *gguf_finish(gguf_writer *writer, size_t *size);

/* The same into the file at path. */
void gguf_write(gguf_writer *writer, const char *path);

/* Appends to bytes in the file's order. */
void put_bytes(gguf_bytes *bytes, const void *data, size_t size);
void put_u32(gguf_bytes *bytes, uint32_t value);
void put_u64(gguf_bytes *bytes, uint64_t value);
void put_text(gguf_bytes *bytes, const char *text);

#endif
