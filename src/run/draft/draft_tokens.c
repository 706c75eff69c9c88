/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/draft_tokens.h"

#include <stdio.h>

enum { NOTICE = 256 };

/* Of the states behind all draft tokens, on a backend that keeps them whole: not less than that, and of a
 * large program a part of what its weights take. */
static const uint64_t always_bytes = (uint64_t)1 << 30;
enum { PART_OF_WEIGHTS = 8 };

static void lower(gumbel_engine_options *options, uint64_t most, const char *why) {
    char notice[NOTICE];
    if (options->draft_tokens <= most)
        return;
    if (most == 0)
        snprintf(notice, sizeof notice, "no drafts: %s", why);
    else
        snprintf(notice, sizeof notice, "drafts of at most %llu tokens, not %u: %s", (unsigned long long)most,
                 options->draft_tokens, why);
    options->draft_tokens = (uint32_t)most;
    if (options->log)
        options->log(options->log_user, GUMBEL_LOG_INFO, notice);
}

static uint64_t recurrent_bytes(const gb_program *program) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < program->state_count; i++)
        if (program->states[i].kind == GB_STATE_RECURRENT)
            sum += gb_state_bytes(&program->states[i]);
    return sum;
}

static uint64_t most_bytes(const gb_program *program) {
    const uint64_t part = gb_program_weight_bytes(program) / PART_OF_WEIGHTS;
    return part > always_bytes ? part : always_bytes;
}

void gb_settle_draft_tokens(const gb_program *program, const gb_backend_entry *entry,
                            gumbel_engine_options *options) {
    const uint64_t bytes = recurrent_bytes(program) * (uint64_t)options->slots;
    if (!program->metadata.use_sampling)
        lower(options, 0, "the program was exported with --logits and draws no tokens");
    if (entry->why_no_drafts)
        lower(options, 0, entry->why_no_drafts);
    lower(options, options->prefill_chunk - 1, "a step of one session has no more tokens (--prefill-chunk)");
    lower(options, gb_ring_slack(program), "the program's layers with a window keep no more");
    if (bytes > 0)
        lower(options, most_bytes(program) / bytes, "the states behind them would take too much memory");
}
