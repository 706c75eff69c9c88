/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "export/text/chat_families.h"
#include "export/text/chat_template.h"
#include "text/jinja/jinja.h"

#include <string.h>

typedef struct probe {
    const char *what;
    gumbel_message messages[5]; /* until one without a role */
    gumbel_thinking thinking;
    bool no_generation_prompt;
} probe;

#define SYSTEM_MESSAGE                                                                                       \
    { "system", "\n Be brief.\n" }
#define USER_MESSAGE                                                                                         \
    { "user", " How much\nis 1 + 1? \t" }
#define PLAIN_ANSWER                                                                                         \
    { "assistant", "  2.\xC2\xA0\n" }
#define THOUGHTFUL_ANSWER                                                                                    \
    { "assistant", " <|channel>thought\nOne more.<channel|>\n2. <|channel>thought\nSure" }
#define REASONED_ANSWER                                                                                      \
    { "assistant", "\n<think>\n One <think>more. \n</think>\n\n\n 2.</think>\n\nSure.\n" }
#define CONTINUED_ANSWER                                                                                     \
    { "assistant", "One more.\n</think>\n\nStill 2." }
#define SECOND_QUESTION                                                                                      \
    { "user", "And\t1 + 2?" }

static const probe probes[] = {
    {"a question", {USER_MESSAGE}, GUMBEL_THINKING_DEFAULT, false},
    {"a question, thinking off", {USER_MESSAGE}, GUMBEL_THINKING_OFF, false},
    {"a question, thinking on", {USER_MESSAGE}, GUMBEL_THINKING_ON, false},
    {"a question without generation prompt", {USER_MESSAGE}, GUMBEL_THINKING_DEFAULT, true},
    {"a system message", {SYSTEM_MESSAGE, USER_MESSAGE}, GUMBEL_THINKING_DEFAULT, false},
    {"a system message, thinking on", {SYSTEM_MESSAGE, USER_MESSAGE}, GUMBEL_THINKING_ON, false},
    {"two questions",
     {SYSTEM_MESSAGE, USER_MESSAGE, PLAIN_ANSWER, SECOND_QUESTION},
     GUMBEL_THINKING_DEFAULT,
     false},
    {"an earlier thought", {USER_MESSAGE, THOUGHTFUL_ANSWER, SECOND_QUESTION}, GUMBEL_THINKING_OFF, false},
    {"an earlier thought, thinking on",
     {USER_MESSAGE, THOUGHTFUL_ANSWER, SECOND_QUESTION},
     GUMBEL_THINKING_ON,
     false},
    {"an answer in two messages",
     {USER_MESSAGE, PLAIN_ANSWER, THOUGHTFUL_ANSWER, SECOND_QUESTION},
     GUMBEL_THINKING_DEFAULT,
     false},
    {"an answer at the end", {USER_MESSAGE, THOUGHTFUL_ANSWER}, GUMBEL_THINKING_ON, true},
    {"an earlier thought of another kind",
     {USER_MESSAGE, REASONED_ANSWER, SECOND_QUESTION, PLAIN_ANSWER},
     GUMBEL_THINKING_OFF,
     true},
    {"answers at the end",
     {USER_MESSAGE, CONTINUED_ANSWER, SECOND_QUESTION, REASONED_ANSWER, CONTINUED_ANSWER},
     GUMBEL_THINKING_ON,
     false},
};
enum { PROBE_COUNT = sizeof probes / sizeof probes[0] };

static size_t message_count(const probe *p) {
    size_t count = 0;
    while (count < sizeof p->messages / sizeof p->messages[0] && p->messages[count].role)
        count++;
    return count;
}

/* The variables that transformers' apply_chat_template gives to a template. NULL when memory is short. */
static json_t *make_context(const gb_chat_template *chat, const char *bos, const probe *p) {
    json_t *messages = json_array();
    for (size_t i = 0; i < message_count(p); i++)
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", p->messages[i].role, "content",
                                                  p->messages[i].content));
    json_t *context = json_pack("{s:o, s:n, s:n, s:b}", "messages", messages, "tools", "documents",
                                "add_generation_prompt", !p->no_generation_prompt);
    if (p->thinking != GUMBEL_THINKING_DEFAULT)
        json_object_set_new(context, "enable_thinking", json_boolean(p->thinking == GUMBEL_THINKING_ON));
    json_object_update(context, chat->special_tokens);
    json_object_set_new(context, "bos_token", json_string(bos));
    return context;
}

