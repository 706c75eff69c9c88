/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of texts as automata: however many there are, an answer has one place among them.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_WORDS_H
#define GUMBEL_GRAMMAR_COMPILE_WORDS_H

#include "grammar/compile/compiler.h"

typedef struct gb_word {
    const uint8_t *bytes;
    size_t size;
    uint32_t next; /* the state where it goes on */
} gb_word;

/* Adds the minimal deterministic automaton of the words to an automaton. Sorts the words, which may stand
 * there twice. Returns the start state, which is `next` of the empty word alone; GB_NO_STATE without words
 * and after an error, which the compiler or the automaton keeps. */
uint32_t gb_add_words(gb_compiler *compiler, gb_automaton *automaton, gb_word *words, size_t count);

#endif
