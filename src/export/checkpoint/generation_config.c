/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/generation_config.h"

#include "base/memory.h"
#include "export/checkpoint/checkpoint.h"

#include <unistd.h>

void gb_generation_config_add_stop(gb_generation_config *generation, int32_t token) {
    for (uint32_t i = 0; i < generation->stop_token_count; i++)
        if (generation->stop_tokens[i] == token)
            return;
    if (generation->stop_token_count < GB_MAX_STOP_TOKENS)
        generation->stop_tokens[generation->stop_token_count++] = token;
}

static void read_token_ids(const gb_config *config, int64_t vocab_size, gb_generation_config *generation) {
    int64_t ids[GB_MAX_STOP_TOKENS];
    if (generation->stop_token_count == 0) {
        size_t count = gb_config_integers(config, "eos_token_id", 0, vocab_size - 1, ids, GB_MAX_STOP_TOKENS);
        for (size_t i = 0; i < count; i++)
            gb_generation_config_add_stop(generation, (int32_t)ids[i]);
    }
    if (generation->bos_token < 0 && gb_config_integers(config, "bos_token_id", 0, vocab_size - 1, ids, 1))
        generation->bos_token = (int32_t)ids[0];
}

static void read_number(const gb_config *config, const char *key, double least, double most, bool *has,
                        double *value) {
    *has = gb_config_has(config, key);
    if (*has)
        *value = gb_config_number(config, key, 0, least, most);
}

/* Settings beyond temperature, top-k and top-p. */
static void read_more_sampling(const gb_config *config, gb_generation_config *generation) {
    read_number(config, "min_p", 0, 1, &generation->has_min_p, &generation->min_p);
    read_number(config, "presence_penalty", -2, 2, &generation->has_presence_penalty,
                &generation->presence_penalty);
    read_number(config, "frequency_penalty", -2, 2, &generation->has_frequency_penalty,
                &generation->frequency_penalty);
    read_number(config, "repetition_penalty", 0.01, 100, &generation->has_repetition_penalty,
                &generation->repetition_penalty);
}

static void read_sampling(const gb_config *config, gb_generation_config *generation) {
    generation->has_temperature = gb_config_has(config, "temperature");
    if (generation->has_temperature)
        generation->temperature = gb_config_number(config, "temperature", 0, 0, 1e4);
    if (generation->has_temperature && generation->temperature != 0 && generation->temperature < 1e-4)
        gb_config_fail(config, "temperature", GUMBEL_ERROR_FORMAT, "expected 0 or 0.0001 to 10000, found %g",
                       generation->temperature);
    if (gb_config_has(config, "do_sample") && !gb_config_bool(config, "do_sample", true)) {
        generation->has_temperature = true;
        generation->temperature = 0;
    }
    generation->has_top_k = gb_config_has(config, "top_k");
    if (generation->has_top_k)
        generation->top_k = (uint32_t)gb_config_integer(config, "top_k", 0, 0, INT32_MAX);
    generation->has_top_p = gb_config_has(config, "top_p");
    if (generation->has_top_p)
        generation->top_p = gb_config_number(config, "top_p", 1, 1e-9, 1);
    read_more_sampling(config, generation);
}

gumbel_status gb_generation_config_from(const gb_config *config, int64_t vocab_size,
                                        gb_generation_config *generation, gumbel_error *error) {
    *generation = (gb_generation_config){.bos_token = -1};
    read_token_ids(config, vocab_size, generation);
    read_sampling(config, generation);
    return gb_config_status(config->file, error);
}

static gumbel_status read_file(const char *path, int64_t vocab_size, gb_generation_config *generation,
                               gumbel_error *error) {
    gb_config_file *file = NULL;
    GB_TRY(gb_config_open(path, &file, error));
    gb_config root = gb_config_root(file);
    gumbel_status status = gb_generation_config_from(&root, vocab_size, generation, error);
    gb_config_close(file);
    return status;
}

gumbel_status gb_generation_config_read(const char *directory, const gb_config *model, int64_t vocab_size,
                                        gb_generation_config *generation, gumbel_error *error) {
    *generation = (gb_generation_config){.bos_token = -1};
    char *path = gb_join_path(directory, "generation_config.json");
    if (!path)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its file names", directory);
    gumbel_status status = GUMBEL_OK;
    if (access(path, F_OK) == 0)
        status = read_file(path, vocab_size, generation, error);
    gb_free(path);
    GB_TRY(status);
    gb_config text = gb_config_child(model, "text_config");
    read_token_ids(model, vocab_size, generation);
    read_token_ids(&text, vocab_size, generation);
    return gb_config_status(model->file, error);
}
