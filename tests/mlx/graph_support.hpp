/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the MLX backend's insides: programs from files, and batches of a few rows.
 */
#ifndef GUMBEL_TESTS_MLX_GRAPH_SUPPORT_HPP
#define GUMBEL_TESTS_MLX_GRAPH_SUPPORT_HPP

#include "backends/mlx/lowering.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>

extern "C" {
#include "program/file/reader.h"
#include "support/programs/random_program.h"

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

/* A program of tests/data/run with random weights; cache: NULL for its own. */
inline program_pointer random_program(const char *config, const char *recipe, const char *cache = nullptr) {
    gumbel_export_options options = {};
    options.backend = "mlx"; /* the reference reads constants where they are mapped */
    options.quantize = recipe;
    options.activations = "none";
    options.cache = cache;
    gumbel_program_close(export_random_program(config, options));
    return read_program(random_program_path());
}

inline gb_backend_options backend_options() {
    gb_backend_options options = {};
    options.slots = 4;
    options.max_context = 128;
    options.step_tokens = 96;
    options.snapshots = true;
    return options;
}

/* The arrays of a batch whose rows all have one setting. */
struct test_batch {
    gb_batch batch = {};
    gb_batch_arrays arrays = {};
    uint32_t max_bias;

    /* For batches of at most so many tokens and rows. */
    explicit test_batch(const gb_program &program, uint32_t most_tokens = 256, uint32_t most_rows = 8)
        : max_bias(static_cast<uint32_t>(program.metadata.max_bias)) {
        assert_true(gb_batch_arrays_reserve(&program.metadata, most_tokens, most_rows, &arrays));
        gb_batch_use(&arrays, &batch);
    }
    ~test_batch() {
        gb_batch_arrays_free(&arrays);
    }
    test_batch(const test_batch &) = delete;

    /* Tokens of a slot at positions start and on. */
    void add(int32_t slot, int32_t start, const std::vector<int32_t> &ids) {
        for (size_t i = 0; i < ids.size(); i++) {
            const uint32_t n = batch.token_count++;
            arrays.tokens[n] = ids[i];
            arrays.positions[n] = start + static_cast<int32_t>(i);
            arrays.slots[n] = slot;
        }
    }

    /* Asks for the successor of the token added last. */
    void add_row(float temperature, int32_t top_k, float top_p) {
        const uint32_t row = batch.row_count++;
        gb_batch_clear_row(&arrays, row);
        arrays.rows[row] = static_cast<int32_t>(batch.token_count) - 1;
        arrays.temperature[row] = temperature;
        arrays.top_k[row] = top_k;
        arrays.top_p[row] = top_p;
        arrays.seed[row] = 18 + row;
    }
};

#endif
