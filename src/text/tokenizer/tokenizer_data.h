/* SPDX-License-Identifier: Apache-2.0
 *
 * A program's tokenizer section as data: a checked view of its bytes, with the vocabulary, the merges, the
 * added tokens and the steps of normalizer, pre-tokenizer and decoder. docs/tokenizer-format.md describes the
 * bytes; the exporter writes them with the numbers given here. Nothing here encodes or decodes text.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_TOKENIZER_DATA_H
#define GUMBEL_TEXT_TOKENIZER_TOKENIZER_DATA_H

#include "program/program.h"
#include "text/base/byte_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The section begins with these four bytes and a version. */
#define GB_TOKENIZER_MAGIC "GBTK"
enum { GB_TOKENIZER_VERSION = 2 };

/* Numbers of the parts, in the order in which they stand. Never reused. */
typedef enum gb_tokenizer_part {
    GB_PART_MODEL = 1,
    GB_PART_VOCABULARY = 2,
    GB_PART_MERGES = 3,
    GB_PART_ADDED = 4,
    GB_PART_NORMALIZER = 5,
    GB_PART_PRE_TOKENIZER = 6,
    GB_PART_DECODER = 7,
    GB_PART_AROUND = 8,
    GB_PART_LIMIT = 9 /* one more than the largest so far */
} gb_tokenizer_part;

/* Of the model part. */
enum { GB_MODEL_BPE = 1 };
enum {
    GB_BPE_BYTE_FALLBACK = 1,
    GB_BPE_FUSE_UNKNOWN = 2,
    GB_BPE_IGNORE_MERGES = 4,
    GB_BPE_BYTE_LEVEL = 8, /* symbols are bytes; the model's spellings need not be UTF-8 */
    GB_BPE_ALL = 15
};

/* Of an added token. */
enum {
    GB_ADDED_SPECIAL = 1,      /* hidden when decoding, never found in text that is not to be parsed */
    GB_ADDED_NORMALIZED = 2,   /* found in the text after normalizing, by its own normalized spelling */
    GB_ADDED_LEFT_STRIP = 4,   /* takes the white space before it */
    GB_ADDED_RIGHT_STRIP = 8,  /* takes the white space after it */
    GB_ADDED_SINGLE_WORD = 16, /* not found within a word */
    GB_ADDED_OUTSIDE = 32,     /* not in the model's vocabulary: merges never make it */
    GB_ADDED_ALL = 63
};

/* Kinds of steps. Each list numbers its own. */
enum {
    GB_NORMALIZE_REPLACE = 1, /* every pattern becomes content */
    GB_NORMALIZE_NFC = 2,     /* normalization form C */
    GB_NORMALIZE_PREPEND = 3  /* content comes before the text */
};
enum {
    GB_SPLIT_TEXT = 1,      /* the pattern is text; option: merged with previous */
    GB_SPLIT_EXPRESSION = 2 /* the pattern is a regular expression; option: isolated */
};
enum {
    GB_SPLIT_MERGED_WITH_PREVIOUS = 1, /* a match belongs to the piece that it ends */
    GB_SPLIT_ISOLATED = 2              /* a match is a piece of its own */
};
enum {
    GB_DECODE_REPLACE = 1,       /* as in the normalizer */
    GB_DECODE_BYTE_FALLBACK = 2, /* <0xE2> tokens become bytes */
    GB_DECODE_BYTE_LEVEL = 3     /* spellings are bytes */
};

enum {
    GB_MAX_TEXT_STEPS = 8,
    GB_MAX_AROUND = 8,
    GB_MAX_TOKENS = 1 << 23, /* float32 holds the index of every logit */
    GB_MAX_MERGES = 1 << 24,
    GB_MAX_TOKEN_BYTES = 4096,
    GB_MAX_PATTERN_BYTES = 256,
    GB_MAX_EXPRESSION_BYTES = 1024,
    GB_MAX_DECODER_GROWTH = 256 /* bytes that the decoder may make of one */
};

typedef struct gb_text_step {
    uint32_t kind, option;
    const char *pattern, *content; /* not terminated by a zero */
    uint32_t pattern_length, content_length;
} gb_text_step;

typedef struct gb_text_steps {
    gb_text_step items[GB_MAX_TEXT_STEPS];
    uint32_t count;
} gb_text_steps;

typedef struct gb_merge {
    int32_t left, right, result;
} gb_merge;

typedef struct gb_added_token {
    int32_t id;
    uint32_t flags;
} gb_added_token;

/* Pointers lead into the section's bytes. */
typedef struct gb_tokenizer_data {
    uint32_t bpe_flags;
    int32_t unknown; /* -1: none */
    uint32_t token_count, merge_count, added_count;
    uint32_t longest_token;       /* bytes */
    const uint8_t *token_offsets; /* u32[token_count + 1] into token_bytes */
    const uint8_t *token_bytes;
    const uint8_t *merges; /* u32[merge_count][3] by rank */
    const uint8_t *added;  /* u32[added_count][2] */
    gb_text_steps normalizer, pre_tokenizer, decoder;
    int32_t before[GB_MAX_AROUND], after[GB_MAX_AROUND]; /* what stands around plain text */
    uint32_t before_count, after_count;
} gb_tokenizer_data;

/* Reads and checks the section. After it every id is below token_count, every spelling is well-formed UTF-8
 * (at byte level those of added tokens are), and a merge's result is spelled left + right. Expressions are
 * not compiled yet. data points into blob, which must outlive it. Errors: FORMAT, or UNSUPPORTED for a number
 * that this version does not know. Allocates nothing. */
gumbel_status gb_tokenizer_parse(const gb_blob *blob, gb_tokenizer_data *data, gumbel_error *error);

/* The spelling of id (0 .. token_count-1), not terminated by a zero; *length is 0 for an id that is unused.
 */
static inline const char *gb_token_text(const gb_tokenizer_data *data, int32_t id, size_t *length) {
    const uint8_t *offset = data->token_offsets + 4 * (size_t)id;
    uint32_t start = gb_load_u32(offset);
    *length = gb_load_u32(offset + 4) - start;
    return (const char *)data->token_bytes + start;
}

/* The spellings of all tokens, one behind the other. */
static inline gb_blob gb_token_spellings(const gb_tokenizer_data *data) {
    return (gb_blob){data->token_bytes, gb_load_u32(data->token_offsets + 4 * (size_t)data->token_count)};
}

static inline gb_merge gb_merge_at(const gb_tokenizer_data *data, uint32_t rank) {
    const uint8_t *merge = data->merges + 12 * (size_t)rank;
    return (gb_merge){(int32_t)gb_load_u32(merge), (int32_t)gb_load_u32(merge + 4),
                      (int32_t)gb_load_u32(merge + 8)};
}

static inline gb_added_token gb_added_at(const gb_tokenizer_data *data, uint32_t index) {
    const uint8_t *added = data->added + 8 * (size_t)index;
    return (gb_added_token){(int32_t)gb_load_u32(added), gb_load_u32(added + 4)};
}

static inline bool gb_is_byte_level(const gb_tokenizer_data *data) {
    return data->bpe_flags & GB_BPE_BYTE_LEVEL;
}

/* The byte that the token spelled so stands for ("<0xE2>"), or -1. */
int gb_byte_of_spelling(const char *text, size_t length);

#endif
