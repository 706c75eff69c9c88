/* Loads a program and answers several messages at once:  many PROGRAM MESSAGE ... */
#include <gumbel.h>
#include <stdio.h>
#include <string.h>

enum { USERS = 16, ANSWER_BYTES = 8192 };

struct user {
    int number;
    char answer[ANSWER_BYTES];
    size_t length;
};

/* The scheduler's thread calls this between steps, so it should return soon. */
static void hear(void *context, const gumbel_event *event) {
    struct user *user = context;
    size_t room = ANSWER_BYTES - user->length, length = event->text_length < room ? event->text_length : room;
    if (length > 0)
        memcpy(user->answer + user->length, event->text, length);
    user->length += length;
    if (event->type == GUMBEL_EVENT_ERROR)
        printf("%d: %s\n", user->number, event->message);
    if (event->type == GUMBEL_EVENT_FINISH)
        printf("%d: %.*s (%u tokens, %u of the prompt's %u cached)\n", user->number, (int)user->length,
               user->answer, event->usage->generated_tokens, event->usage->cached_tokens,
               event->usage->prompt_tokens);
}

int main(int argc, char **argv) {
    static struct user users[USERS];
    gumbel_program *program = NULL;
    gumbel_tokenizer *tokenizer = NULL;
    gumbel_engine *engine = NULL;
    gumbel_scheduler *scheduler = NULL;
    gumbel_error error = {GUMBEL_OK, "usage: many PROGRAM MESSAGE ... (at most 16)"};
    gumbel_engine_options options = {.size = sizeof options, .slots = 4};
    if (argc < 3 || argc > 2 + USERS || gumbel_program_open(argv[1], &program, &error) ||
        gumbel_tokenizer_create(program, &tokenizer, &error) ||
        gumbel_engine_create(program, &options, &engine, &error) ||
        gumbel_scheduler_create(engine, NULL, &scheduler, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int i = 0; i < argc - 2; i++) {
        gumbel_message message = {.size = sizeof message, .role = "user", .content = argv[2 + i]};
        gumbel_submission request = {.size = sizeof request, .messages = &message, .message_count = 1};
        request.tokenizer = tokenizer;
        request.callback = hear;
        request.user = &users[i];
        request.max_new_tokens = 100;
        request.has_seed = true; /* the same answers every time, whoever asks beside them */
        users[i].number = i + 1;
        if (gumbel_scheduler_submit(scheduler, &request, NULL, &error))
            fprintf(stderr, "%d: %s\n", i + 1, error.message);
    }
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
    gumbel_engine_destroy(engine);
    gumbel_tokenizer_destroy(tokenizer);
    gumbel_program_close(program);
    return 0;
}
