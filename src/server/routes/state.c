/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of the server itself: its models, its health, its metrics.
 */
#include "server/state.h"

#include "server/routes/routes.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void server_health_route(server *s, server_exchange *exchange, const char *rest) {
    (void)rest;
    if (atomic_load(&s->has_failed))
        server_reply_json(exchange, 503, json_pack("{s:s}", "status", "failed"));
    else
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

/* What is known of a model that is loaded. */
static void add_loaded(json_t *object, const server_model *model) {
    char fingerprint[SERVER_FINGERPRINT];
    json_object_set_new(object, "max_model_len", json_integer((json_int_t)model->max_context));
    json_object_set_new(object, "architecture",
                        server_json_text(model->info.architecture, strlen(model->info.architecture)));
    json_object_set_new(object, "system_fingerprint",
                        json_string(server_model_fingerprint(model, fingerprint)));
}

/* The fields of OpenAI's and of Anthropic's lists. */
static json_t *model_json(const server *s, size_t number, const char *id) {
    char created[32] = "";
    const time_t started = (time_t)s->started;
    struct tm parts;
    if (gmtime_r(&started, &parts))
        strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &parts);
    const server_models *models = &s->models;
    const server_model *model = models->acquire(models->user, number, true, NULL);
    json_t *object = json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:b}", "id", id, "object", "model",
                               "created", (json_int_t)s->started, "owned_by", "gumbel", "type", "model",
                               "display_name", id, "created_at", created, "is_loaded", model != NULL);
    if (model) {
        add_loaded(object, model);
        models->release(models->user, model);
    }
    return object;
}

static json_t *list_models(const server *s) {
    json_t *list = json_array();
    char id[SERVER_MODEL_ID];
    for (size_t i = 0; i < s->models.count; i++)
        json_array_append_new(list,
                              model_json(s, i, server_first_name(s->models.names(s->models.user, i), id)));
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
    const size_t number = server_number_of(s, rest, &failure);
    if (number < s->models.count)
        server_reply_json(exchange, 200, model_json(s, number, rest));
    else
        server_reply_failure(exchange, &failure);
}

/* The state of the models that are loaded; how many. */
static size_t read_gauges(const server_models *models, server_gauges *gauges, char (*ids)[SERVER_MODEL_ID]) {
    size_t count = 0;
    for (size_t i = 0; i < models->count; i++) {
        const server_model *model = models->acquire(models->user, i, true, NULL);
        if (!model)
            continue;
        gauges[count].model = server_model_id(model, ids[count]);
        gauges[count].stats.size = sizeof gauges[count].stats;
        model->generator.get_stats(model->generator.user, &gauges[count].stats, NULL);
        models->release(models->user, model);
        count++;
    }
    return count;
}

void server_metrics_route(server *s, server_exchange *exchange, const char *rest) {
    (void)rest;
    gb_byte_buffer text = {0};
    server_gauges *gauges = calloc(s->models.count, sizeof *gauges);
    char(*ids)[SERVER_MODEL_ID] = calloc(s->models.count, sizeof *ids);
    if (gauges && ids)
        server_print_metrics(&s->metrics, gauges, read_gauges(&s->models, gauges, ids),
                             s->options.with_vllm_metrics, &text);
    free(gauges);
    free(ids);
    server_reply(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}
