/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "text/base/utf8.h"
#include "text/chat/chat_format.h"

#include <string.h>

static const char *const role_names[] = {"system", "user", "assistant"};
typedef enum role { SYSTEM, USER, ASSISTANT, ROLE_COUNT } role;

typedef struct renderer {
    const gb_chat_format *format;
    const gumbel_chat_options *options;
    bool thinking;
    gb_chat_text *chat;
    gb_byte_buffer content; /* the message at hand, repaired and without thoughts */
} renderer;

static bool find_role(const char *name, role *found) {
    for (int i = 0; name && i < ROLE_COUNT; i++) {
        if (strcmp(name, role_names[i]) == 0) {
            *found = (role)i;
            return true;
        }
    }
    return false;
}

/* Text of the format itself. */
static void add_format(renderer *r, const char *text) {
    if (text)
        gb_buffer_append(&r->chat->text, text, strlen(text));
}

/* Text of a message. */
static void add_literal(renderer *r, const char *text, size_t length) {
    gb_chat_text *chat = r->chat;
    if (length == 0)
        return;
    if (!gb_grow((void **)&chat->literal, &chat->literal_capacity, chat->literal_count + 1,
                 sizeof(gb_span))) {
        chat->text.failed = true;
        return;
    }
    gb_span span = {chat->text.size, chat->text.size + length};
    if (chat->literal_count > 0 && chat->literal[chat->literal_count - 1].end == span.start)
        chat->literal[chat->literal_count - 1].end = span.end;
    else
        chat->literal[chat->literal_count++] = span;
    gb_buffer_append(&chat->text, text, length);
}

/* Removes from the content what stands between thought_start and thought_end. A thought that does not end
 * goes to the content's end; an end without a start is removed alone. So do the templates. */
static void strip_thoughts(const gb_chat_format *format, gb_byte_buffer *content) {
    const char *start = format->thought_start, *end = format->thought_end;
    if (!start || !*start || !end || !*end)
        return;
    size_t kept = 0;
    bool thinking = false;
    for (size_t at = 0; at < content->size;) {
        const char *text = (const char *)content->data + at;
        size_t left = content->size - at;
        if (left >= strlen(end) && memcmp(text, end, strlen(end)) == 0) {
            thinking = false;
            at += strlen(end);
        } else if (!thinking && left >= strlen(start) && memcmp(text, start, strlen(start)) == 0) {
            thinking = true;
            at += strlen(start);
        } else {
            if (!thinking)
                content->data[kept++] = content->data[at];
            at++;
        }
    }
    content->size = kept;
}

static void add_part(renderer *r, gb_span part, bool trims) {
    const char *text = (const char *)r->content.data;
    if (trims)
        gb_utf8_strip(text, &part.start, &part.end);
    if (part.end > part.start)
        add_literal(r, text + part.start, part.end - part.start);
}

static void repair_content(renderer *r, const char *content) {
    r->content.size = 0;
    gb_utf8_append_repaired(&r->content, content, strlen(content));
    r->chat->text.failed |= r->content.failed;
}

static void add_content(renderer *r, role who, const char *content) {
    repair_content(r, content);
    if (who == ASSISTANT && r->format->strips_thoughts)
        strip_thoughts(r->format, &r->content);
    add_part(r, (gb_span){0, r->content.size}, r->format->trims_contents);
}

/* ---- Formats whose thoughts open the content ---- */

/* The first or the last place of mark in a part of text, or -1 (the largest) where it has none. */
static size_t find_mark(const char *text, gb_span part, const char *mark, bool last) {
    size_t length = mark ? strlen(mark) : 0, found = SIZE_MAX;
    for (size_t at = part.start; length > 0 && at + length <= part.end; at++) {
        if (memcmp(text + at, mark, length) != 0)
            continue;
        found = at;
        if (!last)
            break;
    }
    return found;
}

/* Cuts the content at its last thought_end. The thought is what stands before the first one, from the last
 * thought_start there on. So do the templates. */
static void cut_thought(renderer *r, gb_span *thought, gb_span *rest) {
    const char *text = (const char *)r->content.data;
    *thought = (gb_span){0, 0};
    *rest = (gb_span){0, r->content.size};
    if (r->format->trims_contents)
        gb_utf8_strip(text, &rest->start, &rest->end);
    size_t first = find_mark(text, *rest, r->format->thought_end, false);
    if (first == SIZE_MAX)
        return;
    *thought = (gb_span){rest->start, first};
    size_t start = find_mark(text, *thought, r->format->thought_start, true);
    if (start != SIZE_MAX)
        thought->start = start + strlen(r->format->thought_start);
    rest->start = find_mark(text, *rest, r->format->thought_end, true) + strlen(r->format->thought_end);
    while (rest->start < rest->end && text[rest->start] == '\n')
        rest->start++;
}

