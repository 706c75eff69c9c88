/* Talks with a model that may ask for the time:  chat PROGRAM  (a line of standard input is a message) */
#include <gumbel.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"time\", \"description\": \"The time of "
    "day\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}}]";

/* Generates one reply and prints its parts as they come. */
static gumbel_status answer(gumbel_conversation *conversation, gumbel_session *session,
                            const gumbel_tokenizer *tokenizer, gumbel_error *error) {
    gumbel_generate_options options = {.size = sizeof options, .max_new_tokens = 200, .tokenizer = tokenizer};
    gumbel_turn turn = {.size = sizeof turn};
    gumbel_generated next = {.size = sizeof next};
    gumbel_reply_delta delta = {.size = sizeof delta};
    gumbel_status status = gumbel_conversation_prefill(conversation, session, &turn, error);
    if (!status) /* the session holds what comes before */
        status = gumbel_generate(session, turn.tokens + turn.begin, turn.count - turn.begin, &options, error);
    while (!status && !next.finish) {
        status = gumbel_next(session, &next, error);
        if (!status)
            status = gumbel_conversation_add_generated(conversation, &next, error);
        while (!status && gumbel_reply_next(gumbel_conversation_reply(conversation), &delta)) {
            if (delta.type == GUMBEL_PART_CONTENT) /* thoughts are not shown */
                fwrite(delta.text, 1, delta.text_length, stdout);
            if (delta.type == GUMBEL_PART_TOOL_CALL)
                printf("[%s %.*s]", delta.name, (int)delta.text_length, delta.text);
        }
        fflush(stdout);
    }
    puts("");
    return status;
}

/* Gives each call of the last reply its result; *calls: how many there were. */
static gumbel_status call_tools(gumbel_conversation *conversation, size_t *calls, gumbel_error *error) {
    const gumbel_reply *reply = gumbel_conversation_reply(conversation);
    gumbel_reply_part part = {.size = sizeof part};
    gumbel_status status = GUMBEL_OK;
    *calls = 0;
    for (size_t i = 0; !status && i < gumbel_reply_part_count(reply); i++) {
        status = gumbel_reply_get_part(reply, i, &part, error);
        if (status || part.type != GUMBEL_PART_TOOL_CALL)
            continue;
        time_t now = time(NULL);
        gumbel_message result = {
            .size = sizeof result, .role = "tool", .name = part.name, .tool_call_id = part.id};
        result.content = strcmp(part.name, "time") == 0 ? ctime(&now) : "There is no such tool.";
        status = gumbel_conversation_add(conversation, &result, 1, error);
        ++*calls;
    }
    return status;
}

int main(int argc, char **argv) {
    gumbel_program *program = NULL;
    gumbel_tokenizer *tokenizer = NULL;
    gumbel_engine *engine = NULL;
    gumbel_session *session = NULL;
    gumbel_conversation *conversation = NULL;
    gumbel_error error = {GUMBEL_OK, "usage: chat PROGRAM"};
    gumbel_engine_options options = {.size = sizeof options, .snapshots = true}; /* to go back cheaply */
    gumbel_chat_options chat = {.size = sizeof chat, .tools = tools, .thinking = GUMBEL_THINKING_OFF};
    char line[4096];
    gumbel_status status = argc != 2 || gumbel_program_open(argv[1], &program, &error) ||
                           gumbel_tokenizer_create(program, &tokenizer, &error) ||
                           gumbel_engine_create(program, &options, &engine, &error) ||
                           gumbel_session_create(engine, &session, &error) ||
                           gumbel_conversation_create(tokenizer, &conversation, &error) ||
                           gumbel_conversation_set_chat(conversation, &chat, &error);
    while (!status && fgets(line, sizeof line, stdin)) {
        gumbel_message message = {.size = sizeof message, .role = "user", .content = line};
        size_t calls = 1;
        status = gumbel_conversation_add(conversation, &message, 1, &error);
        while (!status && calls > 0) {
            status = answer(conversation, session, tokenizer, &error);
            if (!status)
                status = call_tools(conversation, &calls, &error);
        }
    }
    if (status)
        fprintf(stderr, "%s\n", error.message);
    gumbel_conversation_destroy(conversation);
    gumbel_engine_destroy(engine);
    gumbel_tokenizer_destroy(tokenizer);
    gumbel_program_close(program);
    return status ? 1 : 0;
}
