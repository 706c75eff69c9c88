/* SPDX-License-Identifier: Apache-2.0
 *
 * A GGUF checkpoint: one file, or the parts NAME-00001-of-000NN.gguf of a split one. The first part holds the
 * metadata of all.
 */
#ifndef GUMBEL_EXPORT_CHECKPOINT_GGUF_FILES_H
#define GUMBEL_EXPORT_CHECKPOINT_GGUF_FILES_H

#include "export/checkpoint/gguf.h"

typedef struct gb_gguf_files {
    gb_gguf *files; /* files[0] has the metadata */
    size_t count;
    size_t tensor_count; /* in all files */
} gb_gguf_files;

/* Opens the file at path and, where its split.count says that there are more, the parts beside it. Errors:
 * as gb_gguf_open's; FORMAT when path is not the first part, is not named as one, a part's split.no or
 * split.count is not what its name says, or the parts hold another number of tensors than
 * split.tensors.count. Close with gb_gguf_files_close, which is safe on a zeroed structure and twice. */
gumbel_status gb_gguf_files_open(const char *path, gb_gguf_files *files, gumbel_error *error);

void gb_gguf_files_close(gb_gguf_files *files);

/* The tensor of that name in any of the files, or NULL. */
const gb_tensor *gb_gguf_files_find(const gb_gguf_files *files, const char *name);

#endif
