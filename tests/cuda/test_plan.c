/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch lists as they are printed: what they contain, and that steps launch just that.
 */
#include "backends/cuda/lowering/lowering.h"
#include "backends/cuda/lowering/products.h"
#include "backends/cuda/runtime/facts.h"
#include "base/byte_buffer.h"
#include "base/text_sink.h"
#include "run/handles.h"
#include "support/paths.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, MOST_PROMPT = 65, STEP_TOKENS = 600, SLOTS = 17, MOST_LAUNCHES = 512, NAME = 32 };

/* Lines of a printed list: where the launch's name begins, behind the step's. */
enum { NAME_COLUMN = 24 };

typedef struct launch_list {
    char names[MOST_LAUNCHES][NAME];
    uint32_t count;
} launch_list;

static gumbel_program *program;

/* Launches of one kernel that follow one another are its tiles, as many as the batch has. */
static void add_name(launch_list *list, const char *name) {
    if (list->count > 0 && strcmp(list->names[list->count - 1], name) == 0)
        return;
    assert_true(list->count < MOST_LAUNCHES);
    snprintf(list->names[list->count++], NAME, "%s", name);
}

/* The launches of a class as they are printed. */
static launch_list printed_list(const char *class) {
    launch_list list = {.count = 0};
    char title[80], kernel[NAME];
    gb_byte_buffer text = {0};
    gumbel_error error;
    const gb_text_sink sink = {gb_buffer_write, &text};
    assert_ok(gumbel_program_describe_plan(program, "cuda", sink.write, sink.user, &error), &error);
    snprintf(title, sizeof title, "cuda, %s:", class);
    const char *line = strstr(gb_buffer_string(&text), title);
    assert_non_null(line);
    for (line = strchr(line, '\n') + 1, line = strchr(line, '\n') + 1; *line && *line != '\n';
         line = strchr(line, '\n') + 1) {
        assert_int_equal(sscanf(line + NAME_COLUMN, "%31s", kernel), 1);
        add_name(&list, kernel);
    }
    gb_buffer_free(&text);
    return list;
}

static bool has_name(const launch_list *list, const char *name) {
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return true;
    return false;
}

static void note_launch(void *user, const char *op, const char *weight, double seconds) {
    (void)weight, (void)seconds;
    add_name(user, op);
}

static void assert_lists_equal(const launch_list *found, const launch_list *expected) {
    for (uint32_t i = 0; i < found->count && i < expected->count; i++)
        assert_string_equal(found->names[i], expected->names[i]);
    assert_int_equal(found->count, expected->count);
}

/* ---- What runs ----------------------------------------------------------------------------------------- */

typedef struct running {
    gumbel_engine *engine;
    gumbel_session *sessions[SLOTS];
    int32_t tokens[SLOTS]; /* that come next */
    launch_list launched;
} running;

static void begin(running *r, bool is_profiled) {
    gumbel_error error;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = "cuda",
                                           .slots = SLOTS,
                                           .step_tokens = STEP_TOKENS,
                                           .profile = is_profiled ? note_launch : NULL,
                                           .profile_user = &r->launched};
    assert_ok(gumbel_engine_create(program, &options, &r->engine, &error), &error);
    for (int i = 0; i < SLOTS; i++)
        assert_ok(gumbel_session_create(r->engine, &r->sessions[i], &error), &error);
}

/* Of each of the first `count` slots so many tokens: new ones, or the one that comes next. */
static void step(running *r, uint32_t count, uint32_t each) {
    static int32_t prompts[SLOTS][MOST_PROMPT];
    gumbel_request requests[SLOTS] = {{0}};
    gumbel_result results[SLOTS];
    gumbel_error error;
    for (uint32_t i = 0; i < count; i++) {
        if (each > 1) /* else the first token would be one that was drawn */
            gumbel_session_reset(r->sessions[i]);
        random_tokens(i + each, VOCAB, prompts[i], each);
        results[i] = (gumbel_result){.size = sizeof *results};
        requests[i] = (gumbel_request){.size = sizeof *requests,
                                       .session = r->sessions[i],
                                       .tokens = each == 1 ? &r->tokens[i] : prompts[i],
                                       .token_count = each,
                                       .result = &results[i]};
    }
    r->launched.count = 0;
    const gumbel_status status = gumbel_step(r->engine, requests, count, &error);
    if (status != GUMBEL_ERROR_NUMERIC || !is_short_run()) /* where kernels do nothing there is no token */
        assert_ok(status, &error);
    for (uint32_t i = 0; i < count; i++)
        r->tokens[i] = results[i].token > 0 ? results[i].token : 0;
}

