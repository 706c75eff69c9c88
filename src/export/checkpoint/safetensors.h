/* SPDX-License-Identifier: Apache-2.0
 *
 * One safetensors file: an 8-byte little-endian header length, a JSON header, then the tensors' bytes
 * (https://huggingface.co/docs/safetensors). The file is mapped and its tensors are views; nothing is copied.
 * It is untrusted: after gb_safetensors_open every view lies inside the file and has the size that its dtype
 * and shape say.
 */
#ifndef GUMBEL_EXPORT_CHECKPOINT_SAFETENSORS_H
#define GUMBEL_EXPORT_CHECKPOINT_SAFETENSORS_H

#include "base/file_map.h"
#include "base/status.h"
#include "tensor/dtype.h"

#include <stdint.h>

enum { GB_TENSOR_MAX_RANK = 8 };
struct gb_ggml_type;

/* A named tensor of a checkpoint, row-major and little-endian. */
typedef struct gb_tensor {
    const char *name;
    const char *dtype_name; /* as the file spells it: "BF16" */
    gb_dtype dtype;         /* GB_DTYPE_NONE: a dtype that this version lists but cannot use */
    int32_t rank;           /* 0 is a scalar */
    int64_t dims[GB_TENSOR_MAX_RANK];
    const uint8_t *data;               /* in the mapping; not aligned */
    uint64_t size;                     /* bytes */
    bool is_in_memory;                 /* data was computed, and is in no mapping */
    const struct gb_ggml_type *blocks; /* the type in a GGUF file; NULL: not from one */
    int64_t row_pairs; /* of each 2 row_pairs rows those numbered i and i + row_pairs stand side by side; 0:
                          all stand in order */
} gb_tensor;

typedef struct gb_safetensors {
    gb_file_map map;
    gb_tensor *tensors; /* in the header's order */
    size_t tensor_count;
    void *header; /* the parsed JSON, which owns the names */
} gb_safetensors;

/* Maps the file at path and checks its header: at most 100 MB of JSON, no name twice, every tensor inside the
 * file with a size that agrees with its shape. Errors: IO, FORMAT (beginning with the path, naming the tensor
 * and the field), MEMORY. Close with gb_safetensors_close, which is safe on a zeroed structure and twice. */
gumbel_status gb_safetensors_open(const char *path, gb_safetensors *file, gumbel_error *error);

/* The same from bytes in memory, which must outlive file; name stands for the path in messages. */
gumbel_status gb_safetensors_parse(const char *name, const uint8_t *data, size_t size, gb_safetensors *file,
                                   gumbel_error *error);

void gb_safetensors_close(gb_safetensors *file);

#endif
