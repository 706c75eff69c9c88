/* SPDX-License-Identifier: Apache-2.0 */
#include "support/checkpoints/safetensors_writer.h"

#include "support/temporary.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint8_t *make_safetensors(const char *header, size_t data_size, size_t *size) {
    size_t length = strlen(header);
    uint8_t *bytes = calloc(1, 8 + length + data_size);
    assert_non_null(bytes);
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(bytes + 8, header, length);
    *size = 8 + length + data_size;
    return bytes;
}

/* Appends one tensor's entry of the header; returns the length used. */
static size_t write_entry(char *text, size_t room, const test_tensor *tensor, size_t begin) {
    size_t used =
        (size_t)snprintf(text, room, "\"%s\":{\"dtype\":\"%s\",\"shape\":[", tensor->name, tensor->dtype);
    for (int32_t i = 0; i < tensor->rank; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, i ? "," : "", tensor->dims[i]);
    used += (size_t)snprintf(text + used, room - used, "],\"data_offsets\":[%zu,%zu]}", begin,
                             begin + tensor->size);
    assert_true(used < room);
    return used;
}

void write_safetensors(const char *path, const test_tensor *tensors, size_t count) {
    size_t room = 64 + count * 256, used = 0, data_size = 0, size = 0;
    char *header = malloc(room);
    assert_non_null(header);
    used += (size_t)snprintf(header, room, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < count; i++) {
        header[used++] = ',';
        used += write_entry(header + used, room - used, &tensors[i], data_size);
        data_size += tensors[i].size;
    }
    snprintf(header + used, room - used, "}");
    uint8_t *bytes = make_safetensors(header, data_size, &size), *data = bytes + (size - data_size);
    for (size_t i = 0; i < count; i++) {
        memcpy(data, tensors[i].data, tensors[i].size);
        data += tensors[i].size;
    }
    write_file(path, bytes, size);
    free(bytes);
    free(header);
}
