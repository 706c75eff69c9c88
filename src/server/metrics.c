/* SPDX-License-Identifier: Apache-2.0 */
#include "server/metrics.h"

#include <math.h>
#include <string.h>

/* ---- Counting ------------------------------------------------------------------------------------------ */

static const double second_limits[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                       1,     2.5,    5,     10,   25,    50,   100, 250};
enum { SECOND_LIMITS = sizeof second_limits / sizeof *second_limits, TOKEN_LIMITS = 18 };

static void observe(server_histogram *histogram, size_t bucket, double value) {
    atomic_fetch_add(&histogram->buckets[bucket], 1);
    atomic_fetch_add(&histogram->count, 1);
    atomic_fetch_add(&histogram->sum, value > 0 ? (unsigned long long)(value * 1e6) : 0);
}

void server_observe(server_histogram *histogram, double seconds) {
    size_t bucket = 0;
    while (bucket < SECOND_LIMITS && seconds > second_limits[bucket])
        bucket++;
    observe(histogram, bucket, seconds);
}

void server_observe_tokens(server_histogram *histogram, uint32_t tokens) {
    size_t bucket = 0;
    while (bucket < TOKEN_LIMITS && tokens > 1u << bucket)
        bucket++;
    observe(histogram, bucket, tokens);
}

void server_count_answer(server_metrics *metrics, const gumbel_usage *usage, bool is_whole,
                         gumbel_finish finish) {
    const bool has_stopped = finish == GUMBEL_FINISH_STOP || finish == GUMBEL_FINISH_STOP_STRING;
    atomic_fetch_add(!is_whole ? &metrics->failed : has_stopped ? &metrics->stopped : &metrics->cut, 1);
    if (!is_whole)
        return;
    server_observe(&metrics->queue, usage->queue_seconds);
    server_observe(&metrics->prompt, usage->prompt_seconds);
    server_observe(&metrics->first_token, usage->queue_seconds + usage->prompt_seconds);
    server_observe(&metrics->answer, usage->answer_seconds);
    server_observe(&metrics->whole, usage->queue_seconds + usage->prompt_seconds + usage->answer_seconds);
    server_observe_tokens(&metrics->prompt_size, usage->prompt_tokens);
    server_observe_tokens(&metrics->answer_size, usage->generated_tokens);
}

/* ---- Prometheus' text ---------------------------------------------------------------------------------- */

/* A metric by our name and, where it has one, vLLM's. */
typedef struct metric {
    const char *name, *vllm, *type, *help;
} metric;

static void print_head(gb_byte_buffer *text, const metric *m, const char *name) {
    gb_buffer_print(text, "# HELP %s %s\n# TYPE %s %s\n", name, m->help, name, m->type);
}

/* A label's value: backslashes, quotes and newlines are escaped. */
static void print_label(gb_byte_buffer *text, const char *value) {
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            gb_buffer_append(text, "\\", 1);
        if (*value == '\n')
            gb_buffer_append(text, "\\n", 2);
        else
            gb_buffer_append(text, value, 1);
    }
}

/* ---- Of each model ------------------------------------------------------------------------------------- */

typedef double read_stat(const gumbel_scheduler_stats *stats);

#define STAT(field)                                                                                          \
    static double read_##field(const gumbel_scheduler_stats *stats) {                                        \
        return (double)stats->field;                                                                         \
    }
STAT(queued)
STAT(running)
STAT(spilled)
STAT(slots)
STAT(prompt_tokens)
STAT(cached_tokens)
STAT(generated_tokens)
STAT(steps)
STAT(submitted)
STAT(finished)
STAT(cancelled)
STAT(spills)
STAT(evictions)
STAT(host_bytes)

