/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/chat_families.h"

/* Gemma 4, https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4 and the released templates:
 *  - 26B and 31B open an empty thought when thinking is off, E2B and E4B do not;
 *  - later releases put a line break after <|think|>;
 *  - later releases join assistant messages that follow each other;
 *  - the latest ones also give earlier assistant turns the empty thought. */
enum {
    GEMMA4_NO_EMPTY_THOUGHT = 1,
    GEMMA4_THINK_WITHOUT_LINE_BREAK = 2,
    GEMMA4_SEPARATE_ASSISTANT_MESSAGES = 4,
    GEMMA4_EMPTY_THOUGHT_IN_HISTORY = 8,
    GEMMA4_VARIANTS = 16
};

static gb_chat_format gemma4(unsigned variant) {
    gb_chat_format format = {.name = "gemma4",
                             .prefix = "<bos>",
                             .system_before = "<|turn>system\n",
                             .system_after = "<turn|>\n",
                             .user_before = "<|turn>user\n",
                             .user_after = "<turn|>\n",
                             .assistant_before = "<|turn>model\n",
                             .assistant_after = "<turn|>\n",
                             .system_thinking_on = "<|think|>\n",
                             .assistant_thinking_off = "",
                             .generation_thinking_on = "<|turn>model\n",
                             .generation_thinking_off = "<|turn>model\n<|channel>thought\n<channel|>",
                             .thought_start = "<|channel>",
                             .thought_label = "thought\n",
                             .thought_end = "<channel|>",
                             .strips_thoughts = true,
                             .trims_contents = true,
                             .joins_assistant_messages = true,
                             .stop = "<turn|>"};
    if (variant & GEMMA4_NO_EMPTY_THOUGHT)
        format.generation_thinking_off = format.generation_thinking_on;
    if (variant & GEMMA4_THINK_WITHOUT_LINE_BREAK)
        format.system_thinking_on = "<|think|>";
    if (variant & GEMMA4_SEPARATE_ASSISTANT_MESSAGES)
        format.joins_assistant_messages = false;
    if (variant & GEMMA4_EMPTY_THOUGHT_IN_HISTORY)
        format.assistant_thinking_off = "<|channel>thought\n<channel|>";
    return format;
}

/* Qwen3.5, by the released templates (chat_template.jinja of https://huggingface.co/Qwen). Small models of
 * the family only think when they are told to. */
enum { QWEN3_5_SILENT = 1, QWEN3_5_VARIANTS = 2 };

static gb_chat_format qwen3_5(unsigned variant) {
    return (gb_chat_format){.name = "qwen3_5",
                            .prefix = "",
                            .system_before = "<|im_start|>system\n",
                            .system_after = "<|im_end|>\n",
                            .user_before = "<|im_start|>user\n",
                            .user_after = "<|im_end|>\n",
                            .assistant_before = "<|im_start|>assistant\n",
                            .assistant_after = "<|im_end|>\n",
                            .generation_thinking_on = "<|im_start|>assistant\n<think>\n",
                            .generation_thinking_off = "<|im_start|>assistant\n<think>\n\n</think>\n\n",
                            .thinks_by_default = !(variant & QWEN3_5_SILENT),
                            .thought_start = "<think>",
                            .thought_label = "\n",
                            .thought_end = "</think>",
                            .strips_thoughts = true,
                            .trims_contents = true,
                            .stop = "<|im_end|>",
                            .thought_opens_content = true,
                            .answer_thought_before = "<think>\n",
                            .answer_thought_after = "\n</think>\n\n"};
}

const gb_chat_family gb_chat_families[] = {{"gemma4", GEMMA4_VARIANTS, gemma4},
                                           {"qwen3_5", QWEN3_5_VARIANTS, qwen3_5}};
const size_t gb_chat_family_count = sizeof gb_chat_families / sizeof gb_chat_families[0];