/* The thought stays where the message belongs to the answer to the last user message. */
static void add_thoughtful_content(renderer *r, bool is_answer, const char *content) {
    const gb_chat_format *format = r->format;
    gb_span thought, rest;
    repair_content(r, content);
    cut_thought(r, &thought, &rest);
    bool has_answer_thoughts = format->answer_thought_before && *format->answer_thought_before;
    if (is_answer && has_answer_thoughts) {
        add_format(r, format->answer_thought_before);
        add_part(r, thought, format->trims_contents);
        add_format(r, format->answer_thought_after);
    }
    add_part(r, rest, false);
}

/* ---- Turns ---- */

/* The system turn, which thinking can call for without a system message (content NULL). */
static void add_system(renderer *r, const char *content) {
    add_format(r, r->format->system_before);
    if (r->thinking)
        add_format(r, r->format->system_thinking_on);
    if (content)
        add_content(r, SYSTEM, content);
    add_format(r, r->format->system_after);
}

static void add_message(renderer *r, role who, role previous, bool is_answer, const char *content) {
    const gb_chat_format *format = r->format;
    if (who == SYSTEM) {
        add_system(r, content);
    } else if (who == USER) {
        add_format(r, format->user_before);
        add_content(r, who, content);
        add_format(r, format->user_after);
    } else {
        if (!(format->joins_assistant_messages && previous == ASSISTANT)) {
            add_format(r, format->assistant_before);
            if (!r->thinking)
                add_format(r, format->assistant_thinking_off);
        }
        if (format->strips_thoughts && format->thought_opens_content)
            add_thoughtful_content(r, is_answer, content);
        else
            add_content(r, who, content);
        add_format(r, format->assistant_after);
    }
}

/* What is still to come of the assistant's turn that the session holds. */
static void close_turn(renderer *r) {
    const char *after = r->format->assistant_after ? r->format->assistant_after : "";
    const char *stop = r->format->stop ? r->format->stop : "";
    if (r->options->turn_is_closed && strncmp(after, stop, strlen(stop)) == 0)
        after += strlen(stop);
    add_format(r, after);
}

static gumbel_status check_messages(const gumbel_message *messages, size_t count, bool continues,
                                    gumbel_error *error) {
    for (size_t i = 0; i < count; i++) {
        role who;
        if (!find_role(messages[i].role, &who))
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "message %zu has the role \"%.32s\"; there are system, user and assistant", i,
                           messages[i].role ? messages[i].role : "");
        if (!messages[i].content)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "message %zu has no content", i);
        if (who == SYSTEM && (i > 0 || continues))
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "message %zu is a system message; only the first of a conversation can be one", i);
    }
    return GUMBEL_OK;
}

static size_t index_after_last_user(const gumbel_message *messages, size_t count) {
    while (count > 0 && strcmp(messages[count - 1].role, role_names[USER]) != 0)
        count--;
    return count;
}

static void render(renderer *r, const gumbel_message *messages, size_t count) {
    const gb_chat_format *format = r->format;
    role previous = SYSTEM, who = SYSTEM;
    if (r->options->continues) {
        close_turn(r);
        previous = ASSISTANT;
    } else {
        add_format(r, format->prefix);
        bool has_system = count > 0 && strcmp(messages[0].role, role_names[SYSTEM]) == 0;
        bool calls_for_one = r->thinking && format->system_thinking_on && *format->system_thinking_on;
        if (calls_for_one && !has_system)
            add_system(r, NULL);
    }
    size_t answers = index_after_last_user(messages, count);
    for (size_t i = 0; i < count; i++, previous = who) {
        find_role(messages[i].role, &who);
        add_message(r, who, previous, i >= answers, messages[i].content);
    }
    if (!r->options->no_generation_prompt)
        add_format(r, r->thinking ? format->generation_thinking_on : format->generation_thinking_off);
}

gumbel_status gb_chat_render(const gb_chat_format *format, const gumbel_message *messages, size_t count,
                             const gumbel_chat_options *options, gb_chat_text *chat, gumbel_error *error) {
    GB_TRY(check_messages(messages, count, options->continues, error));
    renderer r = {.format = format, .options = options, .chat = chat};
    r.thinking = options->thinking == GUMBEL_THINKING_DEFAULT ? format->thinks_by_default
                                                              : options->thinking == GUMBEL_THINKING_ON;
    render(&r, messages, count);
    gb_buffer_free(&r.content);
    return chat->text.failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to render %zu messages", count)
                             : GUMBEL_OK;
}

void gb_chat_text_free(gb_chat_text *chat) {
    gb_buffer_free(&chat->text);
    gb_free(chat->literal);
    *chat = (gb_chat_text){0};
}
