/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions: what every front end (JSON Schema, regular expressions, GBNF) turns its text into, and what
 * gb_grammar_compile takes. An expression stands for a set of byte texts; special tokens, which have no
 * bytes, can stand in it as well.
 *
 * The first error (no memory, a limit, a bad argument) stays: every later call returns 0 and does nothing, so
 * that a reader builds freely and looks at gb_expressions_error once at the end. Not thread-safe.
 */
#ifndef GUMBEL_GRAMMAR_EXPRESSION_H
#define GUMBEL_GRAMMAR_EXPRESSION_H

#include "grammar/watch.h"

#include <stddef.h>
#include <stdint.h>

/* Owns all expressions made in it. */
typedef struct gb_expressions gb_expressions;

/* One expression; 0 is none. May stand in any number of others. */
typedef uint32_t gb_expression;

#define GB_NO_END UINT32_MAX        /* as `most`: no upper limit */
#define GB_MAX_EXPRESSION_DEPTH 500 /* expressions inside expressions; a rule's name begins anew */
#define GB_MAX_EXPRESSIONS (1u << 22)

/* NULL without memory. */
gb_expressions *gb_expressions_create(void);
void gb_expressions_destroy(gb_expressions *expressions);

/* The first error, or GUMBEL_OK; error may be NULL. */
gumbel_status gb_expressions_error(const gb_expressions *expressions, gumbel_error *error);

/* Has a watch end what is read into them and compiled of them; NULL, as at the start: none does. It must live
 * until another one is set. */
void gb_expressions_watch(gb_expressions *expressions, gb_watch *watch);

/* gb_watch_goes_on of their watch, which becomes the error. False after any error. */
bool gb_expressions_go_on(gb_expressions *expressions, uint64_t steps);

/* Makes this the error unless there is one. Returns 0, so that a reader can end in it. */
gb_expression gb_expressions_fail(gb_expressions *expressions, gumbel_status status, const char *format, ...)
    GB_PRINTF(3, 4);

/* The empty text alone. */
gb_expression gb_express_empty(gb_expressions *expressions);

/* No text at all. */
gb_expression gb_express_nothing(gb_expressions *expressions);

/* These bytes, which are copied. */
gb_expression gb_express_bytes(gb_expressions *expressions, const void *data, size_t size);

/* One byte of a set of 256 bits: byte b is bit b % 32 of word b / 32. */
gb_expression gb_express_byte_set(gb_expressions *expressions, const uint32_t set[8]);

/* Code points first to last. */
typedef struct gb_character_range {
    uint32_t first, last;
} gb_character_range;

/* One Unicode character of the ranges, as UTF-8; ranges may overlap and stand in any order. Surrogates, which
 * UTF-8 does not have, are left out. Errors: ARGUMENT (a range that ends before it begins or beyond
 * U+10FFFF). */
gb_expression gb_express_characters(gb_expressions *expressions, const gb_character_range *ranges,
                                    size_t count);

/* One after the other. */
gb_expression gb_express_sequence(gb_expressions *expressions, const gb_expression *items, size_t count);

/* Any one of them. */
gb_expression gb_express_choice(gb_expressions *expressions, const gb_expression *items, size_t count);

/* item least to most times; most may be GB_NO_END. Errors: ARGUMENT (most below least). */
gb_expression gb_express_repeat(gb_expressions *expressions, gb_expression item, uint32_t least,
                                uint32_t most);

/* A byte of first to last leads from a state to another one. */
typedef struct gb_byte_move {
    uint32_t from, to;
    uint8_t first, last;
} gb_byte_move;

/* A deterministic automaton, where regular expressions would be too large; copied. Moves stand in the order
 * of `from`. State 0 begins; accepts [state_count] says where the text may end. From each state one of these
 * must be reachable, unless the automaton is an operand of gb_express_both. Errors: ARGUMENT (a state that is
 * none, another order). */
gb_expression gb_express_automaton(gb_expressions *expressions, const gb_byte_move *moves, size_t move_count,
                                   const bool *accepts, size_t state_count);

/* The texts of both, and those of a that are not of b. Where one operand of gb_express_both is a repeat of
 * items that end where their own bytes say so, as characters do, these are counted however many they are.
 * Operands are regular: no rule that uses itself, no token, no any_order; gb_grammar_compile refuses others.
 */
gb_expression gb_express_both(gb_expressions *expressions, gb_expression a, gb_expression b);
gb_expression gb_express_except(gb_expressions *expressions, gb_expression a, gb_expression b);

/* A rule of this name, which may be used before gb_define_rule gives it its item; the same expression each
 * time. A rule that was used and never defined is an error of gb_grammar_compile that names it. */
gb_expression gb_express_rule(gb_expressions *expressions, const char *name);

/* Whether the rule has its item. */
bool gb_rule_is_defined(const gb_expressions *expressions, gb_expression rule);

/* How many rules there are. */
size_t gb_rule_count(const gb_expressions *expressions);

/* Errors: ARGUMENT (not a rule, or defined already). */
void gb_define_rule(gb_expressions *expressions, gb_expression rule, gb_expression item);

/* One token, by its id: of special tokens, which have no bytes. */
gb_expression gb_express_token(gb_expressions *expressions, uint32_t id);

/* One token, any but this one and those that end the answer. */
gb_expression gb_express_other_token(gb_expressions *expressions, uint32_t id);

typedef struct gb_any_order_item {
    gb_expression item; /* must not allow the empty text */
    bool required;
} gb_any_order_item;

/* Where items[item] stands, items[needed] must stand as well. */
typedef struct gb_implication {
    uint32_t item, needed;
} gb_implication;

/* The members of a JSON object: each item at most once, in any order. */
typedef struct gb_any_order {
    const gb_any_order_item *items;
    size_t count;
    gb_expression separator; /* between two of them; 0: nothing */
    gb_expression rest;      /* may stand between the items, any number of times; 0: nothing may */
    uint32_t least, most;    /* how many of items and rest in all; GB_NO_END: no upper limit */
    const gb_implication *implications;
    size_t implication_count;
} gb_any_order;

/* Everything is copied. Errors: ARGUMENT (most below least; an implication of what is no item; beside
 * implications a `most` below count and a `least` above 1 that those required do not reach). */
gb_expression gb_express_any_order(gb_expressions *expressions, const gb_any_order *order);

/* item least to most times, between two of them the separator (0: nothing), where no text of an item is there
 * twice. The item is regular, as operands of gb_express_both are, and does not allow the empty text. A mask
 * (matcher.h) leaves out tokens that end one item and another behind it. Errors: ARGUMENT (most below least).
 */
gb_expression gb_express_distinct(gb_expressions *expressions, gb_expression item, gb_expression separator,
                                  uint32_t least, uint32_t most);

#endif
