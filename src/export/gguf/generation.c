/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gguf/generation.h"

#include "export/text/tokenizer_gguf.h"
#include "program/settings.h"

#include <stdio.h>
#include <string.h>

static void add_stop(gb_gguf_metadata *metadata, json_t *stops, int64_t id) {
    for (size_t i = 0; i < json_array_size(stops); i++)
        if (json_integer_value(json_array_get(stops, i)) == id)
            return;
    gb_gguf_append(metadata, stops, json_integer((json_int_t)id));
}

static void read_tokens(gb_gguf_metadata *metadata, json_t *config) {
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    json_t *stops = json_array();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (gb_gguf_value_of(metadata, keys[i]))
            add_stop(metadata, stops, gb_gguf_get_integer(metadata, keys[i], 0));
    int32_t spelled[GB_GGUF_MAX_STOPS];
    size_t count = gb_gguf_find_stops(&metadata->files->files[0], spelled);
    for (size_t i = 0; i < count; i++)
        add_stop(metadata, stops, spelled[i]);
    gb_gguf_set(metadata, config, "eos_token_id", stops);
    if (gb_gguf_value_of(metadata, "tokenizer.ggml.bos_token_id"))
        gb_gguf_set(
            metadata, config, "bos_token_id",
            json_integer((json_int_t)gb_gguf_get_integer(metadata, "tokenizer.ggml.bos_token_id", 0)));
}

static void read_setting(gb_gguf_metadata *metadata, const gb_setting *setting, const char *key,
                         json_t *config) {
    if (!gb_gguf_value_of(metadata, key))
        return;
    const bool is_integer = setting->shown.type == GUMBEL_SETTING_INT32;
    gb_gguf_set(metadata, config, setting->shown.name,
                is_integer ? json_integer((json_int_t)gb_gguf_get_integer(metadata, key, 0))
                           : json_real(gb_gguf_get_number(metadata, key, 0)));
}

/* Keys are general.sampling.NAME, where NAME may be one of the setting's aliases. */
static void read_sampling(gb_gguf_metadata *metadata, json_t *config) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++) {
        const gb_setting *setting = &gb_settings[i];
        char key[96];
        snprintf(key, sizeof key, "general.sampling.%s", setting->shown.name);
        read_setting(metadata, setting, key, config);
        for (const char *alias = setting->shown.aliases; alias && *alias; alias += strspn(alias, " ")) {
            const size_t length = strcspn(alias, " ");
            snprintf(key, sizeof key, "general.sampling.%.*s", (int)length, alias);
            read_setting(metadata, setting, key, config);
            alias += length;
        }
    }
}

void gb_gguf_read_generation(gb_gguf_metadata *metadata, json_t *config) {
    read_tokens(metadata, config);
    read_sampling(metadata, config);
}
