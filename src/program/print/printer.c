/* SPDX-License-Identifier: Apache-2.0 */
#include "program/print/printer.h"

#include "program/constant_packing.h"
#include "program/conversations.h"
#include "program/draft_head.h"
#include "program/settings.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* "12.5 MiB (13107200 bytes)", or "12 bytes" below 1 KiB. */
static void print_bytes_line(const gb_text_sink *sink, const char *label, uint64_t bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes;
    int unit = 0;
    while (amount >= 1024 && unit < 4) {
        amount /= 1024;
        unit++;
    }
    if (unit == 0)
        gb_print(sink, "  %-18s %llu bytes\n", label, (unsigned long long)bytes);
    else
        gb_print(sink, "  %-18s %.1f %s (%llu bytes)\n", label, amount, units[unit],
                 (unsigned long long)bytes);
}

static void print_text_line(const gb_text_sink *sink, const char *label, const char *text) {
    if (!*text)
        return;
    gb_print(sink, "  %-18s ", label);
    gb_print_escaped(sink, text);
    gb_print(sink, "\n");
}

static void print_number_line(const gb_text_sink *sink, const char *label, uint64_t number) {
    gb_print(sink, "  %-18s %llu\n", label, (unsigned long long)number);
}

static void print_identity(const gb_program *program, const gb_text_sink *sink) {
    const gb_metadata *metadata = &program->metadata;
    char id[2 * sizeof program->id + 1];
    for (size_t i = 0; i < sizeof program->id; i++)
        snprintf(id + 2 * i, 3, "%02x", program->id[i]);
    gb_print(sink, "program\n");
    print_text_line(sink, "architecture", metadata->architecture);
    print_text_line(sink, "name", metadata->name);
    print_text_line(sink, "source", metadata->source);
    print_text_line(sink, "exporter", metadata->exporter);
    print_text_line(sink, "recipe", metadata->recipe);
    print_text_line(sink, "id", id);
    print_text_line(sink, "ends in", metadata->use_sampling ? "its sampler" : "logits");
    print_text_line(sink, "tokenizer", program->tokenizer.data ? "yes" : "no");
    print_text_line(sink, "chat templates", program->chat.data ? "yes" : "no");
}

static void print_limits(const gb_metadata *metadata, const gb_text_sink *sink) {
    gb_print(sink, "limits\n");
    print_number_line(sink, "vocabulary", metadata->vocab_size);
    print_number_line(sink, "context", metadata->max_context);
    print_number_line(sink, "prefill chunk", metadata->prefill_chunk);
    print_text_line(sink, "rotary factors", metadata->rotary_factors);
    if (metadata->has_max_bias)
        print_number_line(sink, "logit biases", metadata->max_bias);
    if (metadata->has_max_top_logprobs)
        print_number_line(sink, "top logprobs", metadata->max_top_logprobs);
}

static void print_recommended(const gb_metadata *metadata, const gb_text_sink *sink) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++) {
        double value;
        if (!gb_recommended(&gb_settings[i], metadata, &value))
            continue;
        char label[64];
        snprintf(label, sizeof label, "%s", gb_settings[i].shown.name);
        for (char *letter = label; *letter; letter++)
            *letter = *letter == '_' ? '-' : *letter;
        gb_print(sink, "  %-18s %.9g (recommended)\n", label, value);
    }
}

static void print_generation(const gb_metadata *metadata, const gb_text_sink *sink) {
    gb_print(sink, "generation\n");
    print_recommended(metadata, sink);
    if (metadata->has_bos_token)
        print_number_line(sink, "bos token", metadata->bos_token);
    gb_print(sink, "  %-18s ", "stop tokens");
    for (uint32_t i = 0; i < metadata->stop_tokens.count; i++)
        gb_print(sink, "%s%d", i ? "," : "", (int)metadata->stop_tokens.ids[i]);
    gb_print(sink, "%s\n", metadata->stop_tokens.count ? "" : "none");
}

