/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the MLX backend's insides: programs from files, and batches of a few rows.
 */
#ifndef GUMBEL_TESTS_MLX_GRAPH_SUPPORT_HPP
#define GUMBEL_TESTS_MLX_GRAPH_SUPPORT_HPP

#include "run/mlx/lowering.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>

extern "C" {
#include "program/reader.h"
#include "support/random_program.h"

#include <cmocka.h>
}

#include <memory>
#include <vector>

struct program_deleter {
    void operator()(gb_program *program) const {
        gb_program_destroy(program);
    }
};
using program_pointer = std::unique_ptr<gb_program, program_deleter>;

/* Reads a program file. Ends the test on an error. */
inline program_pointer read_program(const char *path) {
    gb_program *program = nullptr;
    gumbel_error error;
    assert_ok(gb_program_read(path, &program, &error), &error);
    return program_pointer(program);
}

/* A program of tests/data/run with random weights. */
inline program_pointer random_program(const char *config, const char *recipe) {
    gumbel_export_options options = {};
    options.backend = "mlx"; /* the reference reads constants where they are mapped */
    options.quantize = recipe;
    options.activations = "none";
    gumbel_program_close(export_random_program(config, options));
    return read_program(random_program_path());
}

inline gb_backend_options backend_options() {
    gb_backend_options options = {};
    options.slots = 4;
    options.max_context = 128;
    options.step_tokens = 32;
    options.snapshots = true;
    return options;
}

/* The arrays of a batch whose rows all have one setting. */
struct test_batch {
    gb_batch batch = {};
    std::vector<int32_t> tokens, positions, slots, rows;
    std::vector<float> temperature, top_p, min_p, repetition, frequency, presence, bias_values;
    std::vector<int32_t> top_k, generated_from, penalize_prompt, bias_ids;
    std::vector<uint64_t> seed;
    std::unique_ptr<bool[]> want_logprobs;

    /* Tokens of a slot at positions start and on. */
    void add(int32_t slot, int32_t start, const std::vector<int32_t> &ids) {
        for (size_t i = 0; i < ids.size(); i++) {
            tokens.push_back(ids[i]);
            positions.push_back(start + static_cast<int32_t>(i));
            slots.push_back(slot);
        }
    }

    /* Asks for the successor of the token added last. */
    void add_row(float row_temperature, int32_t row_top_k, float row_top_p) {
        rows.push_back(static_cast<int32_t>(tokens.size()) - 1);
        temperature.push_back(row_temperature);
        top_k.push_back(row_top_k);
        top_p.push_back(row_top_p);
        seed.push_back(17 + rows.size());
        min_p.push_back(0);
        repetition.push_back(1);
        frequency.push_back(0);
        presence.push_back(0);
        generated_from.push_back(-1);
        penalize_prompt.push_back(0);
    }

    /* Points the batch to the arrays. */
    gb_batch &finish(const gb_program &program) {
        const size_t biases = static_cast<size_t>(program.metadata.max_bias);
        bias_ids.assign(rows.size() * biases, -1);
        bias_values.assign(rows.size() * biases, 0);
        want_logprobs = std::make_unique<bool[]>(rows.size() + 1);
        batch.token_count = static_cast<uint32_t>(tokens.size());
        batch.row_count = static_cast<uint32_t>(rows.size());
        batch.tokens = tokens.data();
        batch.positions = positions.data();
        batch.slots = slots.data();
        batch.rows = rows.data();
        batch.temperature = temperature.data();
        batch.top_k = top_k.data();
        batch.top_p = top_p.data();
        batch.seed = seed.data();
        batch.min_p = min_p.data();
        batch.repetition_penalty = repetition.data();
        batch.frequency_penalty = frequency.data();
        batch.presence_penalty = presence.data();
        batch.generated_from = generated_from.data();
        batch.penalize_prompt = penalize_prompt.data();
        batch.bias_ids = bias_ids.data();
        batch.bias_values = bias_values.data();
        batch.want_logprobs = want_logprobs.get();
        return batch;
    }
};

#endif
