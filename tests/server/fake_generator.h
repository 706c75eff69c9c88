/* SPDX-License-Identifier: Apache-2.0
 *
 * A generator that answers every request with the tokens of one text, and a model of the bundled tokenizer
 * around it: what the server makes of an answer, without a model's choice in it.
 */
#ifndef GUMBEL_TESTS_SERVER_FAKE_GENERATOR_H
#define GUMBEL_TESTS_SERVER_FAKE_GENERATOR_H

#include "server/generate/grammars.h"
#include "server/models.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FAKE_TOKENS = 4096, FAKE_REQUESTS = 64 };

typedef struct fake_generator {
    const gumbel_tokenizer *tokenizer;
    int32_t tokens[FAKE_TOKENS];
    size_t count, repeats; /* the tokens are said so many times; 0: once */
    gumbel_finish finish;
    gumbel_status refuses;  /* not OK: submissions are refused so */
    gumbel_status fails;    /* not OK: answers end so behind their tokens */
    gumbel_submission last; /* the submission that came last; its pointers are not valid */
    atomic_bool is_cancelled;
    pthread_t threads[FAKE_REQUESTS];
    size_t thread_count;
} fake_generator;

typedef struct fake_answer {
    fake_generator *fake;
    gumbel_submission submission;
    gumbel_detokenizer *detokenizer; /* with the submission's stop strings */
    uint64_t request;
} fake_answer;

static void fake_event(const fake_answer *answer, gumbel_event event, uint32_t number) {
    event.size = sizeof event;
    event.answer = number;
    event.request = answer->request;
    event.stop_string = -1;
    answer->submission.callback(answer->submission.user, &event);
}

static gumbel_usage fake_usage(const fake_answer *answer, size_t count) {
    return (gumbel_usage){.size = sizeof(gumbel_usage),
                          .prompt_tokens = (uint32_t)answer->submission.token_count,
                          .cached_tokens = 1,
                          .generated_tokens = (uint32_t)count,
                          .prompt_seconds = 0.5,
                          .answer_seconds = 0.25};
}

static void *fake_thread(void *user) {
    fake_answer *answer = user;
    fake_generator *fake = answer->fake;
    const size_t count = fake->count * (fake->repeats > 0 ? fake->repeats : 1);
    size_t i = 0;
    int32_t stop = -1;
    for (; i < count && stop < 0 && !atomic_load(&fake->is_cancelled); i++) {
        gumbel_event event = {.type = GUMBEL_EVENT_TOKEN,
                              .token = fake->tokens[i % fake->count],
                              .seed = answer->submission.seed + i,
                              .logprob = -0.5f};
        gumbel_detokenize(answer->detokenizer, event.token, &event.text, &event.text_length, NULL);
        stop = gumbel_detokenizer_stopped(answer->detokenizer);
        fake_event(answer, event, 0);
    }
    gumbel_detokenizer_destroy(answer->detokenizer);
    const gumbel_usage usage = fake_usage(answer, i);
    const gumbel_status status = atomic_load(&fake->is_cancelled) ? GUMBEL_ERROR_CANCELLED : fake->fails;
    fake_event(answer,
               (gumbel_event){.type = status == GUMBEL_OK ? GUMBEL_EVENT_FINISH : GUMBEL_EVENT_ERROR,
                              .finish = stop < 0 ? fake->finish : GUMBEL_FINISH_STOP_STRING,
                              .status = status,
                              .message = "a row has a NaN",
                              .usage = &usage},
               0);
    free(answer);
    return NULL;
}

static gumbel_detokenizer *fake_text(const gumbel_tokenizer *tokenizer, const gumbel_submission *submission) {
    gumbel_detokenizer *text;
    gumbel_detokenizer_create(tokenizer, false, &text, NULL);
    gumbel_detokenizer_stop_at(text, submission->stop_strings, submission->stop_string_count, false, NULL);
    if (submission->stop_in_answer && submission->stop_string_count > 0)
        gumbel_detokenizer_stop_in_answer(text, submission->tokens, submission->token_count, NULL);
    return text;
}

static gumbel_status fake_submit(void *user, const gumbel_submission *submission, uint64_t *request,
                                 gumbel_error *error) {
    fake_generator *fake = user;
    if (fake->refuses != GUMBEL_OK) {
        *error = (gumbel_error){fake->refuses, "the queue is full"};
        return error->status;
    }
    fake_answer *answer = malloc(sizeof *answer);
    *answer = (fake_answer){.fake = fake,
                            .submission = *submission,
                            .detokenizer = fake_text(fake->tokenizer, submission),
                            .request = fake->thread_count + 1};
    fake->last = *submission;
    *request = answer->request;
    pthread_create(&fake->threads[fake->thread_count++ % FAKE_REQUESTS], NULL, fake_thread, answer);
    return GUMBEL_OK;
}

static void fake_cancel(void *user, uint64_t request) {
    (void)request;
    atomic_store(&((fake_generator *)user)->is_cancelled, true);
}

static gumbel_status fake_stats(void *user, gumbel_scheduler_stats *stats, gumbel_error *error) {
    (void)user, (void)error;
    *stats = (gumbel_scheduler_stats){.size = sizeof *stats, .queued = 3, .running = 2, .slots = 4};
    return GUMBEL_OK;
}

/* Waits for all answers and forgets them. */
static inline void fake_join(fake_generator *fake) {
    for (size_t i = 0; i < fake->thread_count && i < FAKE_REQUESTS; i++)
        pthread_join(fake->threads[i], NULL);
    fake->thread_count = 0;
    atomic_store(&fake->is_cancelled, false);
}

/* Lets the answers be this text, special tokens included. */
static inline void fake_say(fake_generator *fake, const char *text) {
    const gumbel_encode_options options = {.size = sizeof options, .parse_special = true};
    gumbel_error error;
    if (gumbel_encode(fake->tokenizer, text, strlen(text), &options, fake->tokens, FAKE_TOKENS, &fake->count,
                      &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
}

/* A model with the tokenizer of the bundled one of that name. It lives until the process ends. */
static inline server_model fake_model(const char *name, fake_generator *fake) {
    static gumbel_program *program;
    static gumbel_tokenizer *tokenizer;
    static server_grammars *grammars;
    gumbel_error error = {.status = GUMBEL_OK};
    char checkpoint[4096];
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, name);
    const char *path = temporary_path("fake.gumbel");
    server_model model = {.names = "tiny,other", .backend = "cpu", .max_context = 512};
    model.info.size = sizeof model.info;
    model.sampling.size = sizeof model.sampling;
    if (gumbel_export(checkpoint, path, NULL, &error) != GUMBEL_OK ||
        gumbel_program_open(path, &program, &error) != GUMBEL_OK ||
        gumbel_tokenizer_create(program, &tokenizer, &error) != GUMBEL_OK ||
        server_grammars_create(tokenizer, NULL, NULL, &grammars, &error) != GUMBEL_OK ||
        gumbel_program_get_info(program, &model.info, &error) != GUMBEL_OK ||
        gumbel_sampling_defaults(program, &model.sampling, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    model.program = program;
    model.tokenizer = fake->tokenizer = tokenizer;
    model.grammars = grammars;
    fake->finish = GUMBEL_FINISH_STOP;
    model.generator = (server_generator){fake, fake_submit, fake_cancel, fake_stats};
    return model;
}

#endif
