/* SPDX-License-Identifier: Apache-2.0
 *
 * The delta net of prompts in chunks: beside a walk in double it errs no more than the kernels that go token
 * by token, and a token's bits depend neither on what else is in the batch nor on where a prompt was cut, at
 * a multiple of 64 positions.
 */
#include "cuda/delta_layer.h"

static layer_results walked, found, other;
static double exact_y[MOST_TOKENS * WIDTH], exact_memory[SLOTS * MEMORY];

/* ---- In double ----------------------------------------------------------------------------------------- */

static double silu_of(double x) {
    return x / (1 + exp(-x));
}

/* Of a run's token number i, which is token n. */
static double convolved(const layer_run *r, size_t i, size_t n, size_t channel) {
    double sum = 0;
    for (size_t w = 0; w < TAPS; w++) {
        const float *tail = in.states + (size_t)r->slots[n] * (TAIL + MEMORY);
        const size_t row = i + w; /* of the tail and the run, one after the other */
        const double x = row < TAPS - 1 ? tail[row * CHANNELS + channel]
                                        : in.x[(n - i + row - (TAPS - 1)) * CHANNELS + channel];
        sum += x * (double)gb_float_from_bf16(in.taps[channel * TAPS + w]);
    }
    return silu_of(sum);
}

/* A head's part of a token's channels, as long as it shall be; 0: as it is. */
static void load_head(const layer_run *r, size_t i, size_t n, size_t first, double length, double x[SIZE]) {
    double squares = 0;
    for (size_t d = 0; d < SIZE; d++) {
        x[d] = convolved(r, i, n, first + d);
        squares += x[d] * x[d];
    }
    for (size_t d = 0; d < SIZE && length > 0; d++)
        x[d] *= length / sqrt(squares + 1e-6);
}

static double decay_of(size_t n, size_t head) {
    const double x = (double)in.a[n * HEADS + head] + (double)in.bias[head];
    return exp(-exp((double)in.rate[head]) * log1p(exp(x)));
}

static void remember(double *memory, const double key[SIZE], const double value[SIZE], double decay,
                     double beta) {
    double change[SIZE];
    for (size_t c = 0; c < SIZE; c++) {
        double recalled = 0;
        for (size_t d = 0; d < SIZE; d++) {
            memory[d * SIZE + c] *= decay;
            recalled += key[d] * memory[d * SIZE + c];
        }
        change[c] = (value[c] - recalled) * beta;
    }
    for (size_t d = 0; d < SIZE; d++)
        for (size_t c = 0; c < SIZE; c++)
            memory[d * SIZE + c] += key[d] * change[c];
}

/* Norm and gate of what the query reads. */
static void answer(const double *memory, const double query[SIZE], size_t of_head, double *y) {
    double squares = 0;
    for (size_t c = 0; c < SIZE; c++) {
        y[c] = 0;
        for (size_t d = 0; d < SIZE; d++)
            y[c] += query[d] * memory[d * SIZE + c];
        squares += y[c] * y[c];
    }
    for (size_t c = 0; c < SIZE; c++)
        y[c] *= (double)in.norm[c] / sqrt(squares / SIZE + 1e-6) * silu_of((double)in.z[of_head * SIZE + c]);
}

