/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user names as a model: a program, a checkpoint's folder, a GGUF or the folder it lies in, a
 * repository's folder of Hugging Face's tools, or ORG/NAME, a repository in their cache (hub/cache.h).
 */
#ifndef GUMBEL_CLI_CHECKPOINT_CHECKPOINT_H
#define GUMBEL_CLI_CHECKPOINT_CHECKPOINT_H

#include "gumbel.h"

typedef struct cli_checkpoint {
    char *path;       /* a folder or a GGUF, as the library takes it; NULL: what was named is no checkpoint */
    char *repository; /* "ORG/NAME", the model's name; NULL: it is in no repository */
    char *shown;      /* what messages call it */
    bool is_absent;   /* a name of the hub, whose files the cache lacks; see cli/pull/get.h */
} cli_checkpoint;

/* Finds the checkpoint that given names. A path that exists is taken before a repository of that name. What
 * is neither a checkpoint nor looks like a repository's name is no error: path stays NULL. Free with
 * cli_checkpoint_free in any case. Errors: IO, saying what was looked for, where, and how to get it; ARGUMENT
 * where there are several models. */
gumbel_status cli_checkpoint_find(const char *given, cli_checkpoint *checkpoint, gumbel_error *error);

void cli_checkpoint_free(cli_checkpoint *checkpoint);

/* After a failure that names a missing file of the checkpoint: adds to the message how to get it, or what
 * else was looked for. */
void cli_checkpoint_explain(const cli_checkpoint *checkpoint, gumbel_error *error);

/* The absolute path without links in its folders, in new memory; NULL where there is no such folder, and
 * errno says why. A file's own link is kept: the hub's lead to names that are hashes. */
char *cli_canonical_path(const char *path);

#endif
