/* SPDX-License-Identifier: Apache-2.0
 *
 * Small valid programs. The tiny program has two layers (a sliding window in a ring, a full cache),
 * soft-capped logits and the full sampler; the tiny recurrent program a delta net and experts; the tiny head
 * guesses for the tiny target. Between them they have every op of ops.def, so that tests of files, plans and
 * printers see all of them.
 */
#ifndef GUMBEL_TESTS_TINY_PROGRAM_H
#define GUMBEL_TESTS_TINY_PROGRAM_H

#include "program/builder.h"
#include "program/program.h"
#include "program/setting_kinds.h"

enum {
    TINY_VOCABULARY = 48,
    TINY_WIDTH = 16,
    TINY_HEADS = 2,
    TINY_KEY_HEADS = 1,
    TINY_HEAD_WIDTH = 8,
    TINY_CONTEXT = 64,
    TINY_CHUNK = 4,
    TINY_WINDOW = 8,
    TINY_RING = 12,
    TINY_CONV = 3, /* of the recurrent program: its convolution's width, its experts and choices */
    TINY_EXPERTS = 5,
    TINY_CHOICES = 2,
    TINY_BIASES = 3,
    TINY_MASK_WORDS = (TINY_VOCABULARY + 31) / 32,
    TINY_TOP = 5,
/* nodes: one for each mask of roles.def, and the others */
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...) +GB_OF_MASKS(kind)(1) + 0
    TINY_MASKS = 0
#include "program/roles.def"
    ,
    TINY_NODES = 74 + TINY_MASKS
};

/* Without sampling the program ends in logits. Free with gb_program_destroy. Fails the test on an error. */
gb_program *tiny_program_build(bool use_sampling);

/* The same, returning the error. */
gumbel_status tiny_program_try(bool use_sampling, gb_program **program, gumbel_error *error);

gb_program *tiny_recurrent_build(bool use_sampling);

/* The tiny program, sampling, with its hidden states kept, and a head that guesses for it: its embedding and
 * the hidden state before it, a layer, and the same end. */
gb_program *tiny_target_build(void);
gb_program *tiny_head_build(void);

/* A head of the same target that attends to the keys and values which that has stored. */
gb_program *tiny_reader_build(void);

/* The tiny target with either head, which shares its embedding and last norm. */
gb_program *tiny_pair_build(void);
gb_program *tiny_reader_pair_build(void);

/* The sampler on soft-capped logits [B,V], as DESIGN's contract of the sampler has it. */
gb_ref tiny_program_sampler(gb_builder *builder, gb_ref logits);

/* Writes the program with made-up weights, the same every time. */
gumbel_status tiny_program_write(gb_program *program, const char *path, gumbel_error *error);

#endif
