/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of one revision of a repository, as the hub's API lists them
 * (GET /api/models/ORG/NAME/revision/REVISION?blobs=true). What comes is untrusted.
 */
#ifndef GUMBEL_HUB_LISTING_H
#define GUMBEL_HUB_LISTING_H

#include "gumbel.h"
#include "hub/names.h"

enum { HUB_HASH = 65, HUB_SHA1 = 40, HUB_SHA256 = 64 };

typedef struct hub_file {
    char *name;          /* within the repository; it stays below a folder that it is joined to */
    uint64_t size;       /* bytes, at most 2^50 */
    char hash[HUB_HASH]; /* HUB_SHA256 digits of SHA-256, or HUB_SHA1 of git's hash; names the blob */
    bool is_here;        /* its blob is in the cache */
} hub_file;

typedef struct hub_listing {
    char commit[HUB_COMMIT];
    hub_file *files; /* owned, and so are their names */
    size_t count;
} hub_listing;

/* Reads the API's answer; repository is for messages. Files whose names could leave their folder or have
 * control characters are left out. Free with hub_listing_free in any case. Errors: FORMAT naming the field;
 * LIMIT for more than 100,000 files; MEMORY. */
gumbel_status hub_parse_listing(const char *bytes, size_t length, const char *repository,
                                hub_listing *listing, gumbel_error *error);

void hub_listing_free(hub_listing *listing);

/* Keeps the files that a model needs and drops the rest: weights in safetensors with their JSON and
 * templates, or the GGUF of name's quant with all its parts, or name's file. Errors: ARGUMENT where there is
 * none or it is not clear which, with a list of those there are. */
gumbel_status hub_select(hub_listing *listing, const hub_name *name, gumbel_error *error);

#endif
