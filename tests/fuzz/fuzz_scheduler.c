/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the scheduler in any order, over slots without an engine: submissions whose fields may be
 * anything, cancels of requests that are or are not, statistics, a drain, some from within callbacks, and the
 * end while answers go on. Each answer that was taken ends in one event, and where all have ended no slot is
 * lost.
 */
#include "run/schedule/scheduler.h"
#include "support/fake_slots.h"
#include "support/paths.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_REQUESTS = 48, MOST_ANSWERS = 8, MOST_PROMPT = 64, MOST_LIST = 24, MOST_MESSAGES = 2 };

/* A request that was submitted, and what its events said. */
typedef struct asked {
    struct play *play;
    uint32_t answers; /* that were taken; 0: refused */
    uint64_t number;
    atomic_uint tokens, last_events[MOST_ANSWERS];
    uint8_t mischief; /* what its callback does */
} asked;

typedef struct play {
    const uint8_t *data; /* what the calls are made of */
    size_t size, at;
    gumbel_scheduler *scheduler;
    fake_slots fake;
    asked requests[MOST_REQUESTS];
    atomic_uint count;    /* of them */
    atomic_ullong clock;  /* milliseconds, one more for each look */
    atomic_bool is_ended; /* the scheduler is destroyed: no event may come */
    /* of the submission to come */
    int32_t prompt[MOST_PROMPT], stop_tokens[MOST_LIST];
    uint32_t branches[MOST_LIST];
    gumbel_message messages[MOST_MESSAGES];
    gumbel_chat_options chat;
} play;

