/* SPDX-License-Identifier: Apache-2.0
 *
 * What all protocols report beside the text.
 */
#include "server/generate/generation.h"

#include <string.h>

server_totals server_count_tokens(const server_generation *generation) {
    server_totals totals = {0};
    for (size_t i = 0; i < generation->prompts.count; i++)
        totals.prompt += generation->prompts.list[i].count;
    for (size_t i = 0; i < generation->answer_count; i++) {
        const server_answer *answer = &generation->answers[i];
        totals.generated += answer->tokens;
        totals.reasoning += answer->reasoning_tokens;
        totals.drafted += answer->usage.draft_tokens;
        totals.accepted += answer->usage.accepted_tokens;
        if (i % generation->request.answers == 0)
            totals.cached += answer->usage.cached_tokens; /* the others begin with what the first one ran */
    }
    return totals;
}

static void add_rate(json_t *timings, const char *name, double count, double seconds) {
    if (seconds > 0)
        json_object_set_new(timings, name, json_real(count / seconds));
}

json_t *server_timings_json(const server_generation *generation) {
    const gumbel_usage *usage = &generation->answers[0].usage;
    const server_totals totals = server_count_tokens(generation);
    const double run = (double)(totals.prompt - totals.cached);
    json_t *timings =
        json_pack("{s:I, s:I, s:f, s:f, s:I, s:f}", "cache_n", (json_int_t)totals.cached, "prompt_n",
                  (json_int_t)(totals.prompt - totals.cached), "queue_ms", 1e3 * usage->queue_seconds,
                  "prompt_ms", 1e3 * usage->prompt_seconds, "predicted_n", (json_int_t)totals.generated,
                  "predicted_ms", 1e3 * usage->answer_seconds);
    if (totals.drafted > 0) {
        json_object_set_new(timings, "draft_n", json_integer((json_int_t)totals.drafted));
        json_object_set_new(timings, "draft_n_accepted", json_integer((json_int_t)totals.accepted));
    }
    add_rate(timings, "prompt_per_second", run, usage->prompt_seconds);
    if (totals.generated > 1)
        add_rate(timings, "predicted_per_second", (double)(totals.generated - 1), usage->answer_seconds);
    return timings;
}

void server_add_report(const server_generation *generation, json_t *object) {
    json_t *settings = server_settings_json(&generation->request);
    json_object_set_new(settings, "seed",
                        json_pack("{s:o, s:s}", "value", server_json_seed(generation->seed), "origin",
                                  generation->seed_origin));
    json_object_set_new(object, "generation_settings", settings);
    json_object_set_new(object, "timings", server_timings_json(generation));
}

json_t *server_token_text(server_generation *generation, int32_t token, bool *is_whole) {
    static const char replacement[] = "\xEF\xBF\xBD";
    const char *piece = "";
    size_t length = 0;
    gb_byte_buffer text = {0};
    if (gumbel_detokenize(generation->detokenizer, token, &piece, &length, NULL) == GUMBEL_OK)
        gb_buffer_append(&text, piece, length);
    gumbel_detokenize_end(generation->detokenizer, &piece, &length);
    gb_buffer_append(&text, piece, length);
    *is_whole = !strstr(gb_buffer_string(&text), replacement);
    json_t *made = server_json_text(text.text, text.size);
    gb_buffer_free(&text);
    return made;
}
