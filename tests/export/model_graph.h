/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of configurations, for tests that look at them. No weights are made.
 */
#ifndef GUMBEL_TESTS_EXPORT_MODEL_GRAPH_H
#define GUMBEL_TESTS_EXPORT_MODEL_GRAPH_H

#include "export/checkpoint/json.h"
#include "export/models/model.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Which graph of a model, and its weights: those of a checkpoint, which may be NULL, or random ones. */
typedef struct wanted_graph {
    bool is_head;
    gb_model_options options;
    const gb_checkpoint *checkpoint;
} wanted_graph;

/* Builds a graph of a configuration of size bytes. */
static inline gumbel_status build_wanted(const char *config, size_t size, const wanted_graph *wanted,
                                         gb_program **program, gumbel_error *error) {
    gb_config_file *file = NULL;
    const gb_model *model = NULL;
    *program = NULL;
    json_t *json = NULL;
    GB_TRY(gb_parse_json("config.json", config, size, &json, error));
    gumbel_status parsed = gb_config_from_json("config.json", json, &file, error);
    json_decref(json);
    GB_TRY(parsed);
    gb_config root = gb_config_root(file);
    gb_weights *weights = gb_weights_create(wanted->checkpoint, GB_BF16, 1);
    gb_builder *builder = gb_builder_create();
    gumbel_status status = gb_model_find(&root, &model, error);
    if (status == GUMBEL_OK)
        status = (wanted->is_head ? model->build_head : model->build)(&root, &wanted->options, builder,
                                                                      weights, error);
    if (status == GUMBEL_OK) {
        gb_builder_metadata(builder)->architecture = model->name;
        status = gb_builder_finish(builder, program, error);
    }
    gb_builder_destroy(builder);
    gb_weights_destroy(weights);
    gb_config_close(file);
    return status;
}

/* Builds the graph of its first layers (0: all). */
static inline gumbel_status build_graph(const char *config, size_t size, uint32_t layers,
                                        gb_program **program, gumbel_error *error) {
    const wanted_graph wanted = {.options = {.sampler = {.kind = GB_SAMPLER_MINIMAL}, .layers = layers}};
    return build_wanted(config, size, &wanted, program, error);
}

static inline gb_program *graph_of(const char *config, uint32_t layers) {
    gb_program *program = NULL;
    gumbel_error error;
    assert_ok(build_graph(config, strlen(config), layers, &program, &error), &error);
    return program;
}

/* How many first results of that op have their first dim equal to dim. */
static inline size_t count_results(const gb_program *program, gb_op op, int64_t dim) {
    size_t count = 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const gb_node *node = &program->nodes[i];
        if (node->op == op)
            count += program->values[node->results[0]].type.shape.dims[0] == dim;
    }
    return count;
}

/* NULL where there is none of that name. */
static inline const gb_constant *find_constant(const gb_program *program, const char *name) {
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (strcmp(program->constants[i].name, name) == 0)
            return &program->constants[i];
    return NULL;
}

/* Flips every bit of a configuration in turn. One may leave another that is valid; none crashes, and errors
 * say something. */
static inline void assert_survives_bit_flips(const char *config) {
    size_t size = strlen(config);
    char text[4096];
    assert_true(size < sizeof text);
    memcpy(text, config, size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        gb_program *program = NULL;
        gumbel_error error;
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
        gumbel_status status = build_graph(text, size, 0, &program, &error);
        assert_true(status == GUMBEL_OK || strlen(error.message) > 0);
        gb_program_destroy(program);
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
    }
}

#endif