/* What a conversation takes at some lengths, and how many have room beside the weights. */
static void print_conversations(const gb_program *program, uint64_t machine_bytes, const gb_text_sink *sink) {
    const uint32_t context = (uint32_t)program->metadata.max_context;
    const uint64_t room = gb_room_beside_weights(program, machine_bytes);
    gumbel_conversation_memory memory = {.size = sizeof memory};
    for (size_t i = 0; gb_get_conversation_memory(program, context, room, i, &memory); i++) {
        char label[32];
        snprintf(label, sizeof label, "at %u tokens", (unsigned)memory.tokens);
        print_bytes_line(sink, label, memory.bytes);
        if (memory.sessions != UINT64_MAX)
            gb_print(sink, "  %-18s %llu sessions beside the weights\n", "",
                     (unsigned long long)memory.sessions);
    }
}

static void print_memory(const gb_program *program, const gb_summary_sizes *sizes, const gb_text_sink *sink) {
    gb_print(sink, "memory\n");
    print_bytes_line(sink, "weights", gb_program_weight_bytes(program));
    print_bytes_line(sink, "state per session", gb_program_state_bytes(program));
    print_conversations(program, sizes->machine, sink);
    if (sizes->scratch)
        print_bytes_line(sink, "scratch", sizes->scratch);
}

static void print_ops(const gb_program *program, const gb_text_sink *sink) {
    gb_print(sink, "ops\n");
    for (uint32_t number = 0; number < GB_OP_LIMIT; number++) {
        uint32_t count = gb_program_op_count(program, (gb_op)number);
        if (count)
            print_number_line(sink, gb_op_find(number)->name, count);
    }
    print_number_line(sink, "in all", program->node_count);
}

static void print_draft_head(const gb_program *program, const gb_text_sink *sink) {
    if (!program->head)
        return;
    gb_print(sink, "draft head\n");
    print_number_line(sink, "ops", program->head->node_count);
    print_bytes_line(sink, "own weights", gb_head_own_bytes(program));
    print_bytes_line(sink, "state per session", gb_program_state_bytes(program->head));
}

void gb_print_summary(const gb_program *program, const gb_summary_sizes *sizes, const gb_text_sink *sink) {
    print_identity(program, sink);
    print_limits(&program->metadata, sink);
    print_generation(&program->metadata, sink);
    print_memory(program, sizes, sink);
    print_ops(program, sink);
    print_draft_head(program, sink);
    gb_print(sink,
             "same bits\n"
             "  cpu                the same prompt and seed give the same tokens, whatever the batch, its "
             "chunks, the threads and the instruction set\n"
             "  sampler            the same logits, settings and seed give the same token on every "
             "backend but MLX, whose logarithm is its own\n");
}

static void count_bytes(void *user, const char *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
}

/* Bytes of a name as it is printed. */
static int printed_length(const char *name) {
    size_t length = 0;
    gb_print_escaped(&(gb_text_sink){count_bytes, &length}, name);
    return length < INT_MAX ? (int)length : INT_MAX;
}

/* Columns for the names, so that all but the longest stand in a table. */
static int name_width(const gb_program *program) {
    enum { WIDEST = 100 };
    int width = 4;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        int length = printed_length(program->constants[i].name);
        width = length > width ? length : width;
    }
    return width < WIDEST ? width : WIDEST;
}

void gb_print_tensors(const gb_program *program, const gb_text_sink *sink) {
    int width = name_width(program);
    gb_print(sink, "%-*s  %-20s  %7s  %-24s  %14s  %14s  %s\n", width, "name", "format", "bits/w", "shape",
             "bytes", "offset", "packing");
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        char text[GB_TYPE_TEXT], format[GB_FORMAT_TEXT];
        int blanks = width - printed_length(constant->name);
        gb_print_escaped(sink, constant->name);
        gb_print(sink, "%*s  %-20s  %7.3f  %-24s  %14llu  %14llu  %s\n", blanks > 0 ? blanks : 0, "",
                 gb_constant_format_text(constant, format), gb_constant_bits_per_weight(constant),
                 strchr(gb_type_text(&constant->type, text), '['), (unsigned long long)constant->size,
                 (unsigned long long)constant->offset, gb_constant_packing_text(constant));
    }
    gb_print(sink, "%u tensors, %llu bytes\n", program->constant_count,
             (unsigned long long)gb_program_weight_bytes(program));
}
