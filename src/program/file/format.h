/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of the program file's layout; docs/program-format.md describes them. None is ever reused or
 * changed in meaning. All integers in the file are little-endian.
 */
#ifndef GUMBEL_PROGRAM_FILE_FORMAT_H
#define GUMBEL_PROGRAM_FILE_FORMAT_H

/* The header, at offset 0: field offsets in bytes. */
enum {
    GB_HEADER_MAGIC = 0,           /* 8 bytes */
    GB_HEADER_VERSION = 8,         /* u32: of the format, as the writer knew it */
    GB_HEADER_READER_VERSION = 12, /* u32: a reader of a smaller version must refuse the file */
    GB_HEADER_FILE_SIZE = 16,      /* u64 */
    GB_HEADER_TABLE = 24,          /* u64: offset of the section table */
    GB_HEADER_SECTIONS = 32,       /* u32: entries of the table */
    GB_HEADER_RESERVED = 36,       /* u32: 0 */
    GB_HEADER_ID = 40,             /* 16 bytes: XXH3-128 (canonical) of the section table */
    GB_HEADER_CHECKSUM = 56,       /* u64: XXH3-64 of the 56 bytes before it */
    GB_HEADER_BYTES = 64
};

#define GB_MAGIC "gumbel\0\1" /* 8 bytes; the string's own zero is not one of them */
enum { GB_MAGIC_BYTES = 8, GB_FORMAT_VERSION = 3 };

/* Files of an older version are refused: what they lack is in their checkpoint alone. */
enum { GB_OLDEST_FORMAT_VERSION = 3 /* chat templates as they are */ };

/* An entry of the section table. */
enum {
    GB_ENTRY_KIND = 0,      /* u32 */
    GB_ENTRY_FLAGS = 4,     /* u32 */
    GB_ENTRY_OFFSET = 8,    /* u64: a multiple of GB_SECTION_ALIGNMENT */
    GB_ENTRY_SIZE = 16,     /* u64 */
    GB_ENTRY_CHECKSUM = 24, /* u64: XXH3-64 of the section; 0 for weights */
    GB_ENTRY_BYTES = 32
};
enum { GB_ENTRY_REQUIRED = 1 /* a reader that does not know the kind refuses the file */ };
enum { GB_SECTION_ALIGNMENT = 4096, GB_WEIGHT_ALIGNMENT = 64, GB_MAX_SECTIONS = 64 };

typedef enum gb_section_kind {
    GB_SECTION_METADATA = 1,
    GB_SECTION_GRAPH = 2,
    GB_SECTION_WEIGHTS = 3,
    GB_SECTION_TOKENIZER = 4,
    GB_SECTION_CHAT = 5,
    GB_SECTION_TRIE = 6,
    GB_SECTION_HEAD_METADATA = 7, /* of the draft head */
    GB_SECTION_HEAD_GRAPH = 8,
    GB_SECTION_LIMIT = 9
} gb_section_kind;

/* A record: u16 tag, u16 flags, u32 length, then length bytes. */
enum { GB_RECORD_BYTES = 8 };
enum { GB_RECORD_CRITICAL = 1 /* a reader that does not know the tag refuses the file */ };

/* Records of the graph section; each holds fields, which are records too. */
typedef enum gb_graph_tag {
    GB_GRAPH_VALUE = 1,
    GB_GRAPH_NODE = 2,
    GB_GRAPH_REGION = 3,
    GB_GRAPH_CONSTANT = 4,
    GB_GRAPH_STATE = 5,
    GB_GRAPH_INPUT = 6,
    GB_GRAPH_OUTPUT = 7,
    GB_GRAPH_LIMIT = 8
} gb_graph_tag;

enum { GB_VALUE_FIELD_DEFINITION = 1 /* u32 kind, u32 index */, GB_VALUE_FIELD_TYPE = 2 };
enum {
    GB_NODE_FIELD_OP = 1,       /* u32 */
    GB_NODE_FIELD_OPERANDS = 2, /* u32 each */
    GB_NODE_FIELD_RESULTS = 3,  /* u32 each */
    GB_NODE_FIELD_REGIONS = 4,  /* u32, u32; only of an if */
    GB_NODE_FIELD_INT = 5,      /* u32 key, i64; once for each attribute */
    GB_NODE_FIELD_FLOAT = 6     /* u32 key, f64; once for each attribute */
};
enum { GB_REGION_FIELD_NODES = 1 /* u32 first, u32 count */, GB_REGION_FIELD_YIELDS = 2 /* u32 each */ };
enum {
    GB_CONSTANT_FIELD_NAME = 1,
    GB_CONSTANT_FIELD_TYPE = 2,
    GB_CONSTANT_FIELD_DATA = 3,    /* u64 offset in the file, u64 size, u64 XXH3-64 */
    GB_CONSTANT_FIELD_FORMAT = 4,  /* only of a quantized one: u32 kind, bits, group, scale dtype, 1 with
                                    * biases, scale bits */
    GB_CONSTANT_FIELD_PACKING = 5, /* only of a packed one: u32 rows of a block, then the layouts of codes,
                                    * high codes, scales, high scales, supers */
    GB_CONSTANT_FIELD_BOOK = 6     /* only of a quantized one with a book: u32 */
};
enum {
    GB_STATE_FIELD_NAME = 1,
    GB_STATE_FIELD_KIND = 2, /* u32 kind, u32 window */
    GB_STATE_FIELD_TYPE = 3
};
enum { GB_BINDING_FIELD = 1 /* u32 role, u32 value */ };

/* A type: u32 dtype, u32 rank, then i64 for each dim. A layout: u32 parts, u32 flags, for each part u32 axis
 * and u32 size, then the order, u32 part numbers. */
enum { GB_LAYOUT_FLAG_HIGH_NIBBLE_FIRST = 1 };

#endif
