/* SPDX-License-Identifier: Apache-2.0
 *
 * A blob that is being downloaded: blobs/HASH.gumbel.incomplete. Its bytes arrive in any order; behind them
 * stands one byte for each chunk of HUB_CHUNK bytes, which is set when the chunk is written, so that a
 * process that is killed at any time loses the unfinished chunks alone. When all is there and its hash is
 * right the file is cut to its size and renamed to blobs/HASH. One thread at a time.
 */
#ifndef GUMBEL_HUB_PARTIAL_H
#define GUMBEL_HUB_PARTIAL_H

#include "hub/hash.h"
#include "hub/listing.h"

enum { HUB_CHUNK = 1 << 18 };
#define HUB_INCOMPLETE ".gumbel.incomplete"

typedef struct hub_partial {
    const hub_file *file;
    char path[HUB_PATH], blob[HUB_PATH]; /* while it is incomplete, and after that */
    int descriptor;
    unsigned char *states; /* of each chunk */
    size_t chunks;
    uint64_t bytes;       /* of the chunks that are there */
    size_t first_missing; /* no chunk before this one is missing */
    size_t hashed;        /* chunks that the hash has */
    hub_hash *hash;
    bool is_resumed; /* an earlier process has written some of it */
    bool is_whole;   /* it is requested in one piece: the server ignores ranges */
} hub_partial;

/* Bytes of a file; offset moves on as they are written. */
typedef struct hub_range {
    uint64_t offset, end;
} hub_range;

/* Opens or makes the file for file, which must outlive it. Close with hub_partial_close in any case.
 * Errors: IO, MEMORY. */
gumbel_status hub_partial_open(const char *blobs, const hub_file *file, hub_partial *partial,
                               gumbel_error *error);

/* Takes the next bytes that are missing and that nobody has taken, at most limit chunks; false: there are
 * none. Every range ends in hub_partial_release. */
bool hub_partial_claim(hub_partial *partial, size_t limit, hub_range *range);

/* Writes bytes at range->offset, which moves on. count is at most what is left of the range. Errors: IO;
 * LIMIT where the disk is full. */
gumbel_status hub_partial_write(hub_partial *partial, hub_range *range, const void *bytes, size_t count,
                                gumbel_error *error);

/* Gives back what of the range was not finished; begin: where it began. */
void hub_partial_release(hub_partial *partial, uint64_t begin, const hub_range *range);

/* Hashes up to limit chunks that are there and follow those hashed so far. *is_done: all are. Errors: IO. */
gumbel_status hub_partial_hash(hub_partial *partial, size_t limit, bool *is_done, gumbel_error *error);

/* After *is_done: checks the hash and puts the blob in its place. A wrong one is removed. Errors: FORMAT
 * where the hash is wrong; IO. */
gumbel_status hub_partial_finish(hub_partial *partial, gumbel_error *error);

/* Bytes that an unfinished download of the file has on disk; 0: there is none. */
uint64_t hub_partial_bytes_there(const char *blobs, const hub_file *file);

/* Keeps what is incomplete for the next time. Allowed on a zeroed one. */
void hub_partial_close(hub_partial *partial);

#endif