typedef struct rendered_probes {
    char *texts[PROBE_COUNT];
    size_t lengths[PROBE_COUNT];
} rendered_probes;

static void free_rendered(rendered_probes *rendered) {
    for (int i = 0; i < PROBE_COUNT; i++)
        gb_free(rendered->texts[i]);
}

static gumbel_status render_probes(const gb_chat_template *chat, const char *bos, rendered_probes *rendered,
                                   gumbel_error *error) {
    for (int i = 0; i < PROBE_COUNT; i++) {
        json_t *context = make_context(chat, bos, &probes[i]);
        if (!context)
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to try the chat template");
        gumbel_status status = gb_jinja_render(chat->text, chat->length, context, &rendered->texts[i],
                                               &rendered->lengths[i], error);
        json_decref(context);
        GB_TRY(status);
    }
    return GUMBEL_OK;
}

/* ---- Comparing ---- */

/* How many probes the format renders as the template did, from the first on. */
static gumbel_status count_agreeing(const gb_chat_format *format, const rendered_probes *rendered, int *count,
                                    gumbel_error *error) {
    for (*count = 0; *count < PROBE_COUNT; ++*count) {
        const probe *p = &probes[*count];
        gumbel_chat_options options = {
            .size = sizeof options, .thinking = p->thinking, .no_generation_prompt = p->no_generation_prompt};
        gb_chat_text ours = {0};
        gumbel_status status = gb_chat_render(format, p->messages, message_count(p), &options, &ours, error);
        bool equal =
            status == GUMBEL_OK && ours.text.size == rendered->lengths[*count] &&
            (ours.text.size == 0 || memcmp(ours.text.data, rendered->texts[*count], ours.text.size) == 0);
        gb_chat_text_free(&ours);
        GB_TRY(status);
        if (!equal)
            break;
    }
    return GUMBEL_OK;
}

/* The template's first token is the checkpoint's own; one that tokenizer_config.json does not name is the
 * family's, as in the tokenizer classes of transformers. A family without one does not use what the file
 * names. */
static const char *bos_of(const gb_chat_template *chat, const gb_chat_format *format) {
    const char *bos = json_string_value(json_object_get(chat->special_tokens, "bos_token"));
    return bos && *format->prefix ? bos : format->prefix;
}

static gumbel_status try_family(const gb_chat_template *chat, const gb_chat_family *family,
                                const rendered_probes *rendered, gb_byte_buffer *bytes, int *best,
                                gumbel_error *error) {
    for (unsigned variant = 0; variant < family->variant_count; variant++) {
        gb_chat_format format = family->variant(variant);
        int agreeing;
        format.prefix = bos_of(chat, &format);
        GB_TRY(count_agreeing(&format, rendered, &agreeing, error));
        if (agreeing > *best)
            *best = agreeing;
        if (agreeing < PROBE_COUNT)
            continue;
        gb_chat_format_write(&format, bytes);
        return bytes->failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a chat format") : GUMBEL_OK;
    }
    return GUMBEL_OK;
}

gumbel_status gb_recognize_chat_template(const gb_chat_template *chat, gb_byte_buffer *bytes,
                                         gumbel_error *error) {
    int best = 0;
    for (size_t i = 0; i < gb_chat_family_count && best < PROBE_COUNT; i++) {
        const gb_chat_family *family = &gb_chat_families[i];
        gb_chat_format first = family->variant(0);
        rendered_probes rendered = {0};
        gumbel_status status = render_probes(chat, bos_of(chat, &first), &rendered, error);
        if (status == GUMBEL_OK)
            status = try_family(chat, family, &rendered, bytes, &best, error);
        free_rendered(&rendered);
        if (status != GUMBEL_OK)
            return status == GUMBEL_ERROR_MEMORY
                       ? status
                       : gb_prefix(error, GUMBEL_ERROR_UNSUPPORTED, "%s", chat->source);
    }
    if (best < PROBE_COUNT)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "%s: no known chat format renders \"%s\" as this template does", chat->source,
                       probes[best].what);
    return GUMBEL_OK;
}
