/* SPDX-License-Identifier: Apache-2.0 */
#include "run/blocks.h"

#include "run/requests.h"
#include "run/step.h"

#include <string.h>

/* ---- Cutting ------------------------------------------------------------------------------------------- */

uint32_t gb_block_begin(const gumbel_engine *engine, uint32_t position) {
    if (engine->backend->grain <= 1)
        return position;
    const uint32_t in_block = position % engine->backend->grain, in_chunk = position % engine->prefill_chunk;
    return position - (in_block < in_chunk ? in_block : in_chunk);
}

/* How many of the request's tokens, which follow on those that are held, continue an answer. */
static uint32_t generated_count(const gumbel_request *request) {
    const gumbel_session *session = request->session;
    if (session->held > 0 || request->token_count == 0 || !gb_request_generated(request, 0))
        return 0;
    return session->is_repeating ? (uint32_t)request->token_count : 1;
}

static uint32_t tokens_to_hold(const gumbel_request *request) {
    const gumbel_session *session = request->session;
    if (request->result)
        return 0;
    const uint32_t end = session->position + (uint32_t)request->token_count;
    const uint32_t begin = gb_session_run_position(session) + generated_count(request);
    const uint32_t block = gb_block_begin(session->engine, end);
    return end - (block > begin ? block : begin);
}

/* Leaves `rest` of the request's tokens and those held before it. */
static void cut_request(gb_step_requests *requests, size_t index, uint32_t rest) {
    gumbel_request *request = &requests->list[index];
    const gumbel_session *session = request->session;
    requests->rest[index] = rest;
    if (session->held + rest == 0)
        return;
    if (request->token_count > 0)
        memmove(session->tokens + session->position, request->tokens,
                request->token_count * sizeof *request->tokens);
    request->tokens = session->tokens + gb_session_run_position(session);
    request->token_count += session->held;
    request->token_count -= rest;
}

void gb_cut_request(gumbel_engine *engine, size_t index) {
    cut_request(&engine->requests, index, tokens_to_hold(&engine->requests.list[index]));
}

/* ---- Running again ------------------------------------------------------------------------------------- */

/* What a session knows of its answer, which tokens that are run again do not change. */
typedef struct answer_marks {
    int32_t pending_token, drawn_token;
    uint32_t generated_from;
    bool is_rewound;
} answer_marks;

static answer_marks marks_of(const gumbel_session *session) {
    return (answer_marks){session->pending_token, session->drawn_token, session->generated_from,
                          session->is_rewound};
}

static void set_marks(gumbel_session *session, const answer_marks *marks) {
    session->pending_token = marks->pending_token;
    session->drawn_token = marks->drawn_token;
    session->generated_from = marks->generated_from;
    session->is_rewound = marks->is_rewound;
}

/* Runs what the session holds and the next `count` of its own tokens, beside the engine's requests; of a
 * prompt's end what does not fill a block is held again. */
static gumbel_status run_own(gumbel_session *session, size_t count, gumbel_error *error) {
    gumbel_engine *engine = session->engine;
    const gb_step_requests requests = engine->requests;
    const gumbel_request request = {
        .session = session, .tokens = session->tokens + session->position, .token_count = count};
    engine->requests = engine->own_request;
    engine->requests.count = 1;
    engine->requests.list[0] = request;
    cut_request(&engine->requests, 0, count > 0 ? tokens_to_hold(&request) : 0);
    const gumbel_status status = gb_run_step(engine, error);
    engine->requests = requests;
    return status;
}

/* On an error the session is where it was, but its states are not. */
static gumbel_status run_again(gumbel_session *session, gumbel_error *error) {
    const uint32_t position = session->position;
    const answer_marks marks = marks_of(session);
    gumbel_status status = GUMBEL_OK;
    gb_session_start_over(session);
    session->is_repeating = true;
    while (status == GUMBEL_OK && session->position < position) {
        const bool ends_prompt = session->held > 0 && session->generated[session->position];
        const size_t left = position - session->position;
        status = run_own(session, ends_prompt ? 0 : gb_session_chunk(session, left), error);
    }
    session->is_repeating = false;
    set_marks(session, &marks);
    if (status == GUMBEL_OK)
        return GUMBEL_OK;
    session->position = position;
    session->held = 0;
    session->is_ahead = true;
    return status;
}

void gb_bring_back(gumbel_session *session) {
    if (run_again(session, NULL) != GUMBEL_OK) /* the first error is the one to tell */
        gb_session_clear(session);
}

/* ---- Beginning ----------------------------------------------------------------------------------------- */

bool gb_session_is_amid_block(const gumbel_session *session, uint32_t position) {
    return position > 0 && !session->generated[position - 1] &&
           gb_block_begin(session->engine, position) < position;
}

/* An answer follows: nothing more comes to the prompt's last block. */
static gumbel_status run_held(gumbel_session *session, gumbel_error *error) {
    const answer_marks marks = marks_of(session);
    GB_TRY(run_own(session, 0, error));
    set_marks(session, &marks);
    return GUMBEL_OK;
}

static gumbel_status begin_block(const gumbel_request *request, gumbel_error *error) {
    gumbel_session *session = request->session;
    const bool continues = gb_session_continues(session, request->tokens[0]);
    if (session->held > 0)
        return continues ? run_held(session, error) : GUMBEL_OK;
    if (continues || !gb_session_is_amid_block(session, session->position))
        return GUMBEL_OK;
    session->generated[session->position] = false;
    return run_again(session, error);
}

gumbel_status gb_begin_blocks(gumbel_engine *engine, gumbel_error *error) {
    for (size_t i = 0; i < engine->requests.count; i++)
        GB_TRY(begin_block(&engine->requests.list[i], error));
    return GUMBEL_OK;
}
