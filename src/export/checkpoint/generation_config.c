/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/generation_config.h"

#include "base/memory.h"
#include "export/checkpoint/checkpoint.h"
#include "program/settings.h"

#include <float.h>
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

/* The number under the setting's name; one that is out of its range becomes the file's error. */
static double read_setting(const gb_config *config, const gb_setting *setting) {
    const char *name = setting->shown.name;
    char range[GB_RANGE_TEXT];
    double value = setting->shown.type == GUMBEL_SETTING_INT32
                       ? (double)gb_config_integer(config, name, 0, 0, INT32_MAX)
                       : gb_config_number(config, name, setting->shown.neutral, -DBL_MAX, DBL_MAX);
    if (!gb_setting_accepts(setting, value))
        gb_config_fail(config, name, GUMBEL_ERROR_FORMAT, "expected %s, found %g",
                       gb_setting_range(setting, range), value);
    return value;
}

static void read_sampling(const gb_config *config, gb_metadata *recommended) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++)
        if (gb_config_has(config, gb_settings[i].shown.name))
            gb_recommend(&gb_settings[i], read_setting(config, &gb_settings[i]), recommended);
    if (gb_config_has(config, "do_sample") && !gb_config_bool(config, "do_sample", true)) {
        recommended->has_temperature = true;
        recommended->temperature = 0;
    }
}

gumbel_status gb_generation_config_from(const gb_config *config, int64_t vocab_size,
                                        gb_generation_config *generation, gumbel_error *error) {
    *generation = (gb_generation_config){.bos_token = -1};
    read_token_ids(config, vocab_size, generation);
    read_sampling(config, &generation->recommended);
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