static void walk_in_double(const layer_run *r) {
    for (size_t slot = 0; slot < SLOTS; slot++)
        for (size_t e = 0; e < MEMORY; e++)
            exact_memory[slot * MEMORY + e] = (double)in.states[slot * (TAIL + MEMORY) + TAIL + e];
    for (size_t n = 0, i = 0; n < r->tokens; n++) {
        i = n > 0 && r->slots[n] == r->slots[n - 1] ? i + 1 : 0;
        for (size_t head = 0; head < HEADS; head++) {
            const size_t of_key = r->is_tiled ? head % KEY_HEADS : head / (HEADS / KEY_HEADS);
            double query[SIZE], key[SIZE], value[SIZE];
            double *memory = exact_memory + (size_t)r->slots[n] * MEMORY + head * SIZE * SIZE;
            load_head(r, i, n, of_key * SIZE, 1 / sqrt(SIZE), query);
            load_head(r, i, n, (KEY_HEADS + of_key) * SIZE, 1, key);
            load_head(r, i, n, (2 * KEY_HEADS + head) * SIZE, 0, value);
            remember(memory, key, value, decay_of(n, head), 1 / (1 + exp(-(double)in.b[n * HEADS + head])));
            answer(memory, query, n * HEADS + head, exact_y + (n * HEADS + head) * SIZE);
        }
    }
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

/* The root of the mean square of the difference. */
static double error_of(const float *x, const double *exact, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ((double)x[i] - exact[i]) * ((double)x[i] - exact[i]);
    return sqrt(sum / (double)count);
}

static double memory_error(const layer_results *of) {
    double sum = 0;
    for (size_t slot = 0; slot < SLOTS; slot++) {
        const double error =
            error_of(of->states + slot * (TAIL + MEMORY) + TAIL, exact_memory + slot * MEMORY, MEMORY);
        sum += error * error;
    }
    return sqrt(sum / SLOTS);
}

/* Runs of 130 tokens from the middle of a chunk on, of one, and of seventy that end with a chunk. */
enum { LONG = 130, SHORT = 1, ENDING = 70, TOKENS = LONG + SHORT + ENDING };
static int32_t slots[TOKENS], positions[TOKENS];

/* Heads that forget within ten to some hundred tokens, as models' do. */
static int make_runs(void **state) {
    make_inputs(state);
    for (int head = 0; head < HEADS; head++) {
        in.rate[head] += 1;
        in.bias[head] = 2 * in.bias[head] - 3;
    }
    for (int n = 0; n < TOKENS; n++) {
        slots[n] = n < LONG ? 3 : n < LONG + SHORT ? 0 : 7;
        positions[n] = n < LONG ? 20 + n : n < LONG + SHORT ? 63 : 58 + n - (LONG + SHORT);
    }
    return 0;
}

static layer_run all_runs(bool is_tiled, bool is_one) {
    return (layer_run){slots, positions, TOKENS, is_tiled, true, is_one, NULL};
}

static void errs_as_a_walk(void **state) {
    (void)state;
    for (int is_tiled = 0; is_tiled < 2; is_tiled++) {
        const layer_run of_ops = all_runs(is_tiled, false), of_step = all_runs(is_tiled, true);
        run_layer(&of_ops, NULL, 0, &walked);
        run_layer(&of_step, NULL, 0, &found);
        walk_in_double(&of_step);
        const double y_error = error_of(found.y, exact_y, TOKENS * WIDTH),
                     of_walk = error_of(walked.y, exact_y, TOKENS * WIDTH);
        print_message("error of results %.3g, of a walk's %.3g; of memories %.3g and %.3g\n", y_error,
                      of_walk, memory_error(&found), memory_error(&walked));
        assert_true(y_error <= 1.35 * of_walk);
        assert_true(memory_error(&found) <= 1.35 * memory_error(&walked));
        for (size_t slot = 0; slot < SLOTS; slot++)
            assert_memory_equal(found.states + slot * (TAIL + MEMORY), walked.states + slot * (TAIL + MEMORY),
                                TAIL * sizeof(float));
    }
}

/* A step has the whole batch, or what lies between multiples of 64 positions, or a run. */
static void same_bits_however_cut(void **state) {
    static const size_t cuts[][4] = {{44, 108, LONG, LONG + SHORT}, {108, LONG + SHORT + 6}, {LONG}};
    static const size_t counts[] = {4, 2, 1};
    const layer_run r = all_runs(false, true);
    (void)state;
    run_layer(&r, NULL, 0, &found);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        run_layer(&r, cuts[i], counts[i], &other);
        assert_memory_equal(other.y, found.y, TOKENS * WIDTH * sizeof(float));
        assert_memory_equal(other.states, found.states, sizeof found.states);
    }
}

/* What follows a token in its chunk changes none of its bits. */
static void same_bits_whatever_follows(void **state) {
    layer_run r = all_runs(false, true);
    (void)state;
    run_layer(&r, NULL, 0, &found);
    for (r.tokens = 30; r.tokens < 60; r.tokens += 29) {
        run_layer(&r, NULL, 0, &other);
        assert_memory_equal(other.y, found.y, r.tokens * WIDTH * sizeof(float));
    }
}

/* More chunks than are prepared at a time, of many short runs and a long one in whose middle the others
 * begin. The states go to other slots than they come from, or stay. */
static void same_bits_of_many_runs(void **state) {
    enum {
        RUNS = SLOTS / 2,
        BEFORE = 16,
        OF_LONG = 130,
        ALL = OF_LONG + 2 * (RUNS - 1),
        SHORT_END = 2 * BEFORE
    };
    int32_t of_slots[ALL], of_positions[ALL], to[ALL];
    (void)state;
    for (int n = 0; n < ALL; n++) {
        const int behind = n - OF_LONG + 1;
        const bool is_long = n >= SHORT_END && n < SHORT_END + OF_LONG;
        of_slots[n] = n < SHORT_END ? n / 2 : is_long ? BEFORE : (behind + 1) / 2;
        of_positions[n] = is_long ? 40 + n - SHORT_END : 62 + of_slots[n] % 3 + n % 2;
        to[n] = RUNS + of_slots[n];
    }
    layer_run r = {of_slots, of_positions, ALL, false, true, true, to};
    const size_t end = SHORT_END + OF_LONG;
    run_layer(&r, NULL, 0, &found);
    run_layer(&r, &end, 1, &other);
    assert_memory_equal(other.y, found.y, ALL * WIDTH * sizeof(float));
    assert_memory_equal(other.states, found.states, sizeof found.states);
    r.to = NULL;
    run_layer(&r, NULL, 0, &other);
    assert_memory_equal(other.y, found.y, ALL * WIDTH * sizeof(float));
    assert_memory_equal(other.states, found.states + RUNS * (TAIL + MEMORY), sizeof found.states / 2);
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errs_as_a_walk), cmocka_unit_test(same_bits_however_cut),
        cmocka_unit_test(same_bits_whatever_follows), cmocka_unit_test(same_bits_of_many_runs)};
    return cmocka_run_group_tests(tests, make_runs, NULL);
}