static double share_of(uint64_t part, uint64_t whole) {
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* Short conversations fill the slots long before the memory, which has room for whole contexts. Balancers
 * need to know when the next answer would wait for either. */
static double read_cache_use(const gumbel_scheduler_stats *stats) {
    const double memory = share_of(stats->running_bytes, stats->state_bytes);
    return fmin(fmax(memory, share_of(stats->running, stats->slots)), 1);
}

static double read_kept(const gumbel_scheduler_stats *stats) {
    return share_of(stats->kept_bytes, stats->state_bytes);
}

/* The scheduler counts cancelled answers among those that failed. */
static double read_failed(const gumbel_scheduler_stats *stats) {
    return (double)(stats->failed - stats->cancelled);
}

static double read_drafts(const gumbel_scheduler_stats *stats) {
    return (double)stats->drafts.steps;
}

static double read_draft_tokens(const gumbel_scheduler_stats *stats) {
    return (double)stats->drafts.proposed;
}

static double read_accepted_tokens(const gumbel_scheduler_stats *stats) {
    return (double)stats->drafts.accepted;
}

static double read_prompt_and_cached(const gumbel_scheduler_stats *stats) {
    return (double)(stats->prompt_tokens + stats->cached_tokens);
}

static const struct {
    metric m;
    read_stat *read;
} model_metrics[] = {
    {{"gumbel_requests_waiting", "vllm:num_requests_waiting", "gauge", "Answers that wait for a slot."},
     read_queued},
    {{"gumbel_requests_running", "vllm:num_requests_running", "gauge", "Answers that have a slot."},
     read_running},
    {{"gumbel_requests_spilled", "vllm:num_requests_swapped", "gauge", "Answers that wait in host memory."},
     read_spilled},
    {{"gumbel_slots", NULL, "gauge", "Slots there are."}, read_slots},
    {{"gumbel_cache_use", "vllm:kv_cache_usage_perc", "gauge",
      "Part of the slots or of the states' memory that answers take, whichever is more, from 0 to 1."},
     read_cache_use},
    {{"gumbel_cache_kept", NULL, "gauge",
      "Part of the states' memory that is kept for later prompts, from 0 to 1."},
     read_kept},
    {{"gumbel_host_bytes", NULL, "gauge", "Bytes of states that are kept in host memory."}, read_host_bytes},
    {{"gumbel_prompt_tokens_total", NULL, "counter", "Tokens of prompts that were run."}, read_prompt_tokens},
    {{"gumbel_prefix_cache_hits_total", "vllm:prefix_cache_hits_total", "counter",
      "Tokens of prompts that were not run, since their states were kept."},
     read_cached_tokens},
    {{"gumbel_prefix_cache_queries_total", "vllm:prefix_cache_queries_total", "counter",
      "Tokens of all prompts."},
     read_prompt_and_cached},
    {{"gumbel_generated_tokens_total", "vllm:generation_tokens_total", "counter", "Tokens of answers."},
     read_generated_tokens},
    {{"gumbel_drafts_total", "vllm:spec_decode_num_drafts_total", "counter",
      "Drafts that steps verified, each of one answer."},
     read_drafts},
    {{"gumbel_draft_tokens_total", "vllm:spec_decode_num_draft_tokens_total", "counter", "Tokens of drafts."},
     read_draft_tokens},
    {{"gumbel_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens_total", "counter",
      "Tokens of drafts that were accepted, each of which saved its answer a step."},
     read_accepted_tokens},
    {{"gumbel_steps_total", NULL, "counter", "Steps of the engine."}, read_steps},
    {{"gumbel_answers_submitted_total", NULL, "counter", "Answers that were queued."}, read_submitted},
    {{"gumbel_answers_finished_total", "vllm:request_success_total", "counter", "Answers that are whole."},
     read_finished},
    {{"gumbel_answers_cancelled_total", NULL, "counter",
      "Answers whose client left, or read too slowly, before their end."},
     read_cancelled},
    {{"gumbel_answers_failed_total", NULL, "counter", "Answers that an error ended."}, read_failed},
    {{"gumbel_spills_total", "vllm:num_preemptions_total", "counter",
      "Answers that were put into host memory."},
     read_spills},
    {{"gumbel_evictions_total", NULL, "counter", "Kept sequences that lost their slot."}, read_evictions},
    {{"gumbel_prompt_tokens_all_total", "vllm:prompt_tokens_total", "counter",
      "Tokens of all prompts, run or not."},
     read_prompt_and_cached},
};

static void print_model_metric(const metric *m, const char *name, read_stat *read,
                               const server_gauges *gauges, size_t count, gb_byte_buffer *text) {
    print_head(text, m, name);
    for (size_t i = 0; i < count; i++) {
        gb_buffer_print(text, "%s{model_name=\"", name);
        print_label(text, gauges[i].model);
        gb_buffer_print(text, "\"} %.17g\n", read(&gauges[i].stats));
    }
}

/* ---- Drafts by place ----------------------------------------------------------------------------------- */

/* Of each model and place in a draft, from 0 on as vLLM counts them. */
static void print_accepted_at(const char *name, const server_gauges *gauges, size_t count,
                              gb_byte_buffer *text) {
    static const metric m = {NULL, NULL, "counter", "Tokens of drafts that were accepted, by place."};
    print_head(text, &m, name);
    for (size_t i = 0; i < count; i++)
        for (int place = 0; place < GUMBEL_DRAFT_PLACES; place++) {
            gb_buffer_print(text, "%s{model_name=\"", name);
            print_label(text, gauges[i].model);
            gb_buffer_print(text, "\",position=\"%d\"} %llu\n", place,
                            (unsigned long long)gauges[i].stats.drafts.accepted_at[place]);
        }
}

/* ---- Histograms ---------------------------------------------------------------------------------------- */

/* The buckets of a histogram are read one by one while others add: each counts at least what was there. */
static void print_histogram(const metric *m, const char *name, const server_histogram *histogram,
                            bool is_seconds, gb_byte_buffer *text) {
    unsigned long long sum = 0;
    const size_t limits = is_seconds ? (size_t)SECOND_LIMITS : (size_t)TOKEN_LIMITS;
    print_head(text, m, name);
    for (size_t i = 0; i < limits; i++) {
        sum += atomic_load(&histogram->buckets[i]);
        gb_buffer_print(text, "%s_bucket{le=\"%.10g\"} %llu\n", name,
                        is_seconds ? second_limits[i] : (double)(1u << i), sum);
    }
    sum += atomic_load(&histogram->buckets[limits]);
    gb_buffer_print(text, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name, sum, name,
                    1e-6 * (double)atomic_load(&histogram->sum), name, sum);
}

static void print_histograms(const server_metrics *metrics, bool with_vllm, gb_byte_buffer *text) {
    const struct {
        metric m;
        const server_histogram *histogram;
        bool is_seconds;
    } all[] = {
        {{"gumbel_queue_seconds", "vllm:request_queue_time_seconds", "histogram",
          "Until an answer had a slot."},
         &metrics->queue,
         true},
        {{"gumbel_prompt_seconds", "vllm:request_prefill_time_seconds", "histogram",
          "From there to its first token."},
         &metrics->prompt,
         true},
        {{"gumbel_answer_seconds", "vllm:request_decode_time_seconds", "histogram",
          "From there to its last token."},
         &metrics->answer,
         true},
        {{"gumbel_first_token_seconds", "vllm:time_to_first_token_seconds", "histogram",
          "From a request to its first token."},
         &metrics->first_token,
         true},
        {{"gumbel_token_gap_seconds", "vllm:inter_token_latency_seconds", "histogram",
          "Between an answer's tokens."},
         &metrics->token_gap,
         true},
        {{"gumbel_request_seconds", "vllm:e2e_request_latency_seconds", "histogram",
          "From a request to its answer's last token."},
         &metrics->whole,
         true},
        {{"gumbel_grammar_compile_seconds", NULL, "histogram", "Compiling a schema or grammar of a request."},
         &metrics->grammar_compile,
         true},
        {{"gumbel_prompt_size_tokens", "vllm:request_prompt_tokens", "histogram", "Tokens of a prompt."},
         &metrics->prompt_size,
         false},
        {{"gumbel_answer_size_tokens", "vllm:request_generation_tokens", "histogram", "Tokens of an answer."},
         &metrics->answer_size,
         false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        print_histogram(&all[i].m, all[i].m.name, all[i].histogram, all[i].is_seconds, text);
        if (with_vllm && all[i].m.vllm)
            print_histogram(&all[i].m, all[i].m.vllm, all[i].histogram, all[i].is_seconds, text);
    }
}

/* ---- Of the server ------------------------------------------------------------------------------------- */

static void print_counters(const server_metrics *metrics, gb_byte_buffer *text) {
    const struct {
        metric m;
        const atomic_ullong *counter;
    } all[] = {
        {{"gumbel_disconnects_total", NULL, "counter", "Clients that left before their answer's end."},
         &metrics->disconnects},
        {{"gumbel_slow_readers_total", NULL, "counter", "Streams that were cancelled for a reader too slow."},
         &metrics->slow_readers},
        {{"gumbel_grammar_cache_hits_total", NULL, "counter",
          "Requests with a grammar that had been compiled for another one."},
         &metrics->grammar_hits},
    };
    static const metric requests = {"gumbel_http_requests_total", NULL, "counter",
                                    "Requests by the class of their status."};
    static const metric ended = {"gumbel_answers_total", NULL, "counter", "Answers by why they ended."};
    print_head(text, &requests, requests.name);
    for (size_t i = 2; i < SERVER_STATUS_CLASSES; i++)
        gb_buffer_print(text, "%s{status=\"%zuxx\"} %llu\n", requests.name, i,
                        atomic_load(&metrics->requests[i]));
    print_head(text, &ended, ended.name);
    gb_buffer_print(text, "%s{reason=\"stop\"} %llu\n%s{reason=\"length\"} %llu\n%s{reason=\"error\"} %llu\n",
                    ended.name, atomic_load(&metrics->stopped), ended.name, atomic_load(&metrics->cut),
                    ended.name, atomic_load(&metrics->failed));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        print_head(text, &all[i].m, all[i].m.name);
        gb_buffer_print(text, "%s %llu\n", all[i].m.name, atomic_load(all[i].counter));
    }
}

void server_print_metrics(const server_metrics *metrics, const server_gauges *gauges, size_t gauge_count,
                          bool with_vllm, gb_byte_buffer *text) {
    for (size_t i = 0; i < sizeof model_metrics / sizeof *model_metrics; i++) {
        const metric *m = &model_metrics[i].m;
        print_model_metric(m, m->name, model_metrics[i].read, gauges, gauge_count, text);
        if (with_vllm && m->vllm)
            print_model_metric(m, m->vllm, model_metrics[i].read, gauges, gauge_count, text);
    }
    print_accepted_at("gumbel_accepted_tokens_by_place_total", gauges, gauge_count, text);
    if (with_vllm)
        print_accepted_at("vllm:spec_decode_num_accepted_tokens_per_pos_total", gauges, gauge_count, text);
    print_counters(metrics, text);
    print_histograms(metrics, with_vllm, text);
}
