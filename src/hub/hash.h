/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash of a file's bytes that the hub names its blob by: SHA-256, or for small files git's SHA-1 over
 * "blob SIZE", a zero byte and the bytes.
 */
#ifndef GUMBEL_HUB_HASH_H
#define GUMBEL_HUB_HASH_H

#include "hub/listing.h"

typedef struct evp_md_ctx_st hub_hash;

/* Begins the kind of hash that file->hash is; NULL where there is no memory or no such hash. */
hub_hash *hub_hash_begin(const hub_file *file);

/* The same, but without git's header before the bytes: some mirrors of the hub name blobs so. */
hub_hash *hub_hash_begin_plain(const hub_file *file);

/* False where the library fails. */
bool hub_hash_add(hub_hash *hash, const void *bytes, size_t count);

/* Writes the digits and frees the hash; "" where the library fails. */
void hub_hash_end(hub_hash *hash, char digits[HUB_HASH]);

/* Frees a hash that was not ended; NULL is allowed. */
void hub_hash_free(hub_hash *hash);

#endif
