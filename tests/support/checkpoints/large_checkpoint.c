/* SPDX-License-Identifier: Apache-2.0 */
#include "support/checkpoints/large_checkpoint.h"

#include "support/temporary.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { HIDDEN = 1024, INNER = 8192, HEADS = 4, HEAD_DIM = 64, MAX_LAYERS = 16, HEADER_BYTES = 1 << 16 };

/* The header while it is made. */
typedef struct header {
    char text[HEADER_BYTES];
    size_t length;
    uint64_t data_bytes;
} header;

/* A vector where columns is 0. */
static void add_tensor(header *h, const char *prefix, const char *name, int64_t rows, int64_t columns) {
    uint64_t begin = h->data_bytes;
    char shape[64];
    if (columns > 0)
        snprintf(shape, sizeof shape, "%" PRId64 ",%" PRId64, rows, columns);
    else
        snprintf(shape, sizeof shape, "%" PRId64, rows);
    h->data_bytes += (uint64_t)(rows * (columns > 0 ? columns : 1)) * 2;
    h->length += (size_t)snprintf(h->text + h->length, HEADER_BYTES - h->length,
                                  "%s\"%s%s\":{\"dtype\":\"BF16\",\"shape\":[%s],\"data_offsets\":[%" PRIu64
                                  ",%" PRIu64 "]}",
                                  h->length > 1 ? "," : "", prefix, name, shape, begin, h->data_bytes);
    assert_true(h->length < HEADER_BYTES);
}

static void add_layer(header *h, int index) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "model.layers.%d.", index);
    add_tensor(h, prefix, "input_layernorm.weight", HIDDEN, 0);
    add_tensor(h, prefix, "self_attn.q_proj.weight", HEADS * HEAD_DIM, HIDDEN);
    add_tensor(h, prefix, "self_attn.k_proj.weight", HEAD_DIM, HIDDEN);
    add_tensor(h, prefix, "self_attn.v_proj.weight", HEAD_DIM, HIDDEN);
    add_tensor(h, prefix, "self_attn.o_proj.weight", HIDDEN, HEADS * HEAD_DIM);
    add_tensor(h, prefix, "self_attn.q_norm.weight", HEAD_DIM, 0);
    add_tensor(h, prefix, "self_attn.k_norm.weight", HEAD_DIM, 0);
    add_tensor(h, prefix, "post_attention_layernorm.weight", HIDDEN, 0);
    add_tensor(h, prefix, "pre_feedforward_layernorm.weight", HIDDEN, 0);
    add_tensor(h, prefix, "post_feedforward_layernorm.weight", HIDDEN, 0);
    add_tensor(h, prefix, "mlp.gate_proj.weight", INNER, HIDDEN);
    add_tensor(h, prefix, "mlp.up_proj.weight", INNER, HIDDEN);
    add_tensor(h, prefix, "mlp.down_proj.weight", HIDDEN, INNER);
    add_tensor(h, prefix, "layer_scalar", 1, 0);
}

/* A stretch of bfloat16 numbers between 1/64 and 1/32, of both signs. */
static const uint16_t *make_numbers(size_t *count) {
    static uint16_t numbers[1 << 19];
    uint32_t state = 1;
    *count = sizeof numbers / sizeof *numbers;
    for (size_t i = 0; i < *count; i++) {
        state = state * 1664525u + 1013904223u;
        numbers[i] = (uint16_t)(0x3c80u | (state >> 24 & 0x7fu) | (state >> 16 & 0x8000u));
    }
    return numbers;
}

static void write_weights(const char *path, const header *h) {
    size_t count;
    const uint16_t *numbers = make_numbers(&count);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    uint8_t length[8] = {(uint8_t)h->length, (uint8_t)(h->length >> 8), (uint8_t)(h->length >> 16)};
    assert_int_equal(fwrite(length, 1, sizeof length, file), sizeof length);
    assert_int_equal(fwrite(h->text, 1, h->length, file), h->length);
    for (uint64_t left = h->data_bytes / 2; left > 0;) {
        size_t part = left < count ? (size_t)left : count;
        assert_int_equal(fwrite(numbers, 2, part, file), part);
        left -= part;
    }
    assert_int_equal(fclose(file), 0);
}

static void write_config(const char *path, int64_t vocabulary, int layers) {
    char text[1024], kinds[MAX_LAYERS * 20] = "";
    for (int i = 0; i < layers; i++)
        strcat(kinds, i ? ",\"full_attention\"" : "\"full_attention\"");
    snprintf(text, sizeof text,
             "{\"model_type\":\"gemma4_text\",\"dtype\":\"bfloat16\",\"vocab_size\":%" PRId64
             ",\"hidden_size\":%d,\"intermediate_size\":%d,\"num_hidden_layers\":%d,"
             "\"num_attention_heads\":%d,\"num_key_value_heads\":1,\"num_global_key_value_heads\":1,"
             "\"head_dim\":%d,\"global_head_dim\":%d,\"hidden_size_per_layer_input\":0,"
             "\"num_kv_shared_layers\":0,\"max_position_embeddings\":512,\"layer_types\":[%s]}",
             vocabulary, HIDDEN, INNER, layers, HEADS, HEAD_DIM, HEAD_DIM, kinds);
    write_text(path, text);
}

uint64_t write_large_checkpoint(const char *directory, int64_t vocabulary, int layers) {
    static header h;
    char path[600];
    assert_true(layers > 0 && layers <= MAX_LAYERS);
    h.length = 0;
    h.data_bytes = 0;
    h.text[h.length++] = '{';
    add_tensor(&h, "model.", "embed_tokens.weight", vocabulary, HIDDEN);
    for (int i = 0; i < layers; i++)
        add_layer(&h, i);
    add_tensor(&h, "model.", "norm.weight", HIDDEN, 0);
    h.text[h.length++] = '}';
    snprintf(path, sizeof path, "%s/config.json", directory);
    write_config(path, vocabulary, layers);
    snprintf(path, sizeof path, "%s/model.safetensors", directory);
    write_weights(path, &h);
    return h.data_bytes;
}
