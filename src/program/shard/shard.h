/* SPDX-License-Identifier: Apache-2.0
 *
 * A program sharded over ranks, of which each has a device: a graph of fewer heads and columns for each, with
 * all_gather where an op reads whole rows. Only what stands side by side is cut (rows of weights, heads,
 * never a sum), so every number is computed as one device would and has its bits. ops.def says by which dims
 * an op can be cut. (Shoeybi et al., Megatron-LM, 2019, with all products cut by columns)
 */
#ifndef GUMBEL_PROGRAM_SHARD_SHARD_H
#define GUMBEL_PROGRAM_SHARD_SHARD_H

#include "program/program.h"

enum { GB_MOST_SECTIONS = 16, GB_WHOLE = -1 };

/* A stretch of a dim, of which each rank has an equal part: so many units (heads, or columns) that stay
 * together. Where there are fewer units than ranks, several ranks have the same one. */
typedef struct gb_section {
    int64_t size, units;
} gb_section;

/* How a value, a constant or a state is cut. */
typedef struct gb_shard {
    int32_t dim; /* GB_WHOLE: every rank has all of it */
    uint32_t section_count;
    gb_section sections[GB_MOST_SECTIONS]; /* the whole dim, in order */
} gb_shard;

/* Elements first .. first + count - 1 of a section, that a rank has. */
typedef struct gb_shard_range {
    int64_t first, count;
} gb_shard_range;

gb_shard_range gb_shard_range_of(const gb_section *section, uint32_t rank, uint32_t ranks);

/* What a rank has of the whole dim. */
int64_t gb_shard_size(const gb_shard *shard, uint32_t rank, uint32_t ranks);

/* A constant of a sharded program: which ranges of a dim of which constant it has. */
typedef struct gb_constant_part {
    const gb_constant *whole; /* of the program that was sharded */
    int32_t dim;
    uint32_t range_count;
    gb_shard_range ranges[GB_MOST_SECTIONS];
} gb_constant_part;

/* Writes the bytes of a constant that is a part, constant->size of them. Errors: MEMORY. */
gumbel_status gb_constant_part_read(const gb_constant *constant, uint8_t *to, gumbel_error *error);

typedef struct gb_shard_options {
    uint32_t rank, ranks;
    /* Products with smaller weights are left to every rank, since a gather would take longer. */
    int64_t least_weights;
} gb_shard_options;

/* Weights of 2 million numbers are read in about a microsecond, and a gather takes two or three. */
enum { GB_LEAST_SHARDED_WEIGHTS = 2 << 20 };

typedef struct gb_sharded {
    gb_program *program;
    gb_shard *states; /* by state of both programs, which are the same ones in the same order */
} gb_sharded;

/* Makes a rank's program, whose constants are the given one's or parts of them: it must outlive the result,
 * which is freed with gb_sharded_free, also after a failure. Errors: UNSUPPORTED (heads or rows that the
 * ranks do not divide, with the counts that do), MEMORY. */
gumbel_status gb_program_shard(const gb_program *program, const gb_shard_options *options,
                               gb_sharded *sharded, gumbel_error *error);
void gb_sharded_free(gb_sharded *sharded);

#endif
