/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/chat_render.h"

#include "base/clock.h"
#include "base/memory.h"
#include "text/base/utf8.h"
#include "text/chat/chat_forms.h"
#include "text/chat/chat_messages.h"
#include "text/chat/chat_tools.h"

#include <string.h>

/* What continue_final_message is found by, as in transformers: with a space, so that trimming shows. */
#define CONTINUE_TAG "CONTINUE_FINAL_MESSAGE_TAG "

typedef struct conversation {
    const gumbel_chat_options *options;
    const char *template_text;
    json_t *special_tokens;          /* borrowed, or NULL */
    json_t *messages, *tools, *more; /* owned; tools and more may be NULL */
    json_t *written;                 /* owned; gb_chat_complete_messages's */
    json_t *final_content;           /* owned; what is continued, or NULL */
} conversation;

static gumbel_status no_memory(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to render a conversation");
}

static void free_conversation(conversation *c) {
    json_decref(c->messages);
    json_decref(c->tools);
    json_decref(c->more);
    json_decref(c->written);
    json_decref(c->final_content);
}

/* ---- Reading ---- */

static gumbel_status read_messages(conversation *c, const gumbel_message *messages, size_t count,
                                   gumbel_error *error) {
    const char *text = c->options->messages_json;
    if (text && count > 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "messages are given both as structures and as JSON");
    if (text)
        GB_TRY(gb_chat_read_json("messages", text, JSON_ARRAY, &c->messages, error));
    else
        GB_TRY(gb_chat_messages_to_json(messages, count, &c->messages, error));
    return gb_chat_complete_messages(c->messages, &c->written, error);
}

/* An empty list is none. */
static gumbel_status read_tools(conversation *c, gumbel_error *error) {
    if (!c->options->tools)
        return GUMBEL_OK;
    GB_TRY(gb_chat_read_json("tools", c->options->tools, JSON_ARRAY, &c->tools, error));
    if (json_array_size(c->tools) > 0)
        return gb_chat_check_tools(c->tools, error);
    json_decref(c->tools);
    c->tools = NULL;
    return GUMBEL_OK;
}

static gumbel_status read_more(conversation *c, gumbel_error *error) {
    static const char *const taken[] = {"messages", "tools", "add_generation_prompt"};
    if (!c->options->template_kwargs)
        return GUMBEL_OK;
    GB_TRY(gb_chat_read_json("template_kwargs", c->options->template_kwargs, JSON_OBJECT, &c->more, error));
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (json_object_get(c->more, taken[i]))
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "template_kwargs: \"%s\" is no variable to set; it has an option of its own",
                           taken[i]);
    return GUMBEL_OK;
}

/* Templates that know no developer are given a system message. */
static gumbel_status choose_template(conversation *c, const gb_chat_section *section, gumbel_error *error) {
    static const gb_chat_section none;
    c->template_text = c->options->template_text;
    if (section)
        c->special_tokens = section->special_tokens;
    if (!c->template_text)
        GB_TRY(gb_chat_section_choose(section ? section : &none, c->options->template_name, c->tools != NULL,
                                      &c->template_text, error));
    if (strstr(c->template_text, "developer") || gb_chat_rename_developer(c->messages))
        return GUMBEL_OK;
    return no_memory(error);
}

/* Puts the tag behind the last message's content, or the last of its parts. */
static gumbel_status tag_final_message(conversation *c, gumbel_error *error) {
    size_t last = json_array_size(c->messages) - 1;
    json_t *message = json_array_get(c->messages, last), *owner = message;
    const char *key = "content";
    json_t *content = json_object_get(message, key);
    if (json_is_array(content)) {
        owner = json_array_get(content, json_array_size(content) - 1);
        content = json_object_get(owner, key = "text");
    }
    if (!content)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "message %zu: there is no content to continue (continue_final_message)", last);
    c->final_content = json_incref(content);
    gb_byte_buffer tagged = {0};
    gb_buffer_append(&tagged, json_string_value(content), json_string_length(content));
    gb_buffer_append(&tagged, CONTINUE_TAG, strlen(CONTINUE_TAG));
    json_t *value = tagged.failed ? NULL : json_stringn_nocheck((const char *)tagged.data, tagged.size);
    gb_buffer_free(&tagged);
    return json_object_set_new_nocheck(owner, key, value) == 0 ? GUMBEL_OK : no_memory(error);
}

/* Messages that are not continued. */
static size_t count_finished(const conversation *c) {
    return json_array_size(c->messages) - (c->options->continue_final_message ? 1 : 0);
}

static gumbel_status read_conversation(conversation *c, const gb_chat_section *section,
                                       const gumbel_message *messages, size_t count, gumbel_error *error) {
    GB_TRY(read_messages(c, messages, count, error));
    GB_TRY(read_tools(c, error));
    GB_TRY(read_more(c, error));
    GB_TRY(choose_template(c, section, error));
    GB_TRY(gb_chat_insert_calls(c->messages, count_finished(c), c->template_text, error));
    if (c->tools && !gb_chat_shows_tools(c->template_text))
        GB_TRY(gb_chat_insert_tools(c->messages, c->tools, error));
    return c->options->continue_final_message ? tag_final_message(c, error) : GUMBEL_OK;
}

/* ---- Rendering ---- */