/* Batches at the ends of their classes. */
static const struct batch {
    uint32_t slots, tokens;
    const char *class;
} batches[] = {
    {1, 6, "prefill of up to 16 tokens with 1 row"},
    {8, 2, "prefill of up to 16 tokens with 2 to 16 rows"},
    {1, 17, "prefill of 17 to 512 tokens with 1 row"},
    {2, 9, "prefill of 17 to 512 tokens with 2 to 16 rows"},
    {17, 2, "prefill of 17 to 512 tokens with more than 16 rows"},
    {8, 65, "prefill of more than 512 tokens with 2 to 16 rows"},
    {17, 31, "prefill of more than 512 tokens with more than 16 rows"},
    {1, 1, "decode of 1 token"},
    {2, 1, "decode of 2 to 16 tokens"},
    {16, 1, "decode of 2 to 16 tokens"},
    {17, 1, "decode of more than 16 tokens"},
};

enum { BATCHES = sizeof batches / sizeof *batches };

#ifdef GUMBEL_EMULATED_DEVICE
extern bool emulated_kernels_do_nothing; /* of runtime.cpp */
enum { MOST_RUN = 2048 };
static const void *functions[2][MOST_RUN];
static uint32_t function_counts[2], tracing;

static void note_function(const void *function) {
    assert_true(function_counts[tracing] < MOST_RUN);
    functions[tracing][function_counts[tracing]++] = function;
}

static void trace(uint32_t into) {
    tracing = into;
    function_counts[into] = 0;
    emulated_trace = note_function;
}

/* What they compute is looked at elsewhere, and takes minutes. */
static void leave_out_kernels(bool leaves_out) {
    emulated_kernels_do_nothing = leaves_out;
}

static void assert_traces_equal(void) {
    emulated_trace = NULL;
    assert_int_equal(function_counts[0], function_counts[1]);
    assert_memory_equal(functions[0], functions[1], function_counts[0] * sizeof *functions[0]);
}
#else
static void trace(uint32_t into) {
    (void)into;
}
static void leave_out_kernels(bool leaves_out) {
    (void)leaves_out;
}
static void assert_traces_equal(void) {}
#endif

/* What is timed has the printed names; steps that are not, the first of which is captured and the second
 * replayed where they decode, run the same functions. */
static void steps_launch_what_is_printed(void **unused) {
    (void)unused;
    running timed = {.engine = NULL}, captured = {.engine = NULL};
    leave_out_kernels(is_short_run());
    begin(&timed, true);
    begin(&captured, false);
    for (int i = 0; i < BATCHES; i++) {
        const struct batch *b = &batches[i];
        const launch_list printed = printed_list(b->class);
        trace(0);
        step(&timed, b->slots, b->tokens);
        assert_lists_equal(&timed.launched, &printed);
        for (int again = 0; again < (b->tokens == 1 ? 2 : 1); again++) {
            trace(1);
            step(&captured, b->slots, b->tokens);
            assert_traces_equal();
        }
    }
    leave_out_kernels(false);
    gumbel_engine_destroy(timed.engine);
    gumbel_engine_destroy(captured.engine);
}

static void classes_have_kernels_of_their_own(void **unused) {
    (void)unused;
    const launch_list one = printed_list("decode of 1 token"), few = printed_list("decode of 2 to 16 tokens"),
                      prefill = printed_list("prefill of more than 512 tokens with 1 row");
    assert_string_equal(one.names[1], "norm_gemv_small");
    assert_string_equal(few.names[1], "norm_gemv_small");
    assert_true(has_name(&few, "norm_chain")); /* before quantized matrices */
    assert_string_equal(prefill.names[1], "norm_chain");
    assert_true(has_name(&prefill, "element_chain")); /* the shared expert's factor and the sums, */
    assert_false(has_name(&prefill, "combine"));      /* also the experts' */
    assert_true(has_name(&one, "norm_gemv") && has_name(&one, "expert_inner"));
    assert_true(has_name(&few, "gemv") && has_name(&few, "expert_outer"));
    if (gb_cuda_wgmma_blocks() > 0)
        assert_true(has_name(&prefill, "gemm_wgmma") && has_name(&prefill, "list_experts"));
    assert_true(has_name(&prefill, "norm_gemv")); /* behind the rows: there is one */
    assert_true(has_name(&one, "sample_scan") && has_name(&one, "sample_finish"));
}

static uint32_t count_name(const launch_list *list, const char *name) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += strcmp(list->names[i], name) == 0;
    return count;
}

