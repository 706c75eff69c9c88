/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder in which Hugging Face's tools keep what they have downloaded, and gumbel what it pulls. In it a
 * repository ORG/NAME is
 *
 *     models--ORG--NAME/refs/REVISION      the commit that a branch or tag stood for
 *     models--ORG--NAME/snapshots/COMMIT/  the files of that commit, links into blobs/
 *     models--ORG--NAME/blobs/HASH         a file's bytes: SHA-256 of large files, git's SHA-1 of others
 *
 * The folder is $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
 * ~/.cache/huggingface/hub. Paths have room for HUB_PATH bytes; nothing here allocates.
 */
#ifndef GUMBEL_HUB_CACHE_H
#define GUMBEL_HUB_CACHE_H

#include "gumbel.h"
#include "hub/names.h"

#include <sys/types.h>

/* The folder; false where the environment names none, or a path is too long. */
bool hub_cache_folder(char path[HUB_PATH]);

/* A file below Hugging Face's own folder, which is $HF_HOME, else $XDG_CACHE_HOME/huggingface, else
 * ~/.cache/huggingface. False as above. */
bool hub_home_path(const char *name, char path[HUB_PATH]);

/* Where it is remembered which blobs were verified (hub/verify.h). False as above. */
bool hub_records_folder(char path[HUB_PATH]);

/* The folder of "ORG/NAME", whether it is there or not. False as above. */
bool hub_repository_folder(const char *repository, char path[HUB_PATH]);

/* Whether the folder at path is a repository's: it is called so and has snapshots. */
bool hub_is_repository(const char *path);

/* The snapshot of a revision in a repository's folder; revision "": main, or the only snapshot there is.
 * Errors: IO, saying what is there and how to get the revision. */
gumbel_status hub_find_snapshot(const char *folder, const char *revision, char snapshot[HUB_PATH],
                                gumbel_error *error);

/* Whether a snapshot's folder has config.json and all the weights that its index names. */
bool hub_has_weights(const char *snapshot);

/* "FOLDER/NAME"; path may be folder. False where it is too long. */
bool hub_join(const char *folder, const char *name, char path[HUB_PATH]);

/* Makes the folder and those above it where they are missing, of that mode. Errors: IO naming the folder. */
gumbel_status hub_make_folder(const char *path, mode_t mode, gumbel_error *error);

#endif