/* The variables that transformers' apply_chat_template gives to a template. NULL when memory is short. */
static json_t *make_variables(const conversation *c, json_t *messages) {
    const gumbel_chat_options *options = c->options;
    bool prompt = !options->no_generation_prompt && !options->continue_final_message;
    json_t *variables = json_pack("{s:O, s:O?, s:n, s:b}", "messages", messages, "tools", c->tools,
                                  "documents", "add_generation_prompt", prompt);
    bool good = variables != NULL;
    if (options->thinking != GUMBEL_THINKING_DEFAULT) {
        bool on = options->thinking == GUMBEL_THINKING_ON;
        good = good && json_object_set_new(variables, "enable_thinking", json_boolean(on)) == 0 &&
               json_object_set_new(variables, "thinking", json_boolean(on)) == 0;
    }
    good = good && (!c->more || json_object_update(variables, c->more) == 0);
    if (!good)
        json_decref(variables);
    return good ? variables : NULL;
}

static gumbel_status render_form(const conversation *c, int form, double seconds, gb_jinja_output *output,
                                 gumbel_error *error) {
    gb_jinja_limits limits = gb_jinja_default_limits;
    limits.seconds = seconds;
    json_t *messages =
        form ? gb_chat_messages_in_form(c->messages, c->written, form) : json_incref(c->messages);
    json_t *variables = messages ? make_variables(c, messages) : NULL;
    gb_jinja_input input = {
        .template_text = c->template_text,
        .length = strlen(c->template_text),
        .variables = variables,
        .trusted = c->special_tokens,
        .has_time = c->options->has_time,
        .time = c->options->time,
        .limits = &limits,
    };
    gumbel_status status = variables ? gb_jinja_render(&input, output, error) : no_memory(error);
    json_decref(variables);
    json_decref(messages);
    return status;
}

/* Where text last stands in the output; its length when nowhere. */
static size_t find_last(const gb_jinja_output *output, const char *text, size_t length) {
    for (size_t at = output->length; at-- > 0;)
        if (output->length - at >= length && memcmp(output->text + at, text, length) == 0)
            return at;
    return output->length;
}

static bool is_as_meant(const conversation *c, const gb_jinja_output *output) {
    return !output->printed_structure && !gb_chat_lacks_rules(c->messages, output->text, output->length);
}

/* A template that fails on what is there, prints lists and objects as Python does, or leaves a system message
 * out, may expect messages in another form: the first that it takes is the one. Otherwise what it makes of
 * them as they are holds. */
static gumbel_status render_forms(const conversation *c, gb_jinja_output *output, gumbel_error *error) {
    const double end = gb_seconds() + gb_jinja_default_limits.seconds; /* of all of them */
    gumbel_status first = render_form(c, 0, gb_jinja_default_limits.seconds, output, error), status = first;
    bool may_differ = first == GUMBEL_OK ? !is_as_meant(c, output)
                                         : first == GUMBEL_ERROR_FORMAT || first == GUMBEL_ERROR_ARGUMENT;
    int possible = may_differ ? gb_chat_possible_forms(c->messages) : 0;
    for (int form = 1; form < GB_CHAT_FORMS && status != GUMBEL_ERROR_LIMIT; form++) {
        gb_jinja_output other = {0};
        const double left = end - gb_seconds();
        if ((form & possible) != form || !gb_chat_is_form(form))
            continue;
        status = left > 0 ? render_form(c, form, left, &other, NULL) : GUMBEL_ERROR_LIMIT;
        if (status == GUMBEL_OK && is_as_meant(c, &other)) {
            gb_jinja_output_free(output);
            *output = other;
            return GUMBEL_OK;
        }
        gb_jinja_output_free(&other);
    }
    return first;
}

/* Whether the content ends there, but for white space before it. */
static bool has_final_content(const conversation *c, const gb_jinja_output *output, size_t at) {
    const char *content = json_string_value(c->final_content);
    size_t start = 0, end = json_string_length(c->final_content), whole = end;
    gb_utf8_strip(content, &start, &end);
    size_t length = whole - start;
    return start >= end || (length <= at && memcmp(output->text + at - length, content + start, length) == 0);
}

/* Ends the output before the tag, and without the white space that the template took off the content. */
static gumbel_status cut_at_tag(const conversation *c, gb_jinja_output *output, gumbel_error *error) {
    size_t whole = strlen(CONTINUE_TAG), end = find_last(output, CONTINUE_TAG, whole - 1), start = 0;
    if (end == output->length || !has_final_content(c, output, end))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "message %zu: the chat template does not write its content as it is, so it cannot be "
                       "continued (continue_final_message)",
                       json_array_size(c->messages) - 1);
    if (output->length - end < whole || output->text[end + whole - 1] != ' ')
        gb_utf8_strip(output->text, &start, &end);
    output->length = end;
    output->text[end] = 0;
    return GUMBEL_OK;
}

gumbel_status gb_chat_render(const gb_chat_section *section, const gumbel_message *messages, size_t count,
                             const gumbel_chat_options *options, gb_jinja_output *output,
                             gumbel_error *error) {
    conversation c = {.options = options};
    gumbel_status status = read_conversation(&c, section, messages, count, error);
    if (status == GUMBEL_OK)
        status = render_forms(&c, output, error);
    if (status == GUMBEL_OK && options->continue_final_message) {
        status = cut_at_tag(&c, output, error);
        if (status != GUMBEL_OK)
            gb_jinja_output_free(output);
    }
    free_conversation(&c);
    return status;
}

gumbel_status gb_chat_literal_spans(const gb_jinja_output *output, size_t start, size_t end, gb_span **spans,
                                    size_t *count, gumbel_error *error) {
    size_t capacity = 0;
    *spans = NULL;
    *count = 0;
    for (size_t at = start; output->taint && at < end; at++) {
        if (!output->taint[at])
            continue;
        if (!gb_grow((void **)spans, &capacity, *count + 1, sizeof **spans)) {
            gb_free(*spans);
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to encode a conversation");
        }
        const size_t first = at;
        while (at < end && output->taint[at])
            at++;
        (*spans)[(*count)++] = (gb_span){first - start, at - start};
    }
    return GUMBEL_OK;
}
