/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder in which Hugging Face's tools keep what they have downloaded. In it a repository ORG/NAME is
 *
 *     models--ORG--NAME/refs/REVISION      the commit that a branch or tag stood for
 *     models--ORG--NAME/snapshots/COMMIT/  the files of that commit, links into blobs/
 *
 * The folder is $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
 * ~/.cache/huggingface/hub.
 */
#ifndef GUMBEL_CLI_CHECKPOINT_HUB_H
#define GUMBEL_CLI_CHECKPOINT_HUB_H

#include "gumbel.h"

/* What ORG/NAME[/FILE][@REVISION] says. */
typedef struct cli_hub_name {
    char *repository; /* "ORG/NAME" */
    char *file;       /* within the snapshot; NULL: none was given */
    char *revision;   /* NULL: none was given */
} cli_hub_name;

/* False where text cannot be such a name; name is then zeroed. Free with cli_hub_name_free in any case. */
bool cli_hub_parse(const char *text, cli_hub_name *name);
void cli_hub_name_free(cli_hub_name *name);

/* The repository's folder within the hub's, whether it is there or not; NULL where the environment tells of
 * no place. Free with free(). */
char *cli_hub_folder(const char *repository);

/* Whether the folder at path is a repository's: it is called so and has snapshots. */
bool cli_hub_is_repository(const char *path);

/* The snapshot of a revision in a repository's folder; revision NULL: main, or the only snapshot there is.
 * Free *snapshot with free(). Errors: IO, saying what is there and how to get the revision. */
gumbel_status cli_hub_find_snapshot(const char *folder, const char *revision, char **snapshot,
                                    gumbel_error *error);

/* "ORG/NAME" of a repository's folder or of a path within it, NULL of any other path. Free with free(). */
char *cli_hub_repository(const char *path);

#endif
