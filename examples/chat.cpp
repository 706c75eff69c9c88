// A conversation of which each argument is a turn, and what each one ran:  chat PROGRAM MESSAGE ...
#include <gumbel.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

// Everything ends itself, in the order that gumbel.h asks for.
template <typename T, void (*destroy)(T *)>
struct destroyer {
    void operator()(T *handle) const {
        destroy(handle);
    }
};
template <typename T, void (*destroy)(T *)>
using handle = std::unique_ptr<T, destroyer<T, destroy>>;

// Calls a function whose last argument is the error.
template <typename Function, typename... Arguments>
void call(Function function, Arguments... arguments) {
    gumbel_error error{};
    if (function(arguments..., &error) != GUMBEL_OK)
        throw std::runtime_error(error.message);
}

class chat {
    handle<gumbel_program, gumbel_program_close> program;
    handle<gumbel_tokenizer, gumbel_tokenizer_destroy> tokenizer;
    handle<gumbel_engine, gumbel_engine_destroy> engine;
    handle<gumbel_session, gumbel_session_destroy> session;
    handle<gumbel_conversation, gumbel_conversation_destroy> conversation;

  public:
    explicit chat(const char *path) {
        gumbel_engine_options options{};
        options.size = sizeof options;
        options.snapshots = true;
        gumbel_program *made_program;
        call(gumbel_program_open, path, &made_program);
        program.reset(made_program);
        gumbel_tokenizer *made_tokenizer;
        call(gumbel_tokenizer_create, program.get(), &made_tokenizer);
        tokenizer.reset(made_tokenizer);
        gumbel_engine *made_engine;
        call(gumbel_engine_create, program.get(), &options, &made_engine);
        engine.reset(made_engine);
        gumbel_session *made_session;
        call(gumbel_session_create, engine.get(), &made_session);
        session.reset(made_session);
        gumbel_conversation *made_conversation;
        call(gumbel_conversation_create, tokenizer.get(), &made_conversation);
        conversation.reset(made_conversation);
    }

    // The answer to a message, without the thoughts before it; *run: tokens of the prompt that were new.
    std::string ask(const std::string &text, size_t *run) {
        gumbel_message message{};
        message.size = sizeof message;
        message.role = "user";
        message.content = text.c_str();
        call(gumbel_conversation_add, conversation.get(), &message, size_t{1});
        gumbel_turn turn{};
        turn.size = sizeof turn;
        call(gumbel_conversation_prefill, conversation.get(), session.get(), &turn);
        *run = turn.count - turn.held;
        gumbel_generate_options options{};
        options.size = sizeof options;
        options.max_new_tokens = 200;
        options.tokenizer = tokenizer.get();
        call(gumbel_generate, session.get(), turn.tokens + turn.begin, turn.count - turn.begin, &options);
        gumbel_generated next{};
        next.size = sizeof next;
        while (next.finish == GUMBEL_FINISH_NONE) {
            call(gumbel_next, session.get(), &next);
            call(gumbel_conversation_add_generated, conversation.get(), &next);
        }
        return content();
    }

  private:
    std::string content() const {
        std::string answer;
        gumbel_reply_delta delta{};
        delta.size = sizeof delta;
        while (gumbel_reply_next(gumbel_conversation_reply(conversation.get()), &delta))
            if (delta.type == GUMBEL_PART_CONTENT)
                answer.append(delta.text, delta.text_length);
        return answer;
    }
};

int main(int argc, char **argv) try {
    if (argc < 3)
        throw std::runtime_error("usage: chat PROGRAM MESSAGE ...");
    chat talk(argv[1]);
    for (int i = 2; i < argc; i++) {
        size_t run;
        const std::string answer = talk.ask(argv[i], &run);
        std::cout << answer << " (" << run << " new tokens)\n";
    }
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