/* A model that mlx-lm or llama.cpp has quantized, beside gumbel's program of the same model. */
static void sources_have_the_same_kernels(void **unused) {
    (void)unused;
    const char *const recipes[] = {test_data("run/mlx_4bit.json"), test_data("run/gguf_q4_0.json")};
    static const char *const classes[] = {"decode of 1 token", "decode of 2 to 16 tokens"};
    /* Output projections of this model are too narrow to be packed. */
    static const char *const counted[] = {"expert_inner", "route_in_block", "gemm_quantized",
                                          "gemv_quantized", "gemv_float"};
    gumbel_program *const own = program;
    for (int r = 0; r < 2; r++) {
        const launch_list of_own[] = {printed_list(classes[0]), printed_list(classes[1])};
        program =
            export_random_program("qwen_long_rows.json", (gumbel_export_options){.quantize = recipes[r]});
        uint32_t of_one_row = 0;
        for (int i = 0; i < 2; i++) {
            const launch_list list = printed_list(classes[i]);
            /* Norms join the small products of several rows as those of one, and quantized ones of one row
             * alone. */
            const uint32_t norms = count_name(&list, "norm_chain"),
                           of_own_norms = count_name(&of_own[i], "norm_chain"),
                           small = count_name(&list, "norm_gemv_small");
            if (i == 0)
                of_one_row = small;
            assert_int_equal(small, of_one_row);
            assert_int_equal(norms, i == 0
                                        ? of_own_norms
                                        : of_own_norms + count_name(&of_own[i], "norm_gemv_small") - small);
            assert_true(list.count + of_own_norms <= of_own[i].count + norms);
            for (size_t k = 0; k < sizeof counted / sizeof *counted; k++)
                assert_int_equal(count_name(&list, counted[k]), count_name(&of_own[i], counted[k]));
        }
        gumbel_program_close(program);
        program = own;
    }
}

/* The product behind norms that have small products beside it finds its rows rounded. */
static void norms_of_several_rows_round_them(void **unused) {
    (void)unused;
    gumbel_program *const own = program;
    program = export_random_program("qwen_tiles.json", (gumbel_export_options){.quantize = "int4"});
    const launch_list few = printed_list("decode of 2 to 16 tokens");
    assert_true(has_name(&few, "norm_gemv_small"));
    for (uint32_t i = 0; i + 1 < few.count; i++)
        if (strcmp(few.names[i], "norm_gemv_small") == 0)
            assert_string_not_equal(few.names[i + 1], "round_rows");
    gumbel_program_close(program);
    program = own;
}

/* ---- Weights ------------------------------------------------------------------------------------------- */

/* Lowers a program for each class, without memory of the device. */
static void for_classes_of(uint32_t step_tokens, const gb_program *lowered_program,
                           void (*check)(gb_cuda_lowered *lowered)) {
    enum { ALIGNMENT = 256, CONTEXT = 128 };
    const gb_backend_options backend = {
        .slots = 2 * GB_CUDA_MOST_FEW_ROWS, .max_context = CONTEXT, .step_tokens = step_tokens, .fuse = true};
    gb_cuda_weights weights;
    gb_states states = {.places = calloc(lowered_program->state_count, sizeof *states.places)};
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
    gumbel_error error;
    assert_non_null(states.places);
    assert_ok(gb_cuda_weights_place(lowered_program, &weights, &error), &error);
    assert_ok(gb_states_place(lowered_program, CONTEXT, ALIGNMENT, &states, &error), &error);
    gb_cuda_lowering_options options = {.program = lowered_program,
                                        .backend = &backend,
                                        .weights = &weights,
                                        .states = &states,
                                        .scratch = &scratch};
    for (uint32_t i = 0; i < GB_CUDA_CLASSES; i++) {
        gb_cuda_lowered lowered;
        options.class = gb_cuda_classes[i];
        assert_ok(gb_cuda_lower(&options, &lowered, &error), &error);
        check(&lowered);
        gb_cuda_lowered_destroy(&lowered);
    }
    gb_cuda_weights_destroy(&weights);
    free(states.places);
}

static void for_classes(const gb_program *lowered_program, void (*check)(gb_cuda_lowered *lowered)) {
    for_classes_of(STEP_TOKENS, lowered_program, check);
}

static uint32_t packed, canonical; /* matrices that were met */

static void check_matrices(gb_cuda_lowered *lowered) {
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        const gb_cuda_step *step = &lowered->steps[s];
        for (uint32_t i = 0; i < step->step->operand_count; i++) {
            const gb_cuda_tensor *operand = step->problem.operands[i];
            if (!operand || operand->dtype != GB_QUANTIZED)
                continue;
            assert_true(operand->is_packed || !step->kernel->wants_packed);
            packed += operand->is_packed;
            canonical += !operand->is_packed;
        }
    }
}

