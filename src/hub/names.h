/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user calls a model of the hub: ORG/NAME[:QUANT][/FILE][@REVISION]. Fixed sizes, no allocation; every
 * function may be called from any thread.
 */
#ifndef GUMBEL_HUB_NAMES_H
#define GUMBEL_HUB_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that each part takes at most, with the zero that ends it. */
enum {
    HUB_REPOSITORY = 2 * 96 + 2,
    HUB_QUANT = 48,
    HUB_FILE = 1024,
    HUB_REVISION = 160,
    HUB_COMMIT = 41, /* 40 hexadecimal digits */
    HUB_PATH = 4096
};

/* Parts that were not given are empty. */
typedef struct hub_name {
    char repository[HUB_REPOSITORY]; /* "ORG/NAME" */
    char quant[HUB_QUANT];           /* which GGUF of the repository: "Q4_K_M" */
    char file[HUB_FILE];             /* a file or folder of the repository */
    char revision[HUB_REVISION];     /* a branch, a tag or a commit */
} hub_name;

/* False where text cannot be such a name. "hf.co/" and "https://huggingface.co/" before it are left out. */
bool hub_parse_name(const char *text, hub_name *name);

/* Whether a path that came from elsewhere names something below the folder that it is joined to: relative,
 * without "..", "." or empty parts, and without control characters. */
bool hub_stays_below(const char *path);

/* Whether text ends so. */
bool hub_ends_with(const char *text, const char *ending);

/* Whether text is all hexadecimal digits, in small letters, and has this length. */
bool hub_is_hash(const char *text, size_t length);

/* "ORG/NAME" of a path that goes through a repository's folder "models--ORG--NAME"; false for other paths. */
bool hub_repository_of(const char *path, char repository[HUB_REPOSITORY]);

#endif
