/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots without an engine, for tests of the scheduler. A slot's states are the tokens that were run in it, as
 * a cache that can be cut anywhere, and on demand a hash of them, which cannot be cut. The token drawn is a
 * function of all states and the seed, so that states of another sequence or position give another token. So
 * do tokens of an answer that were run as a prompt, where only those of prompts may be reused, and with a
 * grain the hash of a prompt that was cut elsewhere.
 */
#ifndef GUMBEL_TESTS_FAKE_SLOTS_H
#define GUMBEL_TESTS_FAKE_SLOTS_H

#include "run/schedule/slots.h"

#include <pthread.h>

enum {
    FAKE_SLOTS = 8,
    FAKE_CONTEXT = 512,
    FAKE_VOCABULARY = 1000,
    FAKE_STOP = 999,   /* the stop token, which is drawn after FAKE_ENDING alone */
    FAKE_ENDING = 998, /* in a prompt: its answer is a stop token at once */
    FAKE_POISON = 997, /* a row with it in its prompt has no token */
    FAKE_FAULT = 996,  /* a step with it fails */
    FAKE_DECODED = 1 << 16,
    FAKE_LOG = 16384
};

typedef struct fake_slot {
    int32_t tokens[FAKE_CONTEXT + 1];  /* with FAKE_DECODED where they continued an answer */
    uint64_t hashes[FAKE_CONTEXT + 1]; /* before each of them */
    int32_t drawn; /* which of the slot's last step, if it is run next, does so; -1: none */
    uint32_t position;
    uint64_t hash; /* of the tokens before position, where the slots have it */
} fake_slot;

typedef struct fake_slots {
    gb_slots_of_engine base;
    gb_step_times step_times;
    fake_slot slots[FAKE_SLOTS];
    uint32_t memory;    /* tokens of all slots, beyond which a step fails; 0: any number */
    bool fault_empties; /* the slots of a step that fails by FAKE_FAULT */
    bool is_lost;       /* every step fails */
    bool save_fails;    /* for want of host memory */
    unsigned saves;     /* states that went to host memory */
    char log[FAKE_LOG]; /* "0:64 1:1+|": parts of each step, slot and tokens, + where it draws */
    uint32_t following; /* of the last step's parts: steps that they announce */
    bool has_gates;     /* each step waits until it is let through */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned arrived, open; /* steps */
} fake_slots;

/* The slots live as long as `fake`; destroying them leaves it. */
void fake_slots_init(fake_slots *fake, uint32_t slots, uint32_t step_tokens, uint32_t chunk, bool recurrent);

/* Waits until the n-th step has begun, from 1 on; lets so many more pass. */
void fake_wait_for_step(fake_slots *fake, unsigned n);
void fake_let_pass(fake_slots *fake, unsigned count);

/* What an answer's tokens must be. */
void fake_answer(const fake_slots *fake, const int32_t *prompt, uint32_t prompt_count, uint64_t seed,
                 int32_t *tokens, uint32_t count);

#endif