static void weights_lie_as_kernels_want_them(void **unused) {
    (void)unused;
    static const char *const recipes[] = {"int4-affine", "int4", "int8", "int4-g64"};
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
        gumbel_program *exported =
            export_random_program("qwen_long_rows.json", (gumbel_export_options){.quantize = recipes[r]});
        packed = canonical = 0;
        for_classes(exported->program, check_matrices);
        assert_true(packed > 0 || r > 0); /* these rows are too short for tiles */
        assert_true(canonical > 0);
        gumbel_program_close(exported);
    }
}

#ifndef GUMBEL_EMULATED_DEVICE
/* The functions that are launched are called what their launches are. */
static void check_names(gb_cuda_lowered *lowered) {
    gumbel_error error;
    gb_cuda_lowered_bind(lowered, 1, 1, &(gb_cuda_runs){.count = 1}, &(gb_cuda_versions){NULL, NULL});
    assert_ok(gb_cuda_lowered_describe(lowered, lowered->plan->step_count, &error), &error);
    for (uint32_t i = 0; i < lowered->launches.count; i++) {
        const gb_cuda_launch *launch = &lowered->launches.launches[i];
        const char *function;
        assert_int_equal(cudaFuncGetName(&function, launch->function), cudaSuccess);
        if (!strstr(function, launch->name))
            fail_msg("the launch %s is of %s", launch->name, function);
    }
}

static void launches_are_called_as_their_functions(void **unused) {
    (void)unused;
    for_classes(program->program, check_names);
}
#endif

static uint32_t even; /* launches that were met */

/* Of so few blocks a multiprocessor has room for its share and for no more: registers alone would let it take
 * more, while others are idle. */
static void check_even_blocks(gb_cuda_lowered *lowered) {
    enum { TOKENS = 2, MOST_EVEN = 2 };
    const gb_cuda_facts *facts = gb_cuda_find_facts();
    const uint32_t tokens = lowered->class.tokens == GB_CUDA_ONE_ROW ? 1 : TOKENS;
    gumbel_error error;
    if (lowered->class.tokens > GB_CUDA_FEW_ROWS)
        return;
    gb_cuda_lowered_bind(lowered, tokens, tokens, &(gb_cuda_runs){.count = 1},
                         &(gb_cuda_versions){NULL, NULL});
    assert_ok(gb_cuda_lowered_describe(lowered, lowered->plan->step_count, &error), &error);
    for (uint32_t i = 0; i < lowered->launches.count; i++) {
        const gb_cuda_launch *launch = &lowered->launches.launches[i];
        const size_t blocks = (size_t)launch->grid.x * launch->grid.y,
                     share = (blocks + facts->multiprocessors - 1) / facts->multiprocessors;
        if (strcmp(launch->name, "expert_outer") != 0)
            continue;
        assert_true(share <= MOST_EVEN);
        assert_true(launch->shared_bytes <= facts->shared_bytes / share);
        assert_true(launch->shared_bytes >= facts->shared_bytes / (share + 1));
        even++;
    }
}

static void few_blocks_of_experts_spread(void **unused) {
    (void)unused;
    even = 0;
    for_classes(program->program, check_even_blocks);
    assert_true(even > 1);
}

/* ---- Experts of prompts -------------------------------------------------------------------------------- */

/* With 4 choices a token: more rows than a grid has along y. */
enum { PROMPT_TOKENS = 16384, CHOICES = 4 };

static uint32_t gathered, listed, rounded_gates; /* launches that were met */

/* Norms and gates have rounded what the experts' products gather, in an order that both have. */
static void check_gathered(gb_cuda_lowered *lowered) {
    static const char *const names[] = {"list_experts", "gather_rounded", "gemm_wgmma_int8"};
    enum { LAUNCHES = sizeof names / sizeof *names };
    gumbel_error error;
    if (lowered->class.tokens != GB_CUDA_LONG_PROMPT)
        return;
    gb_cuda_lowered_bind(lowered, PROMPT_TOKENS, 1, &(gb_cuda_runs){.count = 1},
                         &(gb_cuda_versions){NULL, NULL});
    assert_ok(gb_cuda_lowered_describe(lowered, lowered->plan->step_count, &error), &error);
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        const gb_cuda_step *step = &lowered->steps[s];
        const gb_cuda_launch *launches = &lowered->launches.launches[step->first_launch];
        const uint32_t count = step->end_launch - step->first_launch;
        rounded_gates += count == 1 && strcmp(launches->name, "gate_rows") == 0 &&
                         launches->grid.x == PROMPT_TOKENS * CHOICES;
        if (!step->kernel || strcmp(step->kernel->name, "expert_wgmma_int8") != 0)
            continue;
        const uint32_t first = strcmp(launches->name, names[0]) != 0;
        assert_int_equal(count, LAUNCHES - first);
        for (uint32_t i = first; i < LAUNCHES; i++)
            assert_string_equal(launches[i - first].name, names[i]);
        listed += !first;
        gathered++;
    }
}

