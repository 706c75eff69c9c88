/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes that tell of the server: its models, its health, its metrics.
 */
#include "server/state.h"

#include "server/routes/routes.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void server_health_route(server *s, server_exchange *exchange, const char *rest) {
    (void)s, (void)rest;
    server_reply_json(exchange, 200, json_pack("{s:s}", "status", "ok"));
}

void server_ready_route(server *s, server_exchange *exchange, const char *rest) {
    (void)rest;
    if (atomic_load(&s->is_draining))
        server_reply_json(exchange, 503, json_pack("{s:s}", "status", "draining"));
    else
        server_reply_json(exchange, 200, json_pack("{s:s}", "status", "ready"));
}

void server_version_route(server *s, server_exchange *exchange, const char *rest) {
    (void)s, (void)rest;
    server_reply_json(exchange, 200, json_pack("{s:s}", "version", gumbel_version()));
}

/* The fields of OpenAI's and of Anthropic's lists. */
static json_t *model_json(const server *s, const server_model *model, const char *id) {
    char fingerprint[SERVER_FINGERPRINT], created[32] = "";
    const time_t started = (time_t)s->started;
    struct tm parts;
    if (gmtime_r(&started, &parts))
        strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:s, s:I, s:o, s:s}", "id", id, "object", "model",
                     "created", (json_int_t)s->started, "owned_by", "gumbel", "type", "model", "display_name",
                     server_json_text(model->info.name, strlen(model->info.name)), "created_at", created,
                     "max_model_len", (json_int_t)model->max_context, "architecture",
                     server_json_text(model->info.architecture, strlen(model->info.architecture)),
                     "system_fingerprint", server_model_fingerprint(model, fingerprint));
}

static json_t *list_models(const server *s) {
    json_t *list = json_array();
    char id[SERVER_MODEL_ID];
    for (size_t i = 0; i < s->model_count; i++)
        json_array_append_new(list, model_json(s, &s->models[i], server_model_id(&s->models[i], id)));
    json_t *first = json_object_get(json_array_get(list, 0), "id");
    json_t *last = json_object_get(json_array_get(list, json_array_size(list) - 1), "id");
    return json_pack("{s:s, s:o, s:b, s:O, s:O}", "object", "list", "data", list, "has_more", 0, "first_id",
                     first, "last_id", last);
}

void server_models_route(server *s, server_exchange *exchange, const char *rest) {
    server_failure failure;
    if (!*rest) {
        server_reply_json(exchange, 200, list_models(s));
        return;
    }
    const server_model *model = server_find_model_of(s, rest, &failure);
    if (model)
        server_reply_json(exchange, 200, model_json(s, model, rest));
    else
        server_reply_failure(exchange, &failure);
}

void server_metrics_route(server *s, server_exchange *exchange, const char *rest) {
    (void)rest;
    server_text text = {0};
    server_gauges *gauges = calloc(s->model_count, sizeof *gauges);
    char(*ids)[SERVER_MODEL_ID] = calloc(s->model_count, sizeof *ids);
    for (size_t i = 0; i < s->model_count && gauges && ids; i++) {
        const server_generator *generator = &s->models[i].generator;
        gauges[i].model = server_model_id(&s->models[i], ids[i]);
        gauges[i].stats.size = sizeof gauges[i].stats;
        generator->get_stats(generator->user, &gauges[i].stats, NULL);
    }
    if (gauges && ids)
        server_print_metrics(&s->metrics, gauges, s->model_count, s->options.with_vllm_metrics, &text);
    free(gauges);
    free(ids);
    server_reply(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}
