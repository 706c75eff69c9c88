/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks, and all that can be reached from some of them without taking a byte: calls push frames, ends pop
 * them. Frames are stored once each.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_CLOSURE_H
#define GUMBEL_GRAMMAR_MATCH_CLOSURE_H

#include "grammar/compile/automaton.h"
#include "grammar/match/intern.h"
#include "grammar/match/text_sets.h"

/* A place: a state on top of frames; frame 0 is none. */
typedef struct gb_stack {
    uint32_t state, frame;
} gb_stack;

typedef enum gb_frame_kind {
    GB_FRAME_CALL,
    GB_FRAME_COUNT,     /* in an item of counts[part]; value: how many came before it */
    GB_FRAME_UNITS,     /* in counts[part], which counts its units; value: how many are complete */
    GB_FRAME_ITEM,      /* in an item of orders[part]; value: what was seen, with this item */
    GB_FRAME_SEPARATOR, /* between items of orders[part]; value: what was seen */
    GB_FRAME_DISTINCT,  /* in an item of distincts[part], on top of all; value: what it must differ from */
    GB_FRAME_BETWEEN,   /* between items of distincts[part]; value: what they were */
    GB_FRAME_JOINED     /* calls of one part at one place, which is read once for all; value: their frames */
} gb_frame_kind;

/* As it is stored: five words. */
typedef struct gb_frame {
    uint32_t parent, next; /* where to go on after it: a state on top of a frame */
    uint32_t kind, part, value;
} gb_frame;

/* Values of counted frames that stand for all those from where no token reaches a bound. They do not grow. */
#define GB_FAR_BELOW (UINT32_MAX - 1)
#define GB_FAR_WITHIN UINT32_MAX

static inline bool gb_is_far(uint32_t value) {
    return value == GB_FAR_BELOW || value == GB_FAR_WITHIN;
}

/* A count that the value is or stands for, of items of which there must be so many. */
static inline uint32_t gb_count_of(uint32_t value, uint32_t least) {
    return value == GB_FAR_BELOW ? 0 : value == GB_FAR_WITHIN ? least : value;
}

static inline bool gb_is_counted(const gb_frame *frame) {
    return frame->kind == GB_FRAME_COUNT || frame->kind == GB_FRAME_UNITS;
}

static inline bool gb_is_distinct(const gb_frame *frame) {
    return frame->kind == GB_FRAME_DISTINCT || frame->kind == GB_FRAME_BETWEEN;
}

typedef struct gb_stack_list {
    gb_stack *items;
    size_t count, capacity;
} gb_stack_list;

typedef struct gb_closure {
    const gb_automaton *automaton;
    gb_intern_table frames; /* number 0 is no frame */
    gb_intern_table seen;   /* of items in any order: how many, then a bit for each; of distinct ones */
    gb_intern_table joined; /* frames of calls, sorted */
    gb_text_sets texts;     /* of items that differ */
    gb_stack_list found; /* stacks whose state takes a byte or a token, or that are at the end of the text */
    gb_stack_list pending;
    gb_stack_list calls; /* that are still to be joined: where the part begins, and the frame of the call */
    gb_stack *visited;   /* a hash table; of this closure where the stamp is right */
    uint32_t *stamps;
    uint32_t stamp;
    size_t visited_slots, visited_count, limit;
    uint32_t *scratch; /* a set of items seen */
    uint32_t *missing; /* a set of items that must follow */
    size_t scratch_capacity, missing_capacity;
    bool failed; /* memory ran out */
    bool full;   /* limit was reached */
} gb_closure;

/* false without memory; gb_closure_free is to be called in any case. */
bool gb_closure_begin(gb_closure *closure, const gb_automaton *automaton, size_t limit);
void gb_closure_free(gb_closure *closure);

/* Forgets what was found. */
void gb_closure_clear(gb_closure *closure);

/* Adds a stack to those to begin with. */
void gb_closure_add(gb_closure *closure, uint32_t state, uint32_t frame);

/* Fills found, sorted. */
void gb_closure_run(gb_closure *closure);

size_t gb_closure_bytes(const gb_closure *closure);

/* Frames, for gb_closure_run. */
void gb_begin_count(gb_closure *closure, uint32_t part, uint32_t next, uint32_t frame);
void gb_pass_gate(gb_closure *closure, const gb_automaton_state *state, uint32_t frame);
void gb_begin_order(gb_closure *closure, uint32_t part, uint32_t next, uint32_t frame);
void gb_end_item(gb_closure *closure, gb_frame frame);
void gb_choose_item(gb_closure *closure, gb_frame frame);
void gb_begin_distinct(gb_closure *closure, uint32_t part, uint32_t next, uint32_t frame);
void gb_end_distinct(gb_closure *closure, gb_frame frame);
void gb_pop_frame(gb_closure *closure, uint32_t frame);

/* The number of a frame, or 0 after an error; and the frame of a number that is not 0. */
uint32_t gb_frame_number(gb_closure *closure, gb_frame frame);
gb_frame gb_frame_at(const gb_closure *closure, uint32_t number);

/* The frame that ends as all of these do, which are sorted in place: one alone itself. 0 after an error. */
uint32_t gb_join_frames(gb_closure *closure, uint32_t *frames, size_t count);

/* The frames right below one, of which it has one or those that it joins; valid until one is added. */
const uint32_t *gb_frames_below(const gb_closure *closure, uint32_t frame, size_t *count);

/* What is found for frames, each from what was found for those below it. */
typedef struct gb_frame_walk {
    uint32_t *done; /* by frame: what was found; 0: nothing yet */
    uint32_t *path; /* scratch, owned by the caller; starts NULL */
    size_t path_capacity;
} gb_frame_walk;

/* The frame in `to` that joins what was found for those that a frame of `from` joins; 0 without memory. */
uint32_t gb_join_done(const gb_frame_walk *walk, const gb_closure *from, uint32_t frame, gb_closure *to);

/* Finds it for one frame, whose number is not 0. False on an error. */
typedef bool gb_frame_visitor(void *context, uint32_t frame);

/* Visits a frame and those below it that are not done, these first. False without memory, and where visit
 * gives that. */
bool gb_walk_frames(gb_frame_walk *walk, const gb_closure *closure, uint32_t top, gb_frame_visitor *visit,
                    void *context);

/* The frame under a state that a byte led to. False where the item then could only be one that was there.
 * Bytes of an automaton with distinct items are classes of their own. */
bool gb_take_distinct_byte(gb_closure *closure, uint32_t *frame, uint8_t byte, uint32_t state);

/* How many items a frame of distinct ones counts, and one that stands for it, where another count does: what
 * is in the item stays, of its text only what would repeat an earlier one. Above it no other item ends, since
 * what that would have to differ from is not known. */
uint32_t gb_distinct_count(const gb_closure *closure, gb_frame frame);
gb_frame gb_forget_text(gb_closure *closure, gb_frame frame, uint32_t count);

/* The frame in another closure, its parent apart; moved: as gb_texts_move has it. */
gb_frame gb_move_distinct(const gb_closure *from, gb_closure *to, gb_frame frame, uint32_t *moved);

#endif
