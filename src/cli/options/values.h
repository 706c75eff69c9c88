/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a value from text: the whole text must be the value, and it must lie in its range. Used for flags
 * and for the commands inside `chat`. None of them prints.
 */
#ifndef GUMBEL_CLI_OPTIONS_VALUES_H
#define GUMBEL_CLI_OPTIONS_VALUES_H

#include "cli/base/storage.h"
#include "gumbel.h"

#include <stdbool.h>

/* The interval [low, high], or (low, high]; also_value may lie outside it. low == high == 0: anything. */
typedef struct cli_range {
    double low, high;
    bool low_excluded;
    bool has_also;
    double also_value;
} cli_range;

/* "an integer in [1, 1024]", "0 or a number in [0.0001, 10000]". */
void cli_describe_range(const cli_range *range, bool integer, char *text, size_t capacity);

/* One of these words, in small or capital letters. */
#define CLI_SWITCH_WORDS "1 0 true false on off"
bool cli_parse_switch(const char *text, bool *value);

/* Decimal numbers; false when text is something else or outside the range. */
bool cli_parse_integer(const char *text, const cli_range *range, int64_t *value);
bool cli_parse_number(const char *text, const cli_range *range, double *value);

/* The decimal number of fewest digits that is this float32: 0.8 rather than 0.800000012. */
double cli_decimal(float value);

/* Integers of the range separated by commas: "64,256,1024". integers is replaced; false also when there are
 * more than it holds. */
enum { CLI_MOST_INTEGERS = 16 };
typedef struct cli_integers {
    size_t count;
    int64_t values[CLI_MOST_INTEGERS];
    const char *word; /* given in place of numbers, one that the option takes; NULL: none */
} cli_integers;

bool cli_parse_integers(const char *text, const cli_range *range, cli_integers *integers);

/* 0 .. 2^64-1, or -1, which gives *draw = true. */
bool cli_parse_seed(const char *text, bool *draw, uint64_t *value);

/* Ids separated by commas, blanks or both: "2,17,99". At least one; none above 2^31-1. tokens must be empty
 * and stays so on failure. */
bool cli_parse_tokens(const char *text, cli_tokens *tokens);

/* Tokens with what is added to their logits; a token has one entry. Copied like a number. */
enum { CLI_MOST_BIASES = 256 };
typedef struct cli_biases {
    size_t count;
    gumbel_bias list[CLI_MOST_BIASES];
} cli_biases;

/* "17=-2.5,99=-inf", or as llama.cpp writes it "17-2.5,99-inf": adds entries, or replaces those of the same
 * token; 0 removes one. False when text is
 * something else or the list is full; biases may then have some of the entries. */
bool cli_parse_biases(const char *text, cli_biases *biases);

/* Texts that are given one by one. Copied like a number; the texts themselves are the caller's. */
enum { CLI_MOST_STRINGS = 64 };
typedef struct cli_strings {
    size_t count;
    const char *list[CLI_MOST_STRINGS];
} cli_strings;

/* Adds a text at the end. False when it is empty or the list is full. */
bool cli_add_string(const char *text, cli_strings *strings);

/* Empties the list. Returns true. */
bool cli_clear_strings(cli_strings *strings);

/* Words of the command line. The list is allocated; the words are the caller's. */
typedef struct cli_words {
    const char **list;
    size_t count;
} cli_words;

/* Adds the words to text with a blank between them. */
void cli_words_join(const cli_words *words, gb_byte_buffer *text);
void cli_words_free(cli_words *words);

/* Whether value is one of the words in choices, which are separated by single blanks. */
bool cli_is_choice(const char *value, const char *choices);

#endif
