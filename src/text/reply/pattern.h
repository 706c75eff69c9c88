/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of reply formats, searched in a text that may still grow. They come from checkpoints
 * and programs, so that every search is limited.
 */
#ifndef GUMBEL_TEXT_REPLY_PATTERN_H
#define GUMBEL_TEXT_REPLY_PATTERN_H

#include "gumbel.h"

#include <jansson.h>

enum {
    GB_MAX_REPLY_EXPRESSION = 1024, /* bytes of a pattern, or of all literals of a list */
    GB_MAX_REPLY_GROUPS = 16,       /* capture groups of a pattern */
    GB_MAX_REPLY_MARKER = 4096      /* bytes that one match of a delimiter may have */
};

/* Immutable, may be shared by threads. */
typedef struct gb_text_pattern gb_text_pattern;

/* What a search needs besides the pattern: one for each thread. */
typedef struct gb_pattern_matcher gb_pattern_matcher;

/* Compiles a regular expression; `what` names it in messages. Errors: FORMAT, MEMORY. */
gumbel_status gb_pattern_create(const char *expression, const char *what, gb_text_pattern **pattern,
                                gumbel_error *error);

/* A pattern that finds any of the literals: a JSON string, or a list of them that is not empty. Of several
 * that begin at one place the longest is found. Errors as gb_pattern_create. */
gumbel_status gb_pattern_create_literals(const json_t *literals, const char *what, gb_text_pattern **pattern,
                                         gumbel_error *error);

/* NULL is allowed. */
void gb_pattern_destroy(gb_text_pattern *pattern);

/* Whether the text stands in the pattern's expression as it would match itself. */
bool gb_pattern_mentions(const gb_text_pattern *pattern, const char *text, size_t length);

gumbel_status gb_pattern_matcher_create(gb_pattern_matcher **matcher, gumbel_error *error);

/* NULL is allowed. */
void gb_pattern_matcher_destroy(gb_pattern_matcher *matcher);

typedef enum gb_match_state {
    GB_MATCH_NONE,
    GB_MATCH_FOUND,
    GB_MATCH_PENDING, /* what follows the text decides; start is where the match may begin */
    GB_MATCH_FAILED   /* the search took too many steps, or too much memory */
} gb_match_state;

typedef struct gb_text_match {
    gb_match_state state;
    size_t start, end; /* bytes of the text */
} gb_text_match;

typedef enum gb_search {
    GB_SEARCH_WHOLE,   /* the text is complete */
    GB_SEARCH_GROWING, /* more may follow */
    GB_SEARCH_HERE,    /* the text is complete, and the match begins at `from` */
    GB_SEARCH_HERE_GROWING
} gb_search;

/* Finds the leftmost match in length bytes of well-formed UTF-8 that begins at `from` or later. */
gb_text_match gb_pattern_find(const gb_text_pattern *pattern, gb_pattern_matcher *matcher, const char *text,
                              size_t length, size_t from, gb_search search);

/* The group's bytes in the text of the matcher's last search, which found something with this pattern. False
 * if there is no such group, or it took no part. */
bool gb_pattern_group(const gb_text_pattern *pattern, const gb_pattern_matcher *matcher, const char *name,
                      gb_text_match *group);

/* The name of the pattern's i-th named group; NULL past the last. */
const char *gb_pattern_group_name(const gb_text_pattern *pattern, uint32_t i);

#endif
