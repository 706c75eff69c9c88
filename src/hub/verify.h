/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether blobs of the cache still have the bytes that their names are hashes of: a disk or another tool may
 * have damaged one whose size is right. A blob is hashed once, which
 *
 *     $XDG_CACHE_HOME/gumbel/blobs/HASH      (else below ~/.cache)
 *
 * remembers with the blob's size, modification time and inode; one that changes is hashed again.
 */
#ifndef GUMBEL_HUB_VERIFY_H
#define GUMBEL_HUB_VERIFY_H

#include "hub/pull.h"

/* Hashes the blob unless it is known. *is_whole: it is what hash says, in HUB_SHA1 or HUB_SHA256 digits.
 * what: the file's name, for progress. callbacks may be NULL. Errors: IO, MEMORY, CANCELLED. */
gumbel_status hub_verify_blob(const char *blob, const char *hash, const char *what,
                              const hub_callbacks *callbacks, bool *is_whole, gumbel_error *error);

/* Remembers that the blob is whole, where it can. */
void hub_note_whole(const char *blob, const char *hash);

/* Verifies what an export of a checkpoint reads, a snapshot's folder or a GGUF with all its parts: those of
 * its files that are links to blobs. Elsewhere, and in builds that cannot pull, nothing is verified. Errors:
 * FORMAT naming the blob and what to do; those of hub_verify_blob. */
gumbel_status hub_verify(const char *checkpoint, const hub_callbacks *callbacks, gumbel_error *error);

#endif
