/* SPDX-License-Identifier: Apache-2.0 */
#include "server/models.h"

#include <stdio.h>
#include <string.h>

static gumbel_status submit(void *user, const gumbel_submission *submission, uint64_t *request,
                            gumbel_error *error) {
    return gumbel_scheduler_submit(user, submission, request, error);
}

static void cancel(void *user, uint64_t request) {
    gumbel_scheduler_cancel(user, request);
}

static gumbel_status get_stats(void *user, gumbel_scheduler_stats *stats, gumbel_error *error) {
    return gumbel_scheduler_get_stats(user, stats, error);
}

server_generator server_generator_of(gumbel_scheduler *scheduler) {
    return (server_generator){scheduler, submit, cancel, get_stats};
}

static const char *only_names(void *user, size_t index) {
    (void)index;
    return ((const server_model *)user)->names;
}

static const server_model *acquire_only(void *user, size_t index, bool if_loaded, gumbel_error *error) {
    (void)index, (void)if_loaded, (void)error;
    return user;
}

static void release_only(void *user, const server_model *model) {
    (void)user, (void)model;
}

server_models server_models_of(server_model *model) {
    return (server_models){model, 1, only_names, acquire_only, release_only};
}

const char *server_first_name(const char *names, char id[SERVER_MODEL_ID]) {
    snprintf(id, SERVER_MODEL_ID, "%.*s", (int)strcspn(names, ","), names);
    return id;
}

const char *server_model_id(const server_model *model, char id[SERVER_MODEL_ID]) {
    return server_first_name(model->names, id);
}

const char *server_model_fingerprint(const server_model *model, char text[SERVER_FINGERPRINT]) {
    int used = snprintf(text, SERVER_FINGERPRINT, "gumbel-%s-%s-", gumbel_version(), model->backend);
    for (size_t i = 0; i < sizeof model->info.id && used < SERVER_FINGERPRINT; i++)
        used += snprintf(text + used, (size_t)(SERVER_FINGERPRINT - used), "%02x", model->info.id[i]);
    return text;
}

bool server_is_named(const char *names, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = names; *at; at += strspn(at, ",")) {
        const size_t size = strcspn(at, ",");
        if (size == length && memcmp(at, name, size) == 0)
            return true;
        at += size;
    }
    return false;
}
