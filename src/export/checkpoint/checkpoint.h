/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights of a Hugging Face checkpoint directory: model.safetensors, or the shards that
 * model.safetensors.index.json lists, as one set of named tensors. All files stay mapped while it is open.
 */
#ifndef GUMBEL_EXPORT_CHECKPOINT_CHECKPOINT_H
#define GUMBEL_EXPORT_CHECKPOINT_CHECKPOINT_H

#include "export/checkpoint/safetensors.h"

typedef struct gb_checkpoint gb_checkpoint;

/* Opens every file of the directory's weights. Errors: IO, MEMORY, FORMAT (beginning with the file's path):
 * no weights in the directory, a bad file, an index that names a file outside the directory, a missing file,
 * or a tensor that its file lacks. Close with gb_checkpoint_close. */
gumbel_status gb_checkpoint_open(const char *directory, gb_checkpoint **checkpoint, gumbel_error *error);

/* The same of one safetensors file's bytes in memory, which must outlive it; name stands for the path in
 * messages. */
gumbel_status gb_checkpoint_parse(const char *name, const uint8_t *data, size_t size,
                                  gb_checkpoint **checkpoint, gumbel_error *error);

/* Writes the name that a tensor has in its file into text, which holds size bytes; false when it is the same.
 */
typedef bool (*gb_file_name)(const void *user, const char *name, char *text, size_t size);

/* A checkpoint of tensors from elsewhere, which must outlive it, as must path, its name in messages.
 * file_name may be NULL. Errors: FORMAT (a name stands twice), MEMORY. Close with gb_checkpoint_close. */
gumbel_status gb_checkpoint_of(const char *path, const gb_tensor *tensors, size_t count,
                               gb_file_name file_name, const void *user, gb_checkpoint **checkpoint,
                               gumbel_error *error);

/* The tensors of the first checkpoint and, with that prefix before their names, of the other. Both must
 * outlive it; path and metadata are the first one's. Errors: FORMAT (a name stands twice), MEMORY. Close with
 * gb_checkpoint_close. */
gumbel_status gb_checkpoint_join(const gb_checkpoint *first, const char *prefix, const gb_checkpoint *other,
                                 gb_checkpoint **checkpoint, gumbel_error *error);

/* NULL is allowed. */
void gb_checkpoint_close(gb_checkpoint *checkpoint);

/* The tensor of that name, or NULL. Valid while the checkpoint is open. Thread-safe. */
const gb_tensor *gb_checkpoint_find(const gb_checkpoint *checkpoint, const char *name);

/* Finds a tensor and checks that it has this shape and a dtype that can be used. Dimensions of 1 may stand
 * elsewhere or be missing, as they do in what some converters write. Errors: FORMAT naming the tensor, the
 * shape found and the shape expected; UNSUPPORTED naming the dtype. */
gumbel_status gb_checkpoint_get(const gb_checkpoint *checkpoint, const char *name, int32_t rank,
                                const int64_t *dims, const gb_tensor **tensor, gumbel_error *error);

/* The same of a matrix, which may also be quantized in blocks that a program can hold (import_blocks.h): its
 * dtype is then GB_DTYPE_NONE. */
gumbel_status gb_checkpoint_get_matrix(const gb_checkpoint *checkpoint, const char *name, int32_t rank,
                                       const int64_t *dims, const gb_tensor **tensor, gumbel_error *error);

/* Checks the shape of a tensor as gb_checkpoint_get does. */
gumbel_status gb_checkpoint_check_shape(const gb_checkpoint *checkpoint, const gb_tensor *tensor,
                                        int32_t rank, const int64_t *dims, gumbel_error *error);

/* The name that a tensor has in its file: name itself, or text. */
enum { GB_FILE_NAME = 300 };
const char *gb_checkpoint_file_name(const gb_checkpoint *checkpoint, const char *name,
                                    char text[GB_FILE_NAME]);

/* What the files' headers say under a key of __metadata__, or NULL. */
const char *gb_checkpoint_metadata(const gb_checkpoint *checkpoint, const char *key);

/* Is called with each tensor of something. */
typedef void (*gb_tensor_visit)(void *user, const gb_tensor *tensor);

/* The directory or file, for messages. */
const char *gb_checkpoint_path(const gb_checkpoint *checkpoint);

/* All tensors, sorted by name: index from 0 to count - 1. */
size_t gb_checkpoint_count(const gb_checkpoint *checkpoint);
const gb_tensor *gb_checkpoint_at(const gb_checkpoint *checkpoint, size_t index);

/* Where a tensor is among them; their count where it is none of them. */
size_t gb_checkpoint_index(const gb_checkpoint *checkpoint, const gb_tensor *tensor);

/* directory/name in new memory (gb_free), or NULL when there is none. */
char *gb_join_path(const char *directory, const char *name);

#endif
