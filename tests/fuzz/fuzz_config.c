/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as config.json and, behind a zero byte, generation_config.json: refused with a reason, or the
 * model's graph and its draft head's are built and the verifier accepts them.
 */
#include "export/checkpoint/generation_config.h"
#include "export/models/model.h"
#include "export/source.h"
#include "export/weights.h"
#include "support/temporary.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef gumbel_status (*build_function)(const gb_config *, const gb_model_options *, gb_builder *,
                                        gb_weights *, gumbel_error *);

static bool went_well(gumbel_status status, const gumbel_error *error) {
    if (status != GUMBEL_OK && (error->status != status || !error->message[0]))
        abort();
    return status == GUMBEL_OK;
}

static void build_graph(build_function build, const gb_config *root, gb_dtype dtype) {
    static const gb_model_options options = {.layers = 4};
    gb_builder *builder = gb_builder_create();
    gb_weights *weights = gb_weights_create(NULL, dtype, 0);
    gb_program *program = NULL;
    gumbel_error error = {.status = GUMBEL_OK};
    if (builder && weights && went_well(build(root, &options, builder, weights, &error), &error) &&
        went_well(gb_builder_finish(builder, &program, &error), &error))
        gb_program_destroy(program);
    gb_weights_destroy(weights);
    gb_builder_destroy(builder);
}

/* As an export of random weights does. */
static void read_model(const gb_source *source) {
    const gb_config root = gb_config_root(source->config);
    gumbel_error error = {.status = GUMBEL_OK};
    const gb_model *model;
    gb_dtype dtype;
    if (!went_well(gb_model_find(&root, &model, &error), &error) ||
        !went_well(gb_source_dtype(source, &dtype, &error), &error))
        return;
    build_graph(model->build, &root, dtype);
    if (model->build_head)
        build_graph(model->build_head, &root, dtype);
}

static void read_generation(const gb_source *source) {
    const gb_config root = gb_config_root(source->config);
    gb_generation_config generation;
    gumbel_error error = {.status = GUMBEL_OK};
    if (went_well(gb_generation_config_read(source->directory, &root, 1000, &generation, &error), &error) &&
        generation.bos_token >= 1000)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t length = zero ? (size_t)(zero - data) : size;
    gumbel_error error = {.status = GUMBEL_OK};
    gb_source source = {0};
    write_file(temporary_path("config.json"), data, length);
    write_file(temporary_path("generation_config.json"), zero ? zero + 1 : (const uint8_t *)"{}",
               zero ? size - length - 1 : 2);
    if (went_well(gb_source_open(temporary_directory(), true, &source, &error), &error)) {
        read_generation(&source);
        read_model(&source);
    }
    gb_source_close(&source);
    return 0;
}