static void must_be(bool holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static uint8_t next(play *p) {
    return p->at < p->size ? p->data[p->at++] : 0;
}

static uint32_t next_number(play *p) {
    static const uint32_t odd[] = {0, 1, UINT32_MAX, UINT32_MAX - 1, 1u << 31, 63, 64, 65};
    const uint8_t kind = next(p);
    return kind < 64 ? odd[kind % 8] : kind;
}

static double clock_of(void *user) {
    return 1e-3 * (double)atomic_fetch_add(&((play *)user)->clock, 1);
}

/* ---- Callbacks ----------------------------------------------------------------------------------------- */

static void submit_another(play *p);

static void handle_event(void *user, const gumbel_event *event) {
    asked *a = user;
    must_be(!a->play->is_ended, "an event after the end");
    must_be(event->answer < MOST_ANSWERS && a->last_events[event->answer] == 0,
            "an event after the last one");
    if (event->type != GUMBEL_EVENT_TOKEN) {
        must_be(event->usage != NULL, "a last event without usage");
        a->last_events[event->answer]++;
        return;
    }
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    if (a->mischief % 4 == 1)
        gumbel_scheduler_cancel(a->play->scheduler, event->request);
    if (a->mischief % 4 == 2 && a->tokens == 0)
        submit_another(a->play);
    if (a->mischief % 4 == 3)
        gumbel_scheduler_get_stats(a->play->scheduler, &stats, NULL);
    a->tokens++;
}

static asked *next_request(play *p) {
    const unsigned index = atomic_fetch_add(&p->count, 1);
    if (index >= MOST_REQUESTS)
        return NULL;
    p->requests[index].play = p;
    return &p->requests[index];
}

/* The number may be needed by a callback before it is known here. */
static gumbel_status submit_as(play *p, asked *a, gumbel_submission *submission) {
    const uint32_t answers = submission->answers > 0 ? submission->answers : 1;
    submission->callback = submission->callback ? handle_event : NULL;
    submission->user = a;
    gumbel_error error = {.status = GUMBEL_OK};
    const gumbel_status status = gumbel_scheduler_submit(p->scheduler, submission, &a->number, &error);
    must_be(status == GUMBEL_OK || (error.status == status && error.message[0]), "no reason for a refusal");
    must_be(status != GUMBEL_OK || answers <= MOST_ANSWERS, "more answers than the queue holds");
    a->answers = status == GUMBEL_OK ? answers : 0;
    return status;
}

static void submit_another(play *p) {
    static const int32_t prompt[] = {5, 6, 7};
    asked *a = next_request(p);
    gumbel_submission submission = {.size = sizeof submission,
                                    .tokens = prompt,
                                    .token_count = 3,
                                    .callback = handle_event,
                                    .max_new_tokens = 2};
    if (a)
        submit_as(p, a, &submission);
}

/* ---- Submissions --------------------------------------------------------------------------------------- */

static const gumbel_tokenizer *tokenizer_once(void) {
    static gumbel_tokenizer *tokenizer;
    gumbel_error error;
    if (!tokenizer &&
        gumbel_export_tokenizer(bundled_model("qwen3_5-moe-tiny"), &tokenizer, &error) != GUMBEL_OK)
        must_be(false, error.message);
    return tokenizer;
}

static void read_prompt(play *p, gumbel_submission *submission) {
    static const size_t odd[] = {0, FAKE_CONTEXT + 1, SIZE_MAX, SIZE_MAX / 4};
    const uint8_t kind = next(p), first = next(p);
    for (uint32_t i = 0; i < MOST_PROMPT; i++) /* prompts of few kinds begin alike */
        p->prompt[i] = (int32_t)(i < kind % 32u ? i : first + i);
    if (kind > 250)
        p->prompt[first % MOST_PROMPT] = (int32_t)(next_number(p) - 100);
    if (kind > 240)
        p->prompt[first % MOST_PROMPT] = FAKE_STOP - kind % 4;
    submission->tokens = kind % 64 == 63 ? NULL : p->prompt;
    submission->token_count = kind % 32 == 31 ? odd[first % 4] : 1u + first % MOST_PROMPT;
}

static void read_lists(play *p, gumbel_submission *submission) {
    static const char *const strings[] = {"e",        "the", "",
                                          "\xFF\xFE", "\n",  "a very long one that never comes"};
    for (size_t i = 0; i < MOST_LIST; i++) {
        p->branches[i] = next_number(p);
        p->stop_tokens[i] = next(p) < 250 ? (int32_t)i : (int32_t)next_number(p);
    }
    const uint8_t kind = next(p);
    submission->branch_positions = kind % 16 == 15 ? NULL : p->branches;
    submission->branch_position_count = next(p) % MOST_LIST;
    submission->stop_tokens = kind % 16 == 14 ? NULL : p->stop_tokens;
    submission->stop_token_count = kind % 4 ? 0 : next(p) % MOST_LIST;
    submission->tokenizer = kind & 32 ? tokenizer_once() : NULL;
    submission->stop_strings = kind % 16 == 13 ? NULL : strings;
    submission->stop_string_count = kind & 64 ? next(p) % 7 : 0;
}

/* A conversation in place of tokens, or beside them. */
static void read_messages(play *p, gumbel_submission *submission) {
    static const char *const roles[] = {"user", "system", "wizard", NULL};
    static const char *const texts[] = {"Hi", "", "\xFF", NULL};
    static const char *const lists[] = {"[]", "[{\"role\":\"user\",\"content\":\"Hi\"}]", "{", "[1]"};
    const uint8_t kind = next(p);
    for (size_t i = 0; i < MOST_MESSAGES; i++)
        p->messages[i] = (gumbel_message){.size = kind % 16 == 0 ? 0 : sizeof *p->messages,
                                          .role = roles[kind / 2 % 4],
                                          .content = texts[kind / 8 % 4]};
    p->chat =
        (gumbel_chat_options){.size = sizeof p->chat, .messages_json = kind & 64 ? lists[kind % 4] : NULL};
    submission->messages = kind & 128 ? NULL : p->messages;
    submission->message_count = kind % (MOST_MESSAGES + 1);
    submission->chat = kind & 32 ? &p->chat : NULL;
    if (kind & 16)
        submission->tokens = NULL, submission->token_count = 0;
}

static void read_numbers(play *p, gumbel_submission *submission) {
    static const double deadlines[] = {NAN, -1, INFINITY, 1e-9, 0.01, 1, 0, 0};
    const uint8_t kind = next(p);
    submission->seed = next_number(p);
    submission->has_seed = kind & 1;
    submission->wants_logprob = kind & 2;
    submission->ignore_stop = kind & 4;
    submission->no_prefix_cache = kind % 8 == 7;
    submission->include_stop_string = kind & 16;
    submission->answers = kind % 16 == 5 ? next_number(p) : kind % 4u;
    submission->max_new_tokens = kind & 64 ? 1 + next(p) % 16u : next_number(p);
    submission->min_new_tokens = kind & 128 ? next_number(p) : 0;
    submission->top_logprobs = kind % 5 ? 0 : next_number(p);
    submission->priority = (int32_t)next_number(p);
    submission->drafting = kind % 3;
    submission->max_draft = kind & 32 ? next_number(p) : 0;
    submission->predicted_tokens = kind % 32 == 9 ? NULL : p->prompt;
    submission->predicted_count = kind & 8 ? next(p) % MOST_PROMPT : 0;
    submission->deadline_seconds = deadlines[next(p) % 32 < 8 ? kind % 8 : 7];
}

/* As a caller of another version would give it. */
static void cut_short(gumbel_submission *submission, uint8_t kind) {
    static const size_t sizes[] = {0, sizeof(size_t), offsetof(gumbel_submission, sampling),
                                   offsetof(gumbel_submission, answers)};
    submission->size = sizes[kind % 4];
    submission->answers = 1;
}

static void submit(play *p) {
    asked *a = next_request(p);
    gumbel_submission submission = {.size = sizeof submission, .callback = handle_event};
    const uint8_t kind = next(p);
    if (!a)
        return;
    read_prompt(p, &submission);
    read_numbers(p, &submission);
    if (kind & 1)
        read_lists(p, &submission);
    if (kind % 8 == 7)
        read_messages(p, &submission);
    if (kind % 32 == 31)
        submission.callback = NULL;
    if (kind % 32 == 30)
        cut_short(&submission, next(p));
    a->mischief = kind / 32;
    submit_as(p, a, &submission);
}

/* ---- The rest ------------------------------------------------------------------------------------------ */

static void look(play *p) {
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    if (next(p) % 4 == 0)
        stats.size = next(p) % sizeof stats;
    gumbel_error error;
    if (gumbel_scheduler_get_stats(p->scheduler, &stats, &error) == GUMBEL_OK && stats.size == sizeof stats)
        must_be(stats.free_slots + stats.kept_slots + stats.running == stats.slots, "slots are lost");
}

static unsigned count_taken(const play *p) {
    unsigned taken = 0;
    for (size_t i = 0; i < MOST_REQUESTS; i++)
        taken += p->requests[i].answers;
    return taken;
}

static void drain(play *p) {
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    gumbel_scheduler_drain(p->scheduler);
    gumbel_scheduler_get_stats(p->scheduler, &stats, NULL);
    must_be(stats.free_slots + stats.kept_slots == stats.slots && !stats.running && !stats.queued &&
                !stats.spilled && !stats.running_bytes && !stats.spilled_bytes,
            "something is left of requests that have ended");
    must_be(stats.finished + stats.failed == count_taken(p),
            "answers that did not end, or more than requested");
}

static bool begin(play *p) {
    const uint8_t kind = next(p);
    gumbel_error error;
    const gumbel_scheduler_options options = {.size = sizeof options,
                                              .max_queued = 1 + next(p) % MOST_ANSWERS,
                                              .answer_reserve = next(p) % 64,
                                              .state_bytes = kind & 1 ? FAKE_CONTEXT + next(p) : 0,
                                              .host_bytes = kind & 2 ? 1 + next(p) * 4u : 0,
                                              .no_prefix_cache = kind % 8 == 7};
    fake_slots_init(&p->fake, 1 + kind / 16 % 4, 64 + (kind & 64), 64, kind & 8);
    p->fake.base.reuse = next(p) % 3;
    p->fake.base.grain = kind & 8 && p->fake.base.reuse == GB_REUSE_PROMPT ? 16 : 0;
    p->fake.base.draft_tokens = next(p) % 16;
    p->fake.base.most_rows = p->fake.base.count * (1 + p->fake.base.draft_tokens);
    p->fake.memory = next(p) > 200 ? 600 : 0;
    p->fake.save_fails = next(p) > 220;
    p->fake.fault_empties = kind & 4;
    return gb_scheduler_create(&p->fake.base, &options, clock_of, p, &p->scheduler, &error) == GUMBEL_OK;
}

static void call(play *p) {
    const uint8_t kind = next(p);
    if (kind < 160)
        submit(p);
    else if (kind < 220)
        gumbel_scheduler_cancel(p->scheduler, next(p) % (MOST_REQUESTS + 2u));
    else if (kind < 255)
        look(p);
    else
        drain(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    play *p = calloc(1, sizeof *p);
    must_be(p != NULL, "no memory");
    p->data = data;
    p->size = size;
    if (begin(p)) {
        while (p->at < p->size)
            call(p);
        if (size % 2)
            drain(p);
        gumbel_scheduler_destroy(p->scheduler);
        p->is_ended = true;
    }
    for (size_t i = 0; i < MOST_REQUESTS; i++)
        for (uint32_t j = 0; j < p->requests[i].answers; j++)
            must_be(p->requests[i].last_events[j] == 1, "an answer without its last event");
    free(p);
    return 0;
}
