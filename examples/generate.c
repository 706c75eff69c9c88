/* Loads a program and prints what it says to one message:  generate smollm2.gumbel "Where is Paris?" */
#include <gumbel.h>
#include <stdio.h>

int main(int argc, char **argv) {
    gumbel_program *program = NULL;
    gumbel_tokenizer *tokenizer = NULL;
    gumbel_engine *engine = NULL;
    gumbel_session *session = NULL;
    gumbel_error error = {GUMBEL_OK, "usage: generate PROGRAM MESSAGE"};
    int32_t prompt[1024];
    size_t prompt_count;
    gumbel_message message = {.size = sizeof message, .role = "user", .content = argc == 3 ? argv[2] : ""};
    if (argc != 3 || gumbel_program_open(argv[1], &program, &error) ||
        gumbel_tokenizer_create(program, &tokenizer, &error) ||
        gumbel_chat_encode(tokenizer, &message, 1, NULL, prompt, 1024, &prompt_count, &error) ||
        gumbel_engine_create(program, NULL, &engine, &error) ||
        gumbel_session_create(engine, &session, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    gumbel_session_set_seed(session, 42); /* the same answer every time */
    gumbel_generate_options options = {.size = sizeof options, .max_new_tokens = 100, .tokenizer = tokenizer};
    gumbel_generated next = {.size = sizeof next};
    gumbel_status status = gumbel_generate(session, prompt, prompt_count, &options, &error);
    while (!status && !next.finish) {
        status = gumbel_next(session, &next, &error);
        fwrite(next.text, 1, next.text_length, stdout);
    }
    puts("");
    return status ? fprintf(stderr, "%s\n", error.message), 1 : 0;
}