static void experts_rows_are_rounded_once(void **unused) {
    (void)unused;
    enum { LONG_CLASSES = 3, PRODUCTS = 2 }; /* of the first layer: rows are left in the last one */
    gumbel_program *exported =
        export_random_program("qwen_tiles.json", (gumbel_export_options){.quantize = "int4"});
    gathered = listed = rounded_gates = 0;
    for_classes_of(PROMPT_TOKENS, exported->program, check_gathered);
    const uint32_t classes = gb_cuda_wgmma_blocks() > 0 ? LONG_CLASSES : 0;
    assert_int_equal(gathered, classes * PRODUCTS);
    assert_int_equal(listed, classes);
    assert_int_equal(rounded_gates, classes);
    gumbel_program_close(exported);
}

/* ---- Values of which prepared rows alone are read ------------------------------------------------------ */

static uint32_t unread, read_too; /* results with an epilogue that were met */

static bool reads_value(const gb_cuda_lowered *lowered, const gb_cuda_step *step, gb_ref storage) {
    for (uint32_t i = 0; i < step->access_count; i++) {
        const gb_cuda_access *access = &step->accesses[i];
        if (access->tensor && !access->writes &&
            lowered->plan->places[access->tensor - lowered->tensors].storage == storage)
            return true;
    }
    return false;
}

static bool is_value_read(const gb_cuda_lowered *lowered, gb_ref storage) {
    for (uint32_t s = 0; s < lowered->plan->step_count; s++)
        if (reads_value(lowered, &lowered->steps[s], storage))
            return true;
    return false;
}

static void check_live(gb_cuda_lowered *lowered) {
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        const gb_cuda_step *step = &lowered->steps[s];
        const gb_fused_kind kind = step->step->fused ? step->step->fused->kind : GB_FUSED_NONE;
        if (kind != GB_FUSED_NORMS && kind != GB_FUSED_GATED && kind != GB_FUSED_DELTA)
            continue;
        for (uint32_t p = 0; p < step->problem.count; p++) {
            const gb_cuda_prepared *rows = step->calls[p].epilogue;
            if (!rows)
                continue;
            const bool is_read = is_value_read(lowered, gb_cuda_prepared_value_of(rows)->storage);
            assert_int_equal(gb_cuda_is_live(&step->problem, p), is_read);
            unread += !is_read;
            read_too += is_read;
        }
    }
}

/* A norm's result is read by a router as well, that of attention's norm and of a gate by products alone. */
static void values_that_are_read_prepared_are_not_stored(void **unused) {
    (void)unused;
    static const struct {
        const char *config, *recipe;
    } cases[] = {{"qwen_tiles.json", "int4"}, {"qwen_long_rows.json", "int4-affine"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gumbel_program *exported =
            export_random_program(cases[i].config, (gumbel_export_options){.quantize = cases[i].recipe});
        unread = read_too = 0;
        for_classes(exported->program, check_live);
        assert_true(unread > 0 && read_too > 0);
        gumbel_program_close(exported);
    }
}

static int open_program(void **unused) {
    (void)unused;
    program = export_random_program(
        "qwen_long_rows.json", (gumbel_export_options){.quantize = "int4-affine", .activations = "int8"});
    return 0;
}

static int close_program(void **unused) {
    (void)unused;
    gumbel_program_close(program);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_have_kernels_of_their_own),
        cmocka_unit_test(weights_lie_as_kernels_want_them),
        cmocka_unit_test(few_blocks_of_experts_spread),
        cmocka_unit_test(experts_rows_are_rounded_once),
        cmocka_unit_test(values_that_are_read_prepared_are_not_stored),
#ifndef GUMBEL_EMULATED_DEVICE
        cmocka_unit_test(launches_are_called_as_their_functions),
#endif
        cmocka_unit_test(steps_launch_what_is_printed),
        cmocka_unit_test(sources_have_the_same_kernels),
        cmocka_unit_test(norms_of_several_rows_round_them),
    };
    return cmocka_run_group_tests(tests, open_program, close_program);
}
