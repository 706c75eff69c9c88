/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel: language-model programs that sample their own next token.
 *
 * A *program* is one memory-mapped file: graph, weights, tokenizer, chat templates. An *engine* is a program
 * made ready on one backend with a number of slots. A *session* is one slot: a conversation's caches, its
 * position and its seed. A *step* runs tokens of any number of sessions through the program and gets one
 * token id per session back.
 *
 *     gumbel_program *program = NULL;
 *     gumbel_engine *engine = NULL;
 *     gumbel_session *session = NULL;
 *     gumbel_error error;
 *     gumbel_engine_options options = {.size = sizeof options, .threads = 4};
 *     if (gumbel_program_open("model.gumbel", &program, &error) ||
 *         gumbel_engine_create(program, &options, &engine, &error) ||
 *         gumbel_session_create(engine, &session, &error))
 *         return fprintf(stderr, "%s\n", error.message), 1;
 *     ... gumbel_generate() once, then gumbel_next() until it reports a finish ...
 *     gumbel_session_destroy(session);
 *     gumbel_engine_destroy(engine);
 *     gumbel_program_close(program);
 *
 * Conventions, for every function here:
 *  - Results come back through pointers; the return value is GUMBEL_OK (0) or the reason of the failure.
 *    error may be NULL; otherwise it receives the reason and a sentence that says what to do about it.
 *    When a function fails its results are NULL or unchanged, unless it says otherwise.
 *  - Structures with a `size` field are versioned by it: set it to sizeof, leave the rest zero for the
 *    defaults. Fields are only ever added at the end. A size that is not set is an ARGUMENT error, a field
 *    that the library is too old to know is UNSUPPORTED unless it is zero.
 *  - A program may be shared by threads once open. An engine and its sessions are used by one thread at a
 *    time (gumbel_session_cancel is the exception); different engines are independent. A scheduler is used
 *    by any thread.
 *  - After gumbel_engine_create nothing allocates memory until gumbel_engine_destroy, but for gumbel_generate
 *    with a tokenizer, and schedulers.
 *  - Files are mapped, not copied: while a program is open, or a checkpoint or a session is read, they must
 *    not be changed or made shorter. Renaming another file over one is safe, and so is removing it. Reading
 *    what a file has lost raises SIGBUS; the library installs no signal handlers, the caller's say what
 *    happens then.
 *  - Outputs are written without a name, so that a killed writer leaves nothing, and appear when they are
 *    whole. Where the file system has no such files (NFS, FAT) they are written as .gumbel-temporary-*, and
 *    what killed writers have left in a directory is removed by the next one there. A path that is a link is
 *    followed; what is there is replaced, and its permissions are kept. What is no regular file (a directory,
 *    a FIFO, a device) is refused with ARGUMENT, and so is a file that the output is made from.
 */
#ifndef GUMBEL_H
#define GUMBEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GUMBEL_API __attribute__((visibility("default")))
#else
#define GUMBEL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors -------------------------------------------------------------------------------------------- */

typedef enum gumbel_status {
    GUMBEL_OK = 0,
    GUMBEL_ERROR_ARGUMENT = 1,    /* a value given by the caller is out of its range */
    GUMBEL_ERROR_IO = 2,          /* the system refused a file operation */
    GUMBEL_ERROR_FORMAT = 3,      /* a file is not what it claims to be */
    GUMBEL_ERROR_UNSUPPORTED = 4, /* valid, but not in this version or build */
    GUMBEL_ERROR_MEMORY = 5,      /* no memory */
    GUMBEL_ERROR_LIMIT = 6,       /* the context, the slots, a buffer or a disk are full */
    GUMBEL_ERROR_NUMERIC = 7,     /* a row of logits has a NaN, or no finite value */
    GUMBEL_ERROR_CANCELLED = 8,   /* the caller cancelled */
    GUMBEL_ERROR_BACKEND = 9,     /* a backend's library or device failed */
    GUMBEL_ERROR_DEADLINE = 10    /* the time given by the caller is over */
} gumbel_status;

enum { GUMBEL_MESSAGE_BYTES = 1532 };

typedef struct gumbel_error {
    gumbel_status status;
    char message[GUMBEL_MESSAGE_BYTES]; /* one line of UTF-8, as of gumbel_escape: names from files can do no
                                           harm */
} gumbel_error;

/* "0.1.0". */
GUMBEL_API const char *gumbel_version(void);

/* A number that is another one where programs are written in another format: the versions of the file (in the
 * upper 32 bits), of its tokenizer and of its chat templates (16 bits each). */
GUMBEL_API uint64_t gumbel_program_format(void);

/* Receives text that the library writes; length bytes, no terminating zero. */
typedef void (*gumbel_write_callback)(void *user, const char *text, size_t length);

typedef enum gumbel_log_level { GUMBEL_LOG_INFO = 0, GUMBEL_LOG_WARNING = 1 } gumbel_log_level;

/* What gumbel_escape leaves as it is, and how it spells the rest. */
typedef enum gumbel_escape_style {
    GUMBEL_ESCAPE_LINE = 0, /* a name, a path, a message, on one line: \n, \x1b, \u202e, \U000e0041, \xff */
    GUMBEL_ESCAPE_TEXT = 1, /* a model's text: newlines, tabs and joiners stay; the rest as in a line */
    GUMBEL_ESCAPE_JSON = 2  /* within the quotes of a JSON string; U+FFFD for what is ill-formed */
} gumbel_escape_style;

/* Writes length bytes of text so that a terminal shows all of it and obeys none: control characters (C0, C1,
 * DEL), bytes that are not UTF-8, and invisible characters such as overrides of direction are spelled out.
 * A backslash stays as it is, so that escaping a LINE or TEXT again changes nothing. A character cut at the
 * end counts as ill-formed. Thread-safe. */
GUMBEL_API void gumbel_escape(gumbel_escape_style style, const char *text, size_t length,
                              gumbel_write_callback write, void *user);

/* Receives notices, one line each without newline, escaped as errors' messages are. */
typedef void (*gumbel_log_callback)(void *user, gumbel_log_level level, const char *line);

/* ---- Programs ------------------------------------------------------------------------------------------ */

typedef struct gumbel_program gumbel_program;

/* Maps and verifies the program file at path, which must stay as it is until the program is closed (see the
 * conventions on SIGBUS). Errors: IO, FORMAT (truncated, corrupt, or breaking a rule of
 * the verifier), UNSUPPORTED (made for a newer version; names what is missing), MEMORY. */
GUMBEL_API gumbel_status gumbel_program_open(const char *path, gumbel_program **program, gumbel_error *error);

/* Engines made from the program must be destroyed first. NULL is allowed. */
GUMBEL_API void gumbel_program_close(gumbel_program *program);

/* Lets attention's caches hold numbers of another kind, before engines are made of the program and while no
 * other thread uses it. cache is "float32", "bfloat16", "q8" (8-bit codes, a scale for 32 of them), "q4"
 * (4-bit codes in layers that attend to everything, q8 in those with a window) or "q4-all"; others' names for
 * these are understood. Keys and values are rotated where codes need it, see docs/cache-quantization.md.
 * A draft head's caches change alike. Sizes, costs and descriptions are then those of the changed program,
 * and so is its id, by which session files are recognized; a program that has such caches already stays as it
 * is. The file is not changed. Errors: ARGUMENT (an unknown name), UNSUPPORTED (heads that are no whole
 * groups), MEMORY. */
GUMBEL_API gumbel_status gumbel_program_set_cache(gumbel_program *program, const char *cache,
                                                  gumbel_error *error);

/* The draft head of the program's file (gumbel_export_options.draft_head), which guesses tokens from the
 * hidden states that an engine of the program keeps; it lives as long as the program. Engines of it are draft
 * engines (gumbel_engine_options.draft_engine) of engines of the program alone, which give them those states;
 * what they run otherwise means nothing, and backends that take no drafts refuse them. NULL: there is none.
 */
GUMBEL_API const gumbel_program *gumbel_program_draft_head(const gumbel_program *program);

/* Added to the logit of a token: a finite number, or -inf, which bans the token. */
typedef struct gumbel_bias {
    int32_t token;
    float value;
} gumbel_bias;

/* Which tokens the penalties count: those of the prompt (everything that a session held when it began to
 * generate, earlier answers included) and those generated since. */
typedef enum gumbel_penalized {
    GUMBEL_PENALIZED_USUAL = 0,     /* repetition: both; presence and frequency: those generated */
    GUMBEL_PENALIZED_GENERATED = 1, /* all three: those generated */
    GUMBEL_PENALIZED_ALL = 2        /* all three: both */
} gumbel_penalized;

/* How the next token is drawn; see docs/sampling.md. One row's settings. Where a program lacks the input for
 * one (it was exported with --sampler minimal), any but the neutral value is refused. */
typedef struct gumbel_sampling {
    size_t size;
    float temperature;          /* 0: greedy, the lowest id on ties; else within [1e-4, 1e4] */
    int32_t top_k;              /* keep the k largest logits (ties kept); 0 or -1: all */
    float top_p;                /* keep the most likely tokens up to this mass; within (0, 1]; 1: all */
    float min_p;                /* keep tokens at least that likely beside the likeliest; [0, 1]; 0: all */
    float repetition_penalty;   /* divides logits above 0, multiplies others; [0.01, 100]; 1, or 0: none */
    float frequency_penalty;    /* subtracted for each time that a token occurred; [-2, 2] */
    float presence_penalty;     /* subtracted once where a token occurred; [-2, 2] */
    gumbel_penalized penalized; /* which tokens the three penalties count */
    const gumbel_bias *bias;    /* bias_count of them, those of one token add up */
    size_t bias_count;          /* at most gumbel_program_info.max_bias */
} gumbel_sampling;

/* The settings to use when the user asks for nothing: the program's recommended ones over the built-in ones.
 * program may be NULL. sampling->size must be set. Errors: ARGUMENT. */
GUMBEL_API gumbel_status gumbel_sampling_defaults(const gumbel_program *program, gumbel_sampling *sampling,
                                                  gumbel_error *error);

typedef enum gumbel_setting_type { GUMBEL_SETTING_FLOAT = 1, GUMBEL_SETTING_INT32 = 2 } gumbel_setting_type;

/* A field of gumbel_sampling that is a number, for those who take settings by name: flags, JSON, forms. */
typedef struct gumbel_setting {
    size_t size;          /* of this structure in this version of the library */
    const char *name;     /* of the field: "min_p" */
    const char *aliases;  /* what others call it, separated by blanks: "temp"; NULL: nothing */
    const char *argument; /* what help calls its value: "P" */
    const char *help;     /* one or two sentences */
    gumbel_setting_type type;
    size_t offset;        /* of the field */
    double built_in;      /* its value where neither the user nor the program says one */
    double neutral;       /* the value that asks for nothing */
    double low, high;     /* a value lies within [low, high], */
    bool low_excluded;    /* or within (low, high], */
    bool zero_allowed;    /* or is 0 */
    bool zero_is_neutral; /* in a gumbel_sampling 0 stands for the neutral value */
} gumbel_setting;

/* The settings from index 0 on; NULL past the last. */
GUMBEL_API const gumbel_setting *gumbel_setting_at(size_t index);

/* The setting's value; the neutral one where sampling is of a version that lacks the field. */
GUMBEL_API double gumbel_setting_get(const gumbel_setting *setting, const gumbel_sampling *sampling);

/* Errors: ARGUMENT (out of the setting's range, or sampling is of a version that lacks the field). */
GUMBEL_API gumbel_status gumbel_setting_set(const gumbel_setting *setting, double value,
                                            gumbel_sampling *sampling, gumbel_error *error);

/* Whether the model's authors recommend a value for the setting, stored in the program. */
GUMBEL_API bool gumbel_setting_is_recommended(const gumbel_setting *setting, const gumbel_program *program);

typedef struct gumbel_program_info {
    size_t size;
    const char *architecture;   /* "gemma4"; strings live as long as the program, as the file has them */
    const char *name;           /* the checkpoint's name, may be "" */
    uint32_t vocab_size;        /* token ids are 0 .. vocab_size-1 */
    uint32_t max_context;       /* positions a session can hold */
    uint32_t prefill_chunk;     /* tokens of one session in one step that are usual for it */
    bool use_sampling;          /* the program ends in its sampler; false: exported with --logits */
    const int32_t *stop_tokens; /* generation stops after one of these */
    size_t stop_token_count;
    int32_t bos_token;            /* -1: none */
    uint64_t weight_bytes;        /* mapped from the file */
    uint64_t session_state_bytes; /* caches of one session at max_context */
    bool has_tokenizer, has_chat_template;
    uint32_t max_bias;         /* biases of one row; 0: the program takes none */
    uint32_t max_top_logprobs; /* likeliest tokens whose log-probability can be had */
    bool has_logprob;          /* the log-probability of the chosen token can be had */
    bool has_mask;             /* requests may have masks, and so answers grammars */
    bool has_recurrent_states; /* of which gumbel_session_rewind needs a snapshot, but within a draft */
    uint8_t id[16];            /* hash of all sections and weights */
} gumbel_program_info;

GUMBEL_API gumbel_status gumbel_program_get_info(const gumbel_program *program, gumbel_program_info *info,
                                                 gumbel_error *error);

typedef enum gumbel_inspect_part {
    GUMBEL_INSPECT_SUMMARY = 0, /* metadata, limits, memory, ops by count */
    GUMBEL_INSPECT_GRAPH = 1,   /* the nodes in SSA form */
    GUMBEL_INSPECT_TENSORS = 2, /* the weights, a table */
    GUMBEL_INSPECT_JSON = 3     /* all of it as one JSON object */
} gumbel_inspect_part;

/* Writes a description of the program through write. Names and metadata are escaped, see gumbel_escape. */
GUMBEL_API gumbel_status gumbel_program_inspect(const gumbel_program *program, gumbel_inspect_part part,
                                                gumbel_write_callback write, void *user, gumbel_error *error);

/* Writes through write what a backend ("cpu" (NULL) or "cuda") makes of the program: the steps that it
 * executes, in order, what each fused one replaces, and the kernel chosen for each, for every class of
 * batches that has kernels of its own. Needs no device: CUDA's are chosen for a Hopper GPU where there is
 * none. Errors: ARGUMENT (an unknown backend), UNSUPPORTED (one that is not in this build, or has no plan),
 * MEMORY. */
GUMBEL_API gumbel_status gumbel_program_describe_plan(const gumbel_program *program, const char *backend,
                                                      gumbel_write_callback write, void *user,
                                                      gumbel_error *error);

/* A step whose costs are counted: so many sequences at the same position. */
typedef struct gumbel_step_shape {
    size_t size;
    uint32_t sequences; /* at least 1 */
    uint32_t tokens;    /* of each sequence in this step, at least 1 */
    uint32_t position;  /* of its first one */
    bool wants_tokens;  /* each wants its next token: the head runs */
} gumbel_step_shape;

/* What a step must read and multiply at least. A weight is counted once for each op that uses it, however
 * many the tokens; of an embedding the rows of the tokens; of experts those chosen, as many different ones as
 * even chances give. Of caches the positions that attention reads, of other states all. What a step writes,
 * and what it computes besides products of matrices and attention, is not counted. Numbers may be fractions.
 */
typedef struct gumbel_step_costs {
    size_t size;
    double weight_bytes;   /* in the program's own formats */
    double state_bytes;    /* caches and recurrent states */
    double int8_products;  /* multiplications of matrices whose inputs are rounded to 8 bits */
    double float_products; /* all others */
} gumbel_step_costs;

/* Told from the program's graph. Errors: ARGUMENT. */
GUMBEL_API gumbel_status gumbel_program_get_costs(const gumbel_program *program,
                                                  const gumbel_step_shape *shape, gumbel_step_costs *costs,
                                                  gumbel_error *error);

/* ---- Text ---------------------------------------------------------------------------------------------- */

typedef struct gumbel_tokenizer gumbel_tokenizer;

/* The program's tokenizer. Immutable, may be shared by threads; destroyed by the caller, before the program
 * is closed. Errors: UNSUPPORTED (the program has none), FORMAT, MEMORY. */
GUMBEL_API gumbel_status gumbel_tokenizer_create(const gumbel_program *program, gumbel_tokenizer **tokenizer,
                                                 gumbel_error *error);

/* The tokenizer of a checkpoint's tokenizer.json is read by gumbel_export_tokenizer (libgumbel-export). */
GUMBEL_API void gumbel_tokenizer_destroy(gumbel_tokenizer *tokenizer);

typedef struct gumbel_encode_options {
    size_t size;
    bool parse_special; /* special tokens in the text become their ids; false: they are ordinary text. Added
                           tokens that are not special become their ids either way */
    bool add_special;   /* what the model puts around plain text (bos) is added */
} gumbel_encode_options;

/* Encodes length bytes of UTF-8. Bytes that are not UTF-8 are each read as U+FFFD (maximal-subpart rule).
 * Writes at most capacity ids into tokens (may be NULL with capacity 0) and the number there are into
 * *count. Errors: LIMIT when *count > capacity (the first capacity ids are written), MEMORY.
 * Thread-safe on one tokenizer. */
GUMBEL_API gumbel_status gumbel_encode(const gumbel_tokenizer *tokenizer, const char *text, size_t length,
                                       const gumbel_encode_options *options, int32_t *tokens, size_t capacity,
                                       size_t *count, gumbel_error *error);

/* The id of the token spelled exactly so, or -1. */
GUMBEL_API int32_t gumbel_token_id(const gumbel_tokenizer *tokenizer, const char *spelling);

/* A streaming decoder: ids in, whole UTF-8 characters out. */
typedef struct gumbel_detokenizer gumbel_detokenizer;

/* show_special: special tokens are written out; otherwise they give no text. Destroy before the tokenizer. */
GUMBEL_API gumbel_status gumbel_detokenizer_create(const gumbel_tokenizer *tokenizer, bool show_special,
                                                   gumbel_detokenizer **detokenizer, gumbel_error *error);
GUMBEL_API void gumbel_detokenizer_destroy(gumbel_detokenizer *detokenizer);

/* Adds one token. *text receives the characters that are now complete (maybe none): *length bytes, valid
 * until the next call. Bytes that can no longer become a character give U+FFFD; ids of the program's
 * vocabulary that the tokenizer has no spelling for (padding) give no text. Does not allocate.
 * Errors: ARGUMENT when token is not in the vocabulary. */
GUMBEL_API gumbel_status gumbel_detokenize(gumbel_detokenizer *detokenizer, int32_t token, const char **text,
                                           size_t *length, gumbel_error *error);

/* Ends the text: gives what is still held back and starts anew. */
GUMBEL_API void gumbel_detokenize_end(gumbel_detokenizer *detokenizer, const char **text, size_t *length);

/* Lets the text end where one of count strings is complete in it, and starts anew; count 0: nowhere. Then
 * gumbel_detokenize also holds back what may be the beginning of one, and gives no text behind it. The first
 * that is complete counts, of several that end at the same character the longest, wherever tokens were cut.
 * included: the text ends with the string, otherwise before it. A string that is spelled just like a special
 * token is also found where that token is not shown. The strings, UTF-8 ending in a zero byte, are copied.
 * Errors, which leave the detokenizer as it was: ARGUMENT (one is NULL, empty or not UTF-8), LIMIT, MEMORY.
 */
GUMBEL_API gumbel_status gumbel_detokenizer_stop_at(gumbel_detokenizer *detokenizer,
                                                    const char *const *strings, size_t count, bool included,
                                                    gumbel_error *error);

/* Lets the strings hold for the answer alone: not within reasoning, which the prompt may have opened, nor for
 * the white space before the answer. Behind gumbel_detokenizer_stop_at, before the first token. Without a
 * reply format that marks reasoning by tokens they hold everywhere. Errors: ARGUMENT (a token), MEMORY. */
GUMBEL_API gumbel_status gumbel_detokenizer_stop_in_answer(gumbel_detokenizer *detokenizer,
                                                           const int32_t *prompt, size_t count,
                                                           gumbel_error *error);

/* Bytes, 0 to 3, of a character whose rest has not come. */
GUMBEL_API size_t gumbel_detokenizer_pending(const gumbel_detokenizer *detokenizer);

/* The index of the string that ended the text; -1: none has, since the start or the last
 * gumbel_detokenize_end. */
GUMBEL_API int32_t gumbel_detokenizer_stopped(const gumbel_detokenizer *detokenizer);

/* ---- Conversations ------------------------------------------------------------------------------------- */

/* A call of a tool by the model. */
typedef struct gumbel_tool_call {
    size_t size;
    const char *id;        /* NULL: none */
    const char *name;      /* of the tool */
    const char *arguments; /* a JSON object as text; NULL: {} */
} gumbel_tool_call;

/* A message. Texts are UTF-8, ill-formed bytes are read as U+FFFD, and special tokens in them are ordinary
 * text. Of several, each has the size of the first. */
typedef struct gumbel_message {
    size_t size;
    const char *role;      /* "system", "developer", "user", "assistant" or "tool" */
    const char *content;   /* NULL: none, which an assistant's message with a call or a reasoning may have */
    const char *reasoning; /* an assistant's thought before its content; NULL: none */
    const gumbel_tool_call *tool_calls;
    size_t tool_call_count;
    const char *tool_call_id; /* which call a tool's message answers; NULL: not said */
    const char *name;         /* of the tool, or of who speaks; NULL: not said */
    const char *const *parts; /* [part_count] texts in place of content */
    size_t part_count;
} gumbel_message;

typedef enum gumbel_thinking {
    GUMBEL_THINKING_DEFAULT = 0, /* what the model's own template does when nobody says */
    GUMBEL_THINKING_ON = 1,      /* its variables enable_thinking and thinking are true */
    GUMBEL_THINKING_OFF = 2      /* they are false */
} gumbel_thinking;

/* Texts end in a zero byte. Those with JSON are of one value, in UTF-8, without a key twice in an object. */
typedef struct gumbel_chat_options {
    size_t size;
    gumbel_thinking thinking;
    bool no_generation_prompt;   /* end after the last message, without opening the assistant's turn */
    bool continue_final_message; /* end within the last message, for the model to go on with its content */
    const char *messages_json;   /* the messages as an array such as OpenAI's API has, in place of messages */
    const char *tools; /* a JSON array of {"type": "function", "function": {...}}; NULL: none. Where the
                          template has no place for them they are written into a message */
    const char *template_kwargs; /* a JSON object of more variables for the template; NULL: none */
    const char *template_name;   /* NULL: "tool_use" where there are tools and such a template, else "default"
                                  */
    const char *template_text;   /* a Jinja template in place of the program's; NULL: those */
    bool has_time;               /* the template is told that it is this time, not the present one: */
    int64_t time;                /* seconds since 1970 */
} gumbel_chat_options;

/* Renders a conversation with the program's chat template (docs/chat.md) and encodes it. options may be NULL.
 * Capacity and count as in gumbel_encode. Special tokens are recognized in what the template writes, never in
 * what comes from messages, tools and template_kwargs. Template and conversation may be hostile: steps,
 * depth, bytes and time are limited. Thread-safe.
 * Errors: UNSUPPORTED (no such template, or it uses what is not known here), ARGUMENT (a message or option,
 * naming its index and field; or the template's own refusal), FORMAT (JSON, or a template that fails), LIMIT,
 * MEMORY. */
GUMBEL_API gumbel_status gumbel_chat_encode(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                            size_t message_count, const gumbel_chat_options *options,
                                            int32_t *tokens, size_t capacity, size_t *count,
                                            gumbel_error *error);

/* gumbel_chat_encode, and the positions behind which prompts that begin like this one may go on otherwise,
 * for gumbel_submission.branch_positions: branches[0] is behind system messages and tools, branches[1] before
 * the generation prompt; 0: not found. To find them the conversation is rendered twice more. Thread-safe.
 * Errors: those of gumbel_chat_encode. */
enum { GUMBEL_CHAT_BRANCHES = 2 };
GUMBEL_API gumbel_status gumbel_chat_encode_branches(const gumbel_tokenizer *tokenizer,
                                                     const gumbel_message *messages, size_t message_count,
                                                     const gumbel_chat_options *options, int32_t *tokens,
                                                     size_t capacity, size_t *count,
                                                     uint32_t branches[GUMBEL_CHAT_BRANCHES],
                                                     gumbel_error *error);

/* The same as text: what gumbel_chat_encode encodes. Nothing is written when it fails. */
GUMBEL_API gumbel_status gumbel_chat_render(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                            size_t message_count, const gumbel_chat_options *options,
                                            gumbel_write_callback write, void *user, gumbel_error *error);

/* The text of the program's chat template of that name (NULL: the one that is used when none is named and
 * there are no tools), or NULL where there is none. It lives as long as the tokenizer. */
GUMBEL_API const char *gumbel_chat_template(const gumbel_tokenizer *tokenizer, const char *name);

/* Whether the template that the options (NULL: the defaults) choose for a conversation with tools has a place
 * for them. False as well where there is no such template. Thread-safe. */
GUMBEL_API bool gumbel_chat_shows_tools(const gumbel_tokenizer *tokenizer,
                                        const gumbel_chat_options *options);

/* ---- Replies ------------------------------------------------------------------------------------------- */

/* What a model writes is one text in which thoughts, the answer and calls of tools stand between marks. A
 * reply takes it apart as it is generated, by the reply format that the program carries
 * (docs/chat.md). Marks that the tokenizer has tokens for are recognized by these, never by text that
 * spells them; the others as text. Without a format all is content. */
typedef struct gumbel_reply gumbel_reply;

typedef enum gumbel_part_type {
    GUMBEL_PART_CONTENT = 0,   /* the answer */
    GUMBEL_PART_REASONING = 1, /* a thought */
    GUMBEL_PART_TOOL_CALL = 2, /* a call that is whole and well-formed */
    GUMBEL_PART_OTHER = 3      /* a field that the format has besides these; name says which */
} gumbel_part_type;

typedef struct gumbel_reply_options {
    size_t size;
    /* The tools that the model was given, a JSON list as in OpenAI's or Anthropic's API: arguments get the
     * types of their schemas. NULL: they are as the model wrote them, and what has no marks is no call. */
    const char *tools;
    /* What the model replies to, or its end, which shows what the generation prompt has opened or begun: the
     * tokens, or the text where there are none. */
    const int32_t *prompt;
    size_t prompt_count;
    const char *prompt_text;
    size_t prompt_text_length;
    size_t max_call_bytes; /* a longer call is content; 0: 1 MiB */
    bool calls_are_text; /* nothing is taken for a call: the model was given no tools, or a grammar holds the
                          * answer */
    bool reasoning_is_text; /* thoughts are content, with their marks */
} gumbel_reply_options;

/* Begins a reply. options may be NULL; nothing of it is used afterwards. Destroy before the tokenizer. A
 * reply is used by one thread at a time. Errors: ARGUMENT (tools, naming the place; a token), MEMORY. */
GUMBEL_API gumbel_status gumbel_reply_create(const gumbel_tokenizer *tokenizer,
                                             const gumbel_reply_options *options, gumbel_reply **reply,
                                             gumbel_error *error);

/* NULL is allowed. */
GUMBEL_API void gumbel_reply_destroy(gumbel_reply *reply);

/* Adds a token that was generated, or text where there are no tokens, whose characters may be cut. Errors:
 * ARGUMENT (the token is not in the vocabulary, or the reply has ended), LIMIT (64 MiB of text), MEMORY,
 * after which only what was given out counts. */
GUMBEL_API gumbel_status gumbel_reply_add_token(gumbel_reply *reply, int32_t token, gumbel_error *error);
GUMBEL_API gumbel_status gumbel_reply_add_text(gumbel_reply *reply, const char *text, size_t length,
                                               gumbel_error *error);

/* Ends the reply: what was held back is given out. A call whose end is missing counts if it is whole. Errors:
 * as above. */
GUMBEL_API gumbel_status gumbel_reply_end(gumbel_reply *reply, gumbel_error *error);

/* What has become certain of a part. Strings are valid until something is added to the reply. */
typedef struct gumbel_reply_delta {
    size_t size;
    size_t part; /* its number, from 0 in the order of the text: parts are never taken back */
    gumbel_part_type type;
    bool begins;        /* the first of this part */
    int32_t call;       /* TOOL_CALL: its number among the calls; otherwise -1 */
    const char *id;     /* TOOL_CALL: unique; the model's, or made of prompt and reply; otherwise NULL */
    const char *name;   /* TOOL_CALL: of the function; OTHER: of the field; otherwise NULL */
    const char *text;   /* text_length bytes of UTF-8 to append to the part; TOOL_CALL: of its arguments, a */
    size_t text_length; /* JSON object; OTHER: of a JSON value */
    const char *warning; /* why a call has become text, or is odd; NULL: nothing to say */
    /* CONTENT, REASONING: stands before the text where all texts of the type are one, as in
     * gumbel_reply_message; "" but for the beginning of a part that follows another one */
    const char *separator;
} gumbel_reply_delta;

/* Takes the next delta; false: there is none until more is added. delta->size must be set. White space around
 * texts is left out where the format says so. Held back is what may be part of a mark, white space, and a
 * call until its end. */
GUMBEL_API bool gumbel_reply_next(gumbel_reply *reply, gumbel_reply_delta *delta);

/* A part so far. Strings are valid until something is added to the reply. */
typedef struct gumbel_reply_part {
    size_t size;
    gumbel_part_type type;
    int32_t call; /* id, name, text, warning as in gumbel_reply_delta */
    const char *id, *name;
    const char *text;
    size_t text_length;
    const char *raw; /* what the model wrote, with its marks; those of all parts joined are the whole text */
    size_t raw_length;
    const char *warning;
} gumbel_reply_part;

GUMBEL_API size_t gumbel_reply_part_count(const gumbel_reply *reply);

/* part->size must be set. Errors: ARGUMENT (there is no such part). */
GUMBEL_API gumbel_status gumbel_reply_get_part(const gumbel_reply *reply, size_t index,
                                               gumbel_reply_part *part, gumbel_error *error);

/* Writes the parts so far as an assistant's message of OpenAI's API, a JSON object with content,
 * reasoning_content and tool_calls. Texts of several parts are joined by the format's separator. Errors:
 * MEMORY. */
GUMBEL_API gumbel_status gumbel_reply_message(const gumbel_reply *reply, gumbel_write_callback write,
                                              void *user, gumbel_error *error);

/* Replaces the tokenizer's reply format by the JSON description at path (docs/chat.md). Not while
 * another thread uses the tokenizer, or a reply of it lives. Errors: IO, FORMAT, MEMORY. */
GUMBEL_API gumbel_status gumbel_reply_format_load(gumbel_tokenizer *tokenizer, const char *path,
                                                  gumbel_error *error);

/* ---- Engines ------------------------------------------------------------------------------------------- */

typedef struct gumbel_engine gumbel_engine;
typedef struct gumbel_session gumbel_session;

/* Receives what one step of the plan took: its op's name (of the CUDA backend that of its kernel, as
 * gumbel_program_describe_plan gives it), the name of its (first) matrix or NULL, and seconds; of "barrier",
 * what its thread waited for the others. Called in the order of execution by the thread that called
 * gumbel_step. */
typedef void (*gumbel_profile_callback)(void *user, const char *op, const char *weight, double seconds);

/* What a product of a step is about to take in. */
typedef struct gumbel_observation {
    const char *weight;  /* its constant's name, unique in its program: of a head tied to the embedding, the
                            table's */
    const float *inputs; /* [rows, columns], as the graph has them: neither rotated nor rounded */
    size_t rows, columns;
    const int32_t *experts; /* [rows, choices]: the experts that each row goes to; NULL: a product without */
    size_t choices;         /* 0 without experts; 1 where each row of inputs is of one expert */
    unsigned thread, threads; /* the calling thread, of how many: each calls with the same inputs, so that
                                 they can share the work */
} gumbel_observation;

/* Receives what each linear and expert_linear of the graph takes in, before it runs, from every thread that
 * executes the step: several at once. The inputs are valid until it returns. */
typedef void (*gumbel_observe_callback)(void *user, const gumbel_observation *observation);

typedef enum gumbel_lock {
    GUMBEL_LOCK_TOUCHED = 0, /* keep weights in memory once read, as far as the system allows */
    GUMBEL_LOCK_ALL = 1,     /* read and keep all weights now; an error where the system refuses */
    GUMBEL_LOCK_NONE = 2
} gumbel_lock;

/* See below, under Processes. */
typedef struct gumbel_process_group gumbel_process_group;

typedef struct gumbel_engine_options {
    size_t size;
    const char *backend;  /* "cpu" (NULL), "cuda" or "mlx" */
    int threads;          /* CPU threads; 0: one per physical core */
    int slots;            /* sessions that can exist at once; 0: 1 */
    uint32_t max_context; /* positions per session; 0: the program's. May only be smaller */
    uint32_t step_tokens; /* tokens of all sessions in one step; 0: prefill chunk + slots and their drafts */
    const char *cpu_isa;  /* instruction set of the CPU's kernels, one that the machine has: "portable",
                             "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "neon", "neondot" or
                             "neoni8mm"; NULL: the strongest of them */
    gumbel_lock lock;
    bool unfused;            /* run the graph node by node, without fused kernels (for testing) */
    bool snapshots;          /* reserve room for one snapshot per session (gumbel_session_snapshot) */
    gumbel_log_callback log; /* NULL: no notices */
    void *log_user;
    gumbel_profile_callback profile; /* NULL: ops are not timed. The CPU backend's */
    void *profile_user;
    uint32_t draft_tokens; /* draft tokens of one session in a step, at most (gumbel_request); 0: none. There
                              are fewer where the backend, the chunk or memory for states has room for no
                              more, and none on mlx: a notice says so, and gumbel_engine_info how many */
    gumbel_observe_callback observe; /* NULL: none. The CPU backend's; others refuse it */
    void *observe_user;
    uint32_t prefill_chunk; /* tokens of one session in one step, at most: up to max_context, and above 64 a
                               multiple of 64. 0: as the backend likes and has memory for, and at least the
                               program's; with step_tokens just that */
    /* Another program made ready, whose sessions guess tokens for those that gumbel_generate or a scheduler
     * drives here; NULL: none. Of the same vocabulary, with its sampler, on any backend; with snapshots where
     * it has recurrent states. Or the program's draft head, on the backend and the devices of this engine.
     * The caller's: it outlives this engine and is used by the thread that uses this one. A session that
     * drafts keeps one of its slots until it is destroyed; a scheduler lends them. Answers go on without
     * where it has no slot or a shorter context, or fails, which a notice says. */
    gumbel_engine *draft_engine;
    /* Numbers of the backend's devices, read while the engine is made. NULL: the first. With several, up to
     * 16 of one kind, each has a part of the weights and of every session's states, and the answers are those
     * of one (docs/scaling.md). Several of cuda need CUDA_MODULE_LOADING=EAGER in the environment before CUDA
     * is first used. On the cpu each stands for a share of the threads; mlx has one. */
    const int *devices;
    uint32_t device_count;
    /* Products with smaller weights are computed by every device, since gathering their results would take
     * longer; 0: 2,097,152 numbers. Changes no bits. */
    uint64_t least_sharded_weights;
    /* The processes that have a part of the model each, of which this one is rank 0; NULL: it has all of it.
     * Then `devices` is NULL or one device, of this process. The group outlives the engine. */
    gumbel_process_group *process_group;
} gumbel_engine_options;

/* Devices that one engine takes, at most, and counts of them that are looked at: 1, 2, 4, 8, 16. */
enum { GUMBEL_MOST_DEVICES = 16, GUMBEL_MOST_ESTIMATES = 5 };

/* What an engine on so many devices is expected to be like. */
typedef struct gumbel_device_estimate {
    uint32_t devices;
    bool fits;
    uint64_t bytes;      /* that weights and conversations take on each device: one of max_context positions,
                            or slots of 8,192 or fewer, whichever is more */
    uint64_t room_bytes; /* that there are for them on the fullest: free ones, but for a tenth of its memory,
                            which is for a step's values */
    double step_seconds; /* of decoding one sequence; 0: not known */
} gumbel_device_estimate;

typedef struct gumbel_device_advice {
    size_t size;
    uint32_t device_count;            /* 1 .. GUMBEL_MOST_DEVICES */
    int devices[GUMBEL_MOST_DEVICES]; /* their numbers, for gumbel_engine_options */
    uint32_t estimate_count; /* 0: the backend does not tell its devices, and the first one is advised */
    gumbel_device_estimate estimates[GUMBEL_MOST_ESTIMATES]; /* of the counts that the program can be
                                                                sharded over, the smallest first */
} gumbel_device_advice;

/* The fewest devices on which weights and conversations fit, or two where they decode one sequence a tenth
 * faster than one (docs/scaling.md), all of the first one's kind and within each other's reach. Of the
 * engine's options (NULL: defaults) backend, slots, max_context and least_sharded_weights are read. Devices
 * of cuda are used for a moment: not while another thread makes an engine, and with
 * CUDA_MODULE_LOADING=EAGER. Errors: ARGUMENT, UNSUPPORTED (no such backend here), BACKEND (no device),
 * MEMORY (what is needed, what there is). */
GUMBEL_API gumbel_status gumbel_advise_devices(const gumbel_program *program,
                                               const gumbel_engine_options *options,
                                               gumbel_device_advice *advice, gumbel_error *error);

/* Prepares a program for running: reserves caches and scratch, starts the threads. options may be NULL. The
 * program must outlive the engine. Errors: ARGUMENT, UNSUPPORTED (no such backend in this build), MEMORY. */
GUMBEL_API gumbel_status gumbel_engine_create(const gumbel_program *program,
                                              const gumbel_engine_options *options, gumbel_engine **engine,
                                              gumbel_error *error);

/* Ends the engine and all its sessions. NULL is allowed. */
GUMBEL_API void gumbel_engine_destroy(gumbel_engine *engine);

/* Writes one line per backend: its name, and what this build and machine have of it. */
GUMBEL_API void gumbel_describe_backends(gumbel_write_callback write, void *user);

/* What this engine is: "cpu avx512 2 threads, 257 tokens a step". Lives as long as the engine. */
GUMBEL_API const char *gumbel_engine_description(const gumbel_engine *engine);

/* What the options of an engine have become, with every default filled in. */
typedef struct gumbel_engine_info {
    size_t size;
    uint32_t slots;         /* sessions that can exist at once */
    uint32_t max_context;   /* positions per session */
    uint32_t step_tokens;   /* tokens of all sessions in one step, at most */
    uint32_t prefill_chunk; /* of these, tokens of one session, at most */
    uint32_t draft_tokens;  /* of these, draft tokens of one session, at most */
    bool snapshots;         /* sessions can take snapshots */
    const char *backend;    /* "cpu", "cuda" or "mlx" */
    uint32_t threads;       /* of the CPU that compute; 0: the backend computes elsewhere */
} gumbel_engine_info;

/* Errors: ARGUMENT. */
GUMBEL_API gumbel_status gumbel_engine_get_info(const gumbel_engine *engine, gumbel_engine_info *info,
                                                gumbel_error *error);

/* What conversations of one length take: the caches up to there, what rings hold and recurrent states. */
typedef struct gumbel_conversation_memory {
    size_t size;
    uint32_t tokens;
    uint64_t bytes;    /* of one conversation */
    uint64_t sessions; /* that have room: in what the device has left, or in the machine's memory beside the
                          weights. UINT64_MAX: not known */
} gumbel_conversation_memory;

/* Those of 1,024, 8,192 and 32,768 tokens by index, from 0, as far as the engine's context goes. False past
 * the last one, and for a program without states. */
GUMBEL_API bool gumbel_engine_conversation_memory(const gumbel_engine *engine, size_t index,
                                                  gumbel_conversation_memory *memory);

/* What bounds the speed of every program on a machine. */
typedef struct gumbel_machine_limits {
    size_t size;
    double read_bytes_per_second;    /* of memory far larger than the caches */
    double int8_products_per_second; /* 8-bit multiplications added up in registers; 0: not known */
} gumbel_machine_limits;

/* Measures them, in about a third of a second, with the engine's own threads and instruction set. Takes 512
 * MB of memory until it returns. Errors: UNSUPPORTED (the backend cannot), MEMORY. */
GUMBEL_API gumbel_status gumbel_engine_measure_limits(gumbel_engine *engine, gumbel_machine_limits *limits,
                                                      gumbel_error *error);

/* ---- Processes ----------------------------------------------------------------------------------------- */

/* One model over several processes that mpirun, srun or torchrun has started: each has a GPU of one host, or
 * some CPUs of any, with a part of the weights and of every session's states, and the answers are those of
 * one. The process of rank 0 makes engines with the group, up to 16, and uses them like any other, but that
 * their steps may allocate memory; those of the other ranks open the same program and follow it. Once a rank
 * has failed, or an engine could not be made, all engines of the group fail. (docs/scaling.md) */

typedef struct gumbel_process_group_info {
    size_t size;
    uint32_t rank, count;
    uint32_t local_rank; /* among the processes of this host: usually the number of the device */
} gumbel_process_group_info;

/* Connects the processes of a launch, which all call it, within so many seconds; 0: 300. Which rank this one
 * is and where rank 0 is found is read from the launcher's variables; getenv must be safe meanwhile. On one
 * host processes of the same user meet at a socket in TMPDIR, on several at MASTER_ADDR and MASTER_PORT, with
 * neither encryption nor keys: a network for these processes alone. Errors: ARGUMENT (no launcher), IO (who
 * has not come), UNSUPPORTED (other versions), MEMORY. */
GUMBEL_API gumbel_status gumbel_process_group_join(uint32_t seconds, gumbel_process_group **group,
                                                   gumbel_error *error);

/* Errors: ARGUMENT. */
GUMBEL_API gumbel_status gumbel_process_group_get_info(const gumbel_process_group *group,
                                                       gumbel_process_group_info *info, gumbel_error *error);

/* Of a rank other than 0: does its part of all that engines of rank 0 do with this program or its draft head,
 * and returns when that has left the group. Of the options it takes backend, devices (one), threads, cpu_isa
 * and lock; the rest are rank 0's. Errors: ARGUMENT, UNSUPPORTED; why ranks can go on no more, which rank 0's
 * engines fail with, too: BACKEND where a rank has failed, or has not been heard of for some seconds. */
GUMBEL_API gumbel_status gumbel_process_group_follow(gumbel_process_group *group,
                                                     const gumbel_program *program,
                                                     const gumbel_engine_options *options,
                                                     gumbel_error *error);

/* Calls back once ranks can go on no more, also while nobody uses an engine: on any thread, once, and at once
 * if that is so already. It notes that and calls nothing of the group or its engines. NULL: it calls no more.
 */
GUMBEL_API void gumbel_process_group_on_failure(gumbel_process_group *group,
                                                void (*on_failure)(void *user, const gumbel_error *error),
                                                void *user);

/* Of rank 0 after its engines are destroyed, and lets the others return; of the others when they have. NULL
 * is allowed. */
GUMBEL_API void gumbel_process_group_leave(gumbel_process_group *group);

/* ---- Sessions ------------------------------------------------------------------------------------------ */

/* Takes a free slot, empty, at position 0, without a seed. Errors: LIMIT when all slots are taken. */
GUMBEL_API gumbel_status gumbel_session_create(gumbel_engine *engine, gumbel_session **session,
                                               gumbel_error *error);

/* Gives the slot back. NULL is allowed. */
GUMBEL_API void gumbel_session_destroy(gumbel_session *session);

/* Empties the session: position 0, no snapshot. The seed and its counter stay. */
GUMBEL_API void gumbel_session_reset(gumbel_session *session);

/* Tokens that the session was given, and which. tokens (may be NULL) stays valid until the session is
 * destroyed; its content changes as the session goes on. */
GUMBEL_API uint32_t gumbel_session_position(const gumbel_session *session, const int32_t **tokens);

/* Runs tokens without asking for a next one, in as many steps as it takes; a token that was generated but not
 * yet run is run first. Where a backend computes prompts in blocks of tokens, those that fill none may wait
 * for what follows: a cut changes no bits. On an error the session keeps the tokens of the steps that
 * succeeded. Errors: ARGUMENT (not in the vocabulary), LIMIT (context full), CANCELLED. */
GUMBEL_API gumbel_status gumbel_session_append(gumbel_session *session, const int32_t *tokens, size_t count,
                                               gumbel_error *error);

/* Goes back to position, as if the later tokens had never been run; a later prefill gives the same bits as a
 * fresh one. Truncates in place where the state can, which every state can within the draft of the session's
 * last step; otherwise restores the snapshot or starts over and runs the tokens up to position again. Errors:
 * ARGUMENT when position is ahead of the session. */
GUMBEL_API gumbel_status gumbel_session_rewind(gumbel_session *session, uint32_t position,
                                               gumbel_error *error);

/* Remembers the state at this position for gumbel_session_rewind, in place of an earlier snapshot. The
 * engine needs the option snapshots, otherwise UNSUPPORTED. */
GUMBEL_API gumbel_status gumbel_session_snapshot(gumbel_session *session, gumbel_error *error);

/* A second session in the same state: tokens, caches, seed and counter. Errors: LIMIT when no slot is free.
 */
GUMBEL_API gumbel_status gumbel_session_fork(const gumbel_session *session, gumbel_session **copy,
                                             gumbel_error *error);

/* Writes the session to a file, or reads one that was written from the same program (with any number of
 * slots and threads). The file carries a checksum; one of another program is refused. Errors: ARGUMENT (see
 * the conventions on what a path may be), IO; of reading also FORMAT, UNSUPPORTED, LIMIT. */
GUMBEL_API gumbel_status gumbel_session_save(const gumbel_session *session, const char *path,
                                             gumbel_error *error);
GUMBEL_API gumbel_status gumbel_session_load(gumbel_session *session, const char *path, gumbel_error *error);

/* The i-th token generated since this call is drawn with seed + i (mod 2^64), i from 0. */
GUMBEL_API void gumbel_session_set_seed(gumbel_session *session, uint64_t seed);

/* The seed of the next token. Where no seed was set, one is drawn from the system first. */
GUMBEL_API gumbel_status gumbel_session_get_seed(gumbel_session *session, uint64_t *seed,
                                                 gumbel_error *error);

/* Makes the running or next append or gumbel_next of this session end with CANCELLED at the next step
 * boundary. May be called from another thread or a signal handler. */
GUMBEL_API void gumbel_session_cancel(gumbel_session *session);

/* ---- Steps --------------------------------------------------------------------------------------------- */

typedef enum gumbel_finish {
    GUMBEL_FINISH_NONE = 0,       /* goes on */
    GUMBEL_FINISH_STOP = 1,       /* the token is one of the program's stop tokens */
    GUMBEL_FINISH_LENGTH = 2,     /* max_new_tokens reached */
    GUMBEL_FINISH_CONTEXT = 3,    /* the context is full: the token cannot be run */
    GUMBEL_FINISH_STOP_STRING = 4 /* the token completes a stop string; gumbel_next alone */
} gumbel_finish;

/* What a step gives for a row of its batch. Pointers are valid until the engine's next step. */
typedef struct gumbel_result {
    size_t size;
    int32_t token;               /* the sampled id; -1: the program has no sampler */
    gumbel_finish finish;        /* NONE, STOP or CONTEXT */
    uint64_t seed;               /* the seed that the token was drawn with; 0 when greedy */
    const gumbel_sampling *used; /* the settings that it was drawn with */
    const float *logits;         /* the row [vocab_size]; NULL where the backend does not give it */
    float logprob;               /* of token, where it is wanted; else 0 */
    uint32_t top_logprobs;       /* entries of the next two */
    const int32_t *top_tokens;   /* the likeliest tokens, the likeliest first; NULL: none were wanted */
    const float *top_token_logprob;
    gumbel_status status; /* OK, or NUMERIC: the row has no token, which is -1 */
    const char *problem;  /* then a sentence that says why, which lives as long as the library; else NULL */
    uint32_t accepted;    /* of a request's first result: draft tokens that were accepted and have been run */
} gumbel_result;

/* One session's part of a step. Log-probabilities are of the softmax of the program's logits, before biases,
 * penalties, the mask and temperature. */
typedef struct gumbel_request {
    size_t size;                     /* the same in all requests of a step */
    gumbel_session *session;         /* each session at most once per step */
    const int32_t *tokens;           /* run after the session's position */
    size_t token_count;              /* 1 .. the engine's prefill_chunk, of which those that wait for the rest
                                        of their block take some (gumbel_session_append) */
    gumbel_result *result;           /* gets the successor of the last token; NULL: it is not wanted */
    const gumbel_sampling *sampling; /* NULL: gumbel_sampling_defaults of the program */
    bool wants_logprob;              /* give the token's log-probability */
    uint32_t top_logprobs;           /* and of that many likeliest tokens; at most max_top_logprobs */
    /* The tokens that may be drawn: token i if bit i % 32 of word i / 32 is 1, of (vocab_size + 31) / 32
     * words that are read during the call, and so for each row of a draft; NULL: every token. */
    const uint32_t *mask;
    const int32_t *draft; /* guesses of the tokens that follow; NULL: none */
    size_t draft_count;   /* 0 .. the engine's draft_tokens; token_count + draft_count is at most
                             prefill_chunk */
} gumbel_request;

/* Runs one step: requests of any mix of prefill and decode, each row with its own settings. A row's result
 * does not depend on the other rows, and its error is its request's: with NUMERIC, which names the first such
 * request, all tokens have been run and every result is written, and result.status says which rows have no
 * token. On any other error no session has moved and no result is written: ARGUMENT (naming the request and
 * the field), LIMIT (context, step_tokens), MEMORY (the device's), BACKEND.
 *
 * A request with a draft has draft_count + 1 rows, and result is an array of as many, each with its size set.
 * Row r is drawn behind draft token r - 1 with the seed of the r-th token from here, and is the row that a
 * step of its own would have had: its token, log-probabilities, penalties and finish. The draft is accepted
 * up to the first row whose token is another one than the draft's or a stop token of the program. The
 * accepted tokens have been run; accepted + 1 results are written, of which the last one's token has not. The
 * rest of the draft is as if never run. Such a request has one token, and that continues an answer: a result
 * was drawn just before it. */
GUMBEL_API gumbel_status gumbel_step(gumbel_engine *engine, const gumbel_request *requests, size_t count,
                                     gumbel_error *error);

/* Draws a token from a row of float32 logits on the host, by the same code and contract as the program's
 * own sampler. There is no session whose tokens could be counted: penalties are refused. *token is written on
 * success. Takes a temporary buffer of one float per logit, two with biases. Thread-safe. Errors: ARGUMENT,
 * NUMERIC, MEMORY. */
GUMBEL_API gumbel_status gumbel_sample(const float *logits, size_t vocab_size,
                                       const gumbel_sampling *sampling, uint64_t seed, int32_t *token,
                                       gumbel_error *error);

/* ---- Grammars ------------------------------------------------------------------------------------------ */

/* What an answer has to be: the texts that a JSON Schema, a regular expression, a grammar or a list allows,
 * as masks of a tokenizer's tokens. Immutable: any number of threads and answers may use one.
 * docs/grammars.md says what is honoured and what is refused. */
typedef struct gumbel_grammar gumbel_grammar;

typedef enum gumbel_grammar_kind {
    GUMBEL_GRAMMAR_JSON = 1,        /* any JSON object */
    GUMBEL_GRAMMAR_JSON_SCHEMA = 2, /* JSON Schema, drafts 4 to 2020-12 */
    GUMBEL_GRAMMAR_REGEX = 3,       /* a regular expression that the whole answer matches */
    GUMBEL_GRAMMAR_GBNF = 4,        /* a grammar as llama.cpp has them, from its rule root on */
    GUMBEL_GRAMMAR_CHOICES = 5,     /* one of a JSON array of strings */
    GUMBEL_GRAMMAR_TEXT = 6         /* any text; of answers with tools */
} gumbel_grammar_kind;

/* Whether an answer calls tools. Where a call is the whole reply, as Llama 3's and those without marks are
 * (docs/chat.md), there is at most one, in place of a text. */
typedef enum gumbel_tool_choice {
    GUMBEL_TOOLS_AUTO = 0,     /* it may: of any text, anywhere in it; otherwise instead of the text */
    GUMBEL_TOOLS_REQUIRED = 1, /* it is calls alone */
    GUMBEL_TOOLS_NONE = 2      /* it has no calls */
} gumbel_tool_choice;

typedef struct gumbel_grammar_options {
    size_t size;
    gumbel_grammar_kind kind;
    const char *text; /* UTF-8; NULL for GUMBEL_GRAMMAR_JSON and GUMBEL_GRAMMAR_TEXT */
    bool in_order;    /* of JSON: members stand in the order of the schema's properties; otherwise in any */
    bool compact; /* of JSON: no white space between tokens; otherwise it is as the model likes, within limits
                   */
    bool strict;  /* of schemas: keywords and formats that are not known are an error; otherwise they ask
                     nothing, and a notice lists them. Those of a tool whose "strict" is true always are */
    gumbel_log_callback log; /* NULL: no notices */
    void *log_user;
    /* Tools that the answer may call, as in gumbel_chat_options: a call is written as the tokenizer's reply
     * format says, has one of their names, and arguments by that tool's schema. What a schema asks and cannot
     * be had is an error where the tool's "strict" is true, and else left out. NULL: no tools. */
    const char *tools;
    gumbel_tool_choice tool_choice;
    const char *tool_name; /* the answer is one call of this tool; NULL: of any */
    bool single_call;      /* at most one call */
    double max_seconds;    /* that compiling may take; 0: 10 */
    /* Asked every few milliseconds by the thread that compiles; true ends that with CANCELLED. NULL: nothing
     * does. */
    bool (*is_cancelled)(void *user);
    void *user;
} gumbel_grammar_options;

/* Compiles a grammar for a tokenizer's tokens; the tokenizer must live until the grammar is destroyed. The
 * first one for a tokenizer takes longer, since its tokens are sorted. Thread-safe. Errors: ARGUMENT, FORMAT
 * (what is wrong with the text, and where), UNSUPPORTED (what a schema or an expression asks and cannot be
 * had, by its name), LIMIT (too large, or longer than max_seconds: the message says which), CANCELLED
 * (is_cancelled), MEMORY. */
GUMBEL_API gumbel_status gumbel_grammar_create(const gumbel_tokenizer *tokenizer,
                                               const gumbel_grammar_options *options,
                                               gumbel_grammar **grammar, gumbel_error *error);

/* NULL is allowed. Answers that still follow the grammar keep what they need of it. */
GUMBEL_API void gumbel_grammar_destroy(gumbel_grammar *grammar);

/* Where one answer stands in a grammar, for callers of gumbel_step; gumbel_generate and the scheduler have
 * their own. One thread at a time. */
typedef struct gumbel_matcher gumbel_matcher;

/* At the beginning of an answer. end_tokens [count] are those that end it, allowed where the grammar may end;
 * NULL with 0: none. Destroy before the tokenizer. Errors: ARGUMENT, MEMORY. */
GUMBEL_API gumbel_status gumbel_matcher_create(const gumbel_grammar *grammar, const int32_t *end_tokens,
                                               size_t count, gumbel_matcher **matcher, gumbel_error *error);
GUMBEL_API gumbel_status gumbel_matcher_clone(const gumbel_matcher *matcher, gumbel_matcher **clone,
                                              gumbel_error *error);

/* NULL is allowed. */
GUMBEL_API void gumbel_matcher_destroy(gumbel_matcher *matcher);

/* Writes the mask of the next token, for gumbel_request: (vocab_size + 31) / 32 words, of which the last
 * tokens' may be padding. Errors: ARGUMENT (word_count is less than the tokenizer's), LIMIT (too ambiguous),
 * MEMORY. */
GUMBEL_API gumbel_status gumbel_matcher_mask(gumbel_matcher *matcher, uint32_t *words, size_t word_count,
                                             gumbel_error *error);

/* Goes on behind a token. Errors, after which nothing has changed: ARGUMENT (the grammar does not allow it
 * here, and what it does allow), LIMIT, MEMORY. */
GUMBEL_API gumbel_status gumbel_matcher_accept(gumbel_matcher *matcher, int32_t token, gumbel_error *error);

/* Goes back by count of the tokens accepted last, up to 1,024. Errors: ARGUMENT. */
GUMBEL_API gumbel_status gumbel_matcher_rollback(gumbel_matcher *matcher, size_t count, gumbel_error *error);

/* The one token that is allowed, or -1: several are. */
GUMBEL_API int32_t gumbel_matcher_forced(gumbel_matcher *matcher);

/* Whether the answer may end here. */
GUMBEL_API bool gumbel_matcher_may_end(const gumbel_matcher *matcher);

/* ---- Generation ---------------------------------------------------------------------------------------- */

/* Who guesses an answer's next tokens, so that one step verifies several. Drafts change no token, only the
 * time: each draft token is compared with the one that is drawn in its place. They need an engine with
 * draft_tokens. */
typedef enum gumbel_drafting {
    GUMBEL_DRAFTING_AUTO = 0,   /* the best that there is, as long as it pays */
    GUMBEL_DRAFTING_OFF = 1,    /* nobody */
    GUMBEL_DRAFTING_LOOKUP = 2, /* what followed the last tokens before, in the prompt, the answer or what is
                                   predicted; and what a grammar forces */
    GUMBEL_DRAFTING_MODEL = 3   /* the engine's draft_engine, without which it is an ARGUMENT error; and what
                                   a grammar forces */
} gumbel_drafting;

/* What became of drafts. */
enum { GUMBEL_DRAFT_PLACES = 16 };
typedef struct gumbel_draft_stats {
    size_t size;
    uint64_t steps;    /* that had a draft */
    uint64_t proposed; /* draft tokens */
    uint64_t accepted; /* of these; each saved a step */
    /* By place in the draft, of which the last stands for all behind it: tokens behind accepted ones, and how
     * many of them were accepted too. */
    uint64_t tried_at[GUMBEL_DRAFT_PLACES], accepted_at[GUMBEL_DRAFT_PLACES];
} gumbel_draft_stats;

typedef struct gumbel_generate_options {
    size_t size;
    const gumbel_sampling *sampling; /* NULL: gumbel_sampling_defaults of the program. Copied, biases too */
    uint32_t max_new_tokens;         /* 0: until a stop token or the end of the context */
    uint32_t top_logprobs;           /* give the log-probabilities of that many likeliest tokens */
    bool wants_logprob;              /* give each token's log-probability */
    bool ignore_stop;                /* stop tokens are ordinary tokens */
    bool snapshot;                   /* snapshot before the prompt's last token, for regenerating */
    /* Text, where there is a tokenizer: the program's own, which must live until the generation ends. */
    const gumbel_tokenizer *tokenizer; /* NULL: tokens alone */
    bool show_special;                 /* special tokens are written out; otherwise they give no text */
    bool include_stop_string;          /* the text ends with the stop string, otherwise before it */
    const char *const *stop_strings;   /* [stop_string_count] as in gumbel_detokenizer_stop_at; copied */
    size_t stop_string_count;
    bool stop_in_answer; /* stop strings hold for the answer alone, see gumbel_detokenizer_stop_in_answer */
    /* What the answer is held to, up to a stop token; NULL: nothing. Where the tokenizer's replies have
     * reasoning and the prompt has opened it, from its end on; with reasons also where the answer itself
     * opens it. */
    const gumbel_grammar *grammar;
    bool reasons; /* the answer may begin with reasoning; of answers with a grammar */
    /* After so many tokens of reasoning the token that closes it is the only one that may be drawn; needs a
     * tokenizer or a grammar to find it by. */
    bool has_reasoning_budget; /* false: there is no limit */
    uint32_t reasoning_budget;
    /* The answer's first tokens, which are given, not drawn: a mask leaves nothing else. No stop token among
     * them ends the answer; a stop string and max_new_tokens do. So a text is scored: its first token is the
     * prompt, the others are forced, and wants_logprob tells what the model thinks of each. Copied; needs the
     * program's mask, and no grammar. */
    const int32_t *forced_tokens; /* [forced_count] */
    size_t forced_count;
    gumbel_drafting drafting; /* of an engine with draft_tokens */
    uint32_t max_draft;       /* tokens of one draft, at most; 0: draft_tokens */
    /* What the answer is likely to contain, such as the text that it edits: drafts are taken from it. Copied.
     */
    const int32_t *predicted_tokens; /* [predicted_count] */
    size_t predicted_count;
    /* For measuring what a draft model would save: predicted_tokens are then the answer itself, and of 100
     * guesses of the model whose turn comes so many (at most 100) are made right after they were drawn, the
     * others wrong. Otherwise than with GUMBEL_DRAFTING_MODEL and predicted tokens: ARGUMENT. */
    bool has_draft_acceptance;
    uint32_t draft_acceptance;
} gumbel_generate_options;

/* Begins to generate after the given prompt tokens (copied; at least 1 unless the session has a token that
 * was generated but not yet run: such a token is run first). Runs nothing yet. With a tokenizer it allocates
 * what gumbel_next needs for the text, which the session keeps until the next gumbel_generate. Errors, which
 * leave the session as it was: ARGUMENT, LIMIT, MEMORY. */
GUMBEL_API gumbel_status gumbel_generate(gumbel_session *session, const int32_t *tokens, size_t count,
                                         const gumbel_generate_options *options, gumbel_error *error);

typedef struct gumbel_generated {
    size_t size;
    int32_t token;        /* also given when it is a stop token */
    gumbel_finish finish; /* not NONE: this was the last token */
    uint64_t seed;        /* the seed that this token was drawn with; 0 when greedy */
    float logprob;        /* as in gumbel_result, where the options want them */
    uint32_t top_logprobs;
    const int32_t *top_tokens;
    const float *top_token_logprob;
    /* The characters that are now certain, maybe none: text_length bytes of UTF-8, valid until the session's
     * next call. Held back are parts of a character and what may be the beginning of a stop string; at the
     * last token nothing is. NULL without a tokenizer. */
    const char *text;
    size_t text_length;
    int32_t stop_string; /* finish STOP_STRING: its index in the options; otherwise -1 */
} gumbel_generated;

/* Computes the next token: the first call runs the prompt, later ones one step each, or none where the step
 * before has drawn several by a draft. Whatever is done with the session then, it stands where the tokens
 * have been given to. After a finish, an
 * error or a cancel, gumbel_generate begins anew. However it finished, the session holds all tokens but the
 * last one, which is run before what comes next: a stop string that was not shown is in the session too.
 * Errors: CANCELLED, NUMERIC, ARGUMENT (nothing begun). With an error text is what was held back, so that the
 * text of the tokens until then is whole; the rest is unchanged. */
GUMBEL_API gumbel_status gumbel_next(gumbel_session *session, gumbel_generated *generated,
                                     gumbel_error *error);

/* What drafts did since the last gumbel_generate of the session: all zero where it had none. Errors:
 * ARGUMENT. */
GUMBEL_API gumbel_status gumbel_session_draft_stats(const gumbel_session *session, gumbel_draft_stats *stats,
                                                    gumbel_error *error);

/* ---- Turns --------------------------------------------------------------------------------------------- */

/* A conversation as it goes on: messages in, for each turn the tokens to run, the reply as parts, which
 * becomes a message. Each turn is rendered whole; a session keeps the tokens that it holds of it. Replies
 * stand in the history in the tokens that they were generated in, wherever the template writes their text, so
 * that they are not run again. What a template leaves out of earlier replies, such as thoughts, is left out
 * (docs/chat.md).
 *
 *     gumbel_conversation_add(conversation, &message, 1, &error);
 *     gumbel_conversation_prefill(conversation, session, &turn, &error);
 *     gumbel_generate(session, turn.tokens + turn.begin, turn.count - turn.begin, &options, &error);
 *     while (!next.finish) {
 *         gumbel_next(session, &next, &error);
 *         gumbel_conversation_add_generated(conversation, &next, &error);
 *         while (gumbel_reply_next(gumbel_conversation_reply(conversation), &delta)) ...
 *     }
 *
 * A conversation is used by one thread at a time. */
typedef struct gumbel_conversation gumbel_conversation;

/* One without messages. Destroy before the tokenizer. Errors: MEMORY. */
GUMBEL_API gumbel_status gumbel_conversation_create(const gumbel_tokenizer *tokenizer,
                                                    gumbel_conversation **conversation, gumbel_error *error);

/* NULL is allowed. */
GUMBEL_API void gumbel_conversation_destroy(gumbel_conversation *conversation);

/* How it is rendered from the next turn on: tools, thinking, template; NULL: as at the start. Copied. What is
 * wrong with the texts shows at the next turn. Errors, which change nothing: ARGUMENT (messages_json,
 * no_generation_prompt or continue_final_message is set), MEMORY. */
GUMBEL_API gumbel_status gumbel_conversation_set_chat(gumbel_conversation *conversation,
                                                      const gumbel_chat_options *chat, gumbel_error *error);

/* Adds messages of any role, as structures or as a JSON array; all are copied. Errors, which add none:
 * ARGUMENT (a message, naming its index and field; a reply goes on), FORMAT (JSON), MEMORY. */
GUMBEL_API gumbel_status gumbel_conversation_add(gumbel_conversation *conversation,
                                                 const gumbel_message *messages, size_t count,
                                                 gumbel_error *error);
GUMBEL_API gumbel_status gumbel_conversation_add_json(gumbel_conversation *conversation, const char *json,
                                                      gumbel_error *error);

/* Messages so far, replies included. */
GUMBEL_API size_t gumbel_conversation_count(const gumbel_conversation *conversation);

/* Keeps the first count messages; a reply that goes on is dropped. 0 also forgets the tokens of replies. */
GUMBEL_API void gumbel_conversation_truncate(gumbel_conversation *conversation, size_t count);

/* Writes the messages as a JSON array, which gumbel_conversation_add_json takes. Errors: MEMORY. */
GUMBEL_API gumbel_status gumbel_conversation_write(const gumbel_conversation *conversation,
                                                   gumbel_write_callback write, void *user,
                                                   gumbel_error *error);

/* The prompt of a turn. tokens are the conversation's, valid until its next call. */
typedef struct gumbel_turn {
    size_t size;
    const int32_t *tokens; /* [count], at least 1 */
    size_t count;
    size_t held;   /* the first ones that are held already; at most count - 1 */
    size_t stable; /* the first ones that the turn after the next user's message will begin with, too: a place
                      for a snapshot, or a branch position; at most count - 1 */
    size_t begin;  /* of a prefill: the session's position, behind which tokens are left to run */
} gumbel_turn;

/* Makes the prompt and begins a reply to it; one that went on is dropped. held (may be NULL with 0) are the
 * tokens that were run: a session's, or nothing for a scheduler, which finds its own. turn->size must be set.
 * Errors, which leave the last reply: those of gumbel_chat_encode and gumbel_reply_create. */
GUMBEL_API gumbel_status gumbel_conversation_prompt(gumbel_conversation *conversation, const int32_t *held,
                                                    size_t held_count, gumbel_turn *turn,
                                                    gumbel_error *error);

/* The same for a session: takes it back to what it holds of the prompt, runs the tokens up to turn->stable
 * and takes a snapshot there if the engine can. What is left, from turn->begin on, is for gumbel_generate.
 * After an error the session holds some part of the prompt, with which the next turn goes on. Errors: LIMIT
 * (the context), CANCELLED, and those of the prompt and of running. */
GUMBEL_API gumbel_status gumbel_conversation_prefill(gumbel_conversation *conversation,
                                                     gumbel_session *session, gumbel_turn *turn,
                                                     gumbel_error *error);

/* Adds a token that was generated; of the structure token, finish, text and text_length count. The text,
 * where there is one, must be without special tokens: what a stop string may take back waits, and is left
 * out. With a finish the reply ends and becomes a message. Errors: ARGUMENT (no reply goes on; a token), and
 * those of gumbel_reply_add_token and gumbel_conversation_add. */
GUMBEL_API gumbel_status gumbel_conversation_add_generated(gumbel_conversation *conversation,
                                                           const gumbel_generated *generated,
                                                           gumbel_error *error);

/* Ends a reply that nothing has finished: what there is of it becomes a message. Errors, after which there is
 * none and the reply has ended: as above. */
GUMBEL_API gumbel_status gumbel_conversation_end_reply(gumbel_conversation *conversation,
                                                       gumbel_error *error);

/* The reply to the last prompt, for gumbel_reply_next and its parts; NULL before the first. It belongs to the
 * conversation and is valid until the next prompt. */
GUMBEL_API gumbel_reply *gumbel_conversation_reply(gumbel_conversation *conversation);

/* ---- Many at once -------------------------------------------------------------------------------------- */

/* Answers the requests of any number of threads on one engine, which a thread of the scheduler's own drives:
 * every step continues all answers, and what is left of its tokens goes to prompts. Requests wait in a queue
 * for a slot. States of finished sequences are kept while nobody needs their memory, so that a prompt which
 * begins like them is not run again. On the CPU an answer has the tokens that it has alone in a fresh
 * session, whoever is served beside it and whatever was kept; see docs/scheduler.md for other backends. */
typedef struct gumbel_scheduler gumbel_scheduler;

typedef struct gumbel_scheduler_options {
    size_t size;
    uint32_t max_queued;     /* answers that wait for their first slot, at most; 0: 1024 */
    uint32_t answer_reserve; /* tokens of an answer that must have memory for it to begin; 0: 1024 */
    uint64_t state_bytes;    /* states of all sequences in slots, at most, and at least those of one full
                                context; 0: what fits into the slots. Beyond it, the youngest answer of
                                the lowest priority waits in host memory */
    uint64_t host_bytes;     /* host memory for states that are kept for later prompts; 0: 1 GiB */
    bool no_prefix_cache;    /* keep no states of finished sequences, and begin with nobody's */
    /* Called once, by the scheduler's thread, when the engine's backend has failed so that no step succeeds
     * any more; all answers end with that error. It must not call the scheduler. NULL is allowed. */
    void (*on_failure)(void *user, const gumbel_error *error);
    void *failure_user;
} gumbel_scheduler_options;

typedef enum gumbel_event_type {
    GUMBEL_EVENT_TOKEN = 1,
    GUMBEL_EVENT_FINISH = 2, /* the answer's last event: it is whole */
    GUMBEL_EVENT_ERROR = 3   /* the answer's last event: it is not */
} gumbel_event_type;

/* What an answer took. Seconds are 0 where it did not come so far. */
typedef struct gumbel_usage {
    size_t size;
    uint32_t prompt_tokens;
    uint32_t cached_tokens; /* of these, not run, since their states were kept */
    uint32_t generated_tokens;
    double queue_seconds;     /* until it had a slot */
    double prompt_seconds;    /* from there to the first token */
    double answer_seconds;    /* from there to the last event */
    uint64_t seed;            /* the answer's: its token i was drawn with seed + i */
    uint64_t draft_tokens;    /* that were verified */
    uint64_t accepted_tokens; /* of these; each saved a step */
} gumbel_usage;

/* Pointers are valid during the callback. */
typedef struct gumbel_event {
    size_t size;
    gumbel_event_type type;
    uint32_t answer;  /* which of the request's answers, from 0 on */
    uint64_t request; /* its number, as gumbel_scheduler_submit gave it */
    /* Characters that are now certain, as in gumbel_generated; with an ERROR those that were held back. NULL
     * without a tokenizer. */
    const char *text;
    size_t text_length;
    /* TOKEN, as in gumbel_generated */
    int32_t token;
    uint32_t top_logprobs;
    uint64_t seed;
    const int32_t *top_tokens;
    const float *top_token_logprob;
    float logprob;
    gumbel_finish finish;      /* FINISH: why */
    int32_t stop_string;       /* FINISH for STOP_STRING: its index; otherwise -1 */
    gumbel_status status;      /* ERROR: CANCELLED, DEADLINE, NUMERIC, MEMORY or BACKEND */
    const char *message;       /* ERROR: a sentence */
    const gumbel_usage *usage; /* FINISH, ERROR */
    const int32_t *prompt;     /* [prompt_count] its tokens: what a gumbel_reply begins with */
    size_t prompt_count;
} gumbel_event;

/* Called by the scheduler's thread, one call at a time, between steps: what it does delays every answer. It
 * may submit and cancel, but neither drain nor destroy. */
typedef void (*gumbel_event_callback)(void *user, const gumbel_event *event);

/* A request. Everything is copied but the tokenizer, which must live until the last event. */
typedef struct gumbel_submission {
    size_t size;
    const int32_t *tokens; /* the prompt; NULL: a conversation is */
    size_t token_count;    /* 1 .. max_context */
    gumbel_event_callback callback;
    void *user;
    const gumbel_sampling *sampling; /* NULL: gumbel_sampling_defaults of the program */
    bool has_seed;                   /* false: one is drawn; the TOKEN events tell it */
    bool wants_logprob, ignore_stop; /* as in gumbel_generate_options, like the next */
    bool show_special, include_stop_string, stop_in_answer;
    bool no_prefix_cache; /* begins with nobody's states, and leaves none */
    uint64_t seed;    /* token i of answer 0 is drawn with seed + i, of another with gumbel_answer_seed + i */
    uint32_t answers; /* so many to the one prompt; 0: 1 */
    uint32_t top_logprobs;
    uint32_t max_new_tokens;           /* 0: until a stop token or the end of the context */
    uint32_t min_new_tokens;           /* stop tokens are banned in the first ones, by biases */
    const gumbel_tokenizer *tokenizer; /* for text and stop strings; NULL: tokens alone */
    const char *const *stop_strings;
    size_t stop_string_count;
    const int32_t *stop_tokens; /* beside the program's own, and also with ignore_stop */
    size_t stop_token_count;
    /* Positions of the prompt behind which others may go on otherwise: after system message and tools, before
     * the last message. Where a state cannot be cut, it is kept for them. */
    const uint32_t *branch_positions;
    size_t branch_position_count;
    int32_t priority;        /* higher ones go first, in the queue and with their prompts */
    double deadline_seconds; /* from now, after which the answer ends with DEADLINE; 0: none */
    /* A conversation in place of tokens, encoded by the tokenizer as gumbel_chat_encode does. Its branch
     * positions are found: behind system messages and tools, and before the generation prompt. */
    const gumbel_message *messages; /* NULL: those of chat's messages_json, or none */
    size_t message_count;
    const gumbel_chat_options *chat; /* NULL: the defaults */
    const gumbel_grammar *grammar;   /* as in gumbel_generate_options; may be destroyed afterwards */
    bool reasons;
    bool has_reasoning_budget; /* as in gumbel_generate_options, like the next three */
    uint32_t reasoning_budget;
    const int32_t *forced_tokens;
    size_t forced_count;
    gumbel_drafting drafting; /* as in gumbel_generate_options, like the next three */
    uint32_t max_draft;
    const int32_t *predicted_tokens;
    size_t predicted_count;
} gumbel_submission;

/* The seed of answer number `answer` of several to one prompt: seed itself for the first, and for others a
 * hash (XXH3-64 of the number's four little-endian bytes, seeded with seed), so that answers share no noise.
 */
GUMBEL_API uint64_t gumbel_answer_seed(uint64_t seed, uint32_t answer);

/* Takes over an engine without sessions: until the scheduler is destroyed nobody else uses it, and it must
 * not be destroyed. options may be NULL. Errors: ARGUMENT (also state_bytes that hold no full context), LIMIT
 * (the engine has sessions), UNSUPPORTED (the program was exported with --logits), MEMORY. */
GUMBEL_API gumbel_status gumbel_scheduler_create(gumbel_engine *engine,
                                                 const gumbel_scheduler_options *options,
                                                 gumbel_scheduler **scheduler, gumbel_error *error);

/* Cancels what goes on, and waits for its last events. NULL is allowed. */
GUMBEL_API void gumbel_scheduler_destroy(gumbel_scheduler *scheduler);

/* Queues a request. Each of its answers ends in exactly one FINISH or ERROR event, if this succeeds; *request
 * (may be NULL) is written before the first event. A conversation is rendered and encoded by the calling
 * thread. Thread-safe. Errors, which queue nothing: ARGUMENT, UNSUPPORTED (also a grammar that has too
 * many ways to begin), LIMIT (the queue is full, or the prompt is longer than a context), CANCELLED (the
 * scheduler drains), BACKEND (no step succeeds any more), MEMORY, and those of gumbel_chat_encode. */
GUMBEL_API gumbel_status gumbel_scheduler_submit(gumbel_scheduler *scheduler,
                                                 const gumbel_submission *submission, uint64_t *request,
                                                 gumbel_error *error);

/* Ends all answers of a request with CANCELLED at the next step boundary. One that has ended, or never was,
 * is left alone. Thread-safe. */
GUMBEL_API void gumbel_scheduler_cancel(gumbel_scheduler *scheduler, uint64_t request);

/* Refuses requests from now on and waits until all have ended. Thread-safe. */
GUMBEL_API void gumbel_scheduler_drain(gumbel_scheduler *scheduler);

/* Counts at a step boundary. Of slots and of bytes, free + kept + running are all there are. */
typedef struct gumbel_scheduler_stats {
    size_t size;
    uint32_t queued, running, spilled; /* answers that wait, have a slot, wait in host memory */
    uint32_t free_slots, kept_slots;   /* the others are those of running answers */
    uint32_t slots;
    uint64_t state_bytes, kept_bytes, running_bytes; /* in slots: at most; of kept and of running sequences */
    uint64_t host_bytes, spilled_bytes;              /* in host memory: kept; of answers that wait there */
    uint64_t submitted, finished, failed;            /* answers since the start; cancelled ones have failed */
    uint64_t steps, prompt_tokens, cached_tokens, generated_tokens;
    uint64_t spills, evictions; /* answers put into host memory; kept sequences that lost their slot */
    uint64_t rerun_tokens;      /* of answers that were run again as prompts while nobody waited */
    uint64_t reruns_due;        /* kept answers for which that is still to come */
    uint64_t cancelled;         /* of the answers that failed, those that somebody cancelled */
    gumbel_draft_stats drafts;  /* of all answers */
} gumbel_scheduler_stats;

/* Thread-safe. Errors: ARGUMENT. */
GUMBEL_API gumbel_status gumbel_scheduler_get_stats(gumbel_scheduler *scheduler,
                                                    gumbel_scheduler_stats *stats, gumbel_error *error);

/* ---- Exporting (libgumbel-export) ---------------------------------------------------------------------- */

/* Progress of a long task: done of total bytes. Return false to cancel. */
typedef bool (*gumbel_progress_callback)(void *user, const char *what, uint64_t done, uint64_t total);

/* Likeliest tokens whose log-probability a program can give: at most, and where nobody says. */
enum { GUMBEL_TOP_LOGPROBS_LIMIT = 128, GUMBEL_TOP_LOGPROBS_DEFAULT = 20 };

/* What an export took. */
typedef struct gumbel_export_stats {
    size_t size;
    uint64_t bytes_read;    /* of the checkpoint's tensors that the program is made from */
    uint64_t bytes_written; /* the program's size */
    double seconds;         /* all of it */
    double write_seconds;   /* of these, until the system had taken the bytes and synced them */
    uint32_t threads;       /* that quantized */
} gumbel_export_stats;

/* What the products of a model take in when it reads a text: gumbel_export uses it to quantize matrices so
 * that their products lose little, not their weights (docs/calibration.md). */
typedef struct gumbel_calibration gumbel_calibration;

typedef struct gumbel_calibration_options {
    size_t size;
    uint64_t memory_bytes; /* of the sums, at most; 0: 4 GiB. With more, blocks of inputs are larger */
} gumbel_calibration_options;

/* options may be NULL. Errors: ARGUMENT, MEMORY. */
GUMBEL_API gumbel_status gumbel_calibration_create(const gumbel_calibration_options *options,
                                                   gumbel_calibration **calibration, gumbel_error *error);

/* NULL is allowed. */
GUMBEL_API void gumbel_calibration_destroy(gumbel_calibration *calibration);

/* A gumbel_observe_callback, with the calibration as its user, for an engine that runs the model in full
 * precision: exported from the same checkpoint without a recipe. Adds the rows up; the sums do not depend on
 * the number of threads. Thread-safe for the threads of one engine. A lack of memory is an error of the
 * export. */
GUMBEL_API void gumbel_calibration_observe(void *calibration, const gumbel_observation *observation);

typedef struct gumbel_export_options {
    size_t size;
    /* what the weights and caches become */
    const char *quantize;    /* recipe: a built-in one or a file; NULL or "none": weights stay as they are */
    const char *activations; /* inputs of products: "none", "int8" with quantized weights, "bfloat16" with
                                bfloat16 weights; NULL: what the recipe says, and without one int8 for a
                                checkpoint that is quantized, bfloat16 for others */
    const char *cache;   /* of attention, as gumbel_program_set_cache takes it; NULL: what the recipe says,
                            and bfloat16 for such a checkpoint */
    const char *backend; /* lay weights out for this backend: "cpu" (NULL), "cuda", "mlx", or "none" */
    /* what the program can do */
    uint32_t max_context; /* 0: the smaller of the model's own and 8192 */
    uint32_t layers;      /* keep the first layers only; 0: all */
    bool logits;          /* end in logits[B, V] instead of the sampler */
    const char *sampler;  /* "full" (NULL), or "minimal": temperature, top-k and top-p only */
    /* Likeliest tokens whose log-probability can be had, GUMBEL_TOP_LOGPROBS_LIMIT at most; 0:
     * GUMBEL_TOP_LOGPROBS_DEFAULT, where the sampler is full; -1: none. */
    int32_t max_top_logprobs;
    /* what it is made from, beside the checkpoint */
    bool random_weights; /* checkpoint is a config.json; weights are drawn from random_seed */
    uint64_t random_seed;
    const char *name; /* what the program calls its model, such as its repository; NULL: the name in the
                         checkpoint's configuration, or that of its folder or file */
    /* what is told meanwhile, and afterwards */
    gumbel_log_callback log; /* NULL: no notices */
    void *log_user;
    gumbel_progress_callback progress; /* NULL: none */
    void *progress_user;
    gumbel_export_stats *stats;      /* filled in on success; NULL: not wanted. Its size must be set */
    gumbel_calibration *calibration; /* of the same checkpoint; NULL: none. Used by one export at a time */
    /* Bytes that the program's file may have: as many matrices as fit get 8 bits in place of the recipe's
     * fewer. 0: the recipe's own. ARGUMENT where that is larger already, or has integer scales nowhere. */
    uint64_t size_target;
    bool draft_head; /* with the head that guesses further tokens, where the checkpoint has one (mtp.* of
                        Qwen3.5). ARGUMENT: it has none, or with logits or size_target; UNSUPPORTED: a
                        head of several layers, or with embeddings of its own */
    /* Directory or GGUF of the model's assistant (gemma4_assistant), which becomes the draft head; with
     * random_weights its config.json will do. NULL: none. ARGUMENT: with draft_head, logits or size_target,
     * for a model that has no assistants, or an assistant of another one, or a GGUF with random_weights;
     * UNSUPPORTED: a directory of quantized weights. */
    const char *assistant;
} gumbel_export_options;

/* Reads the checkpoint (a Hugging Face directory, a GGUF, or a config.json with random_weights) and writes a
 * program to path; NULL: only finds out whether it could, but for the numbers of the weights. The
 * checkpoint's files are mapped and must stay as they are until this returns (see the conventions on SIGBUS,
 * and on what path may be). options may be NULL. Errors: ARGUMENT, IO, FORMAT, UNSUPPORTED, CANCELLED,
 * MEMORY; LIMIT, before anything is written, where the disk has no room for the program. */
GUMBEL_API gumbel_status gumbel_export(const char *checkpoint, const char *path,
                                       const gumbel_export_options *options, gumbel_error *error);

typedef struct gumbel_pack_options {
    size_t size;
    const char *backend; /* as in gumbel_export_options */
    gumbel_progress_callback progress;
    void *progress_user;
} gumbel_pack_options;

/* Writes the program again with its weights laid out for another backend: the file that exporting its
 * checkpoint for that backend would have made. The checkpoint is not needed. path may be the program's own,
 * which is replaced in the end, and which must stay as it is until then (see the conventions on SIGBUS).
 * It takes a few megabytes of memory whatever the program's size. options may be NULL. Errors: IO; FORMAT,
 * also where a weight's checksum does not match; ARGUMENT, CANCELLED, MEMORY; LIMIT as in gumbel_export. */
GUMBEL_API gumbel_status gumbel_pack(const char *program, const char *path,
                                     const gumbel_pack_options *options, gumbel_error *error);

/* Writes the built-in quantization recipes, each as the JSON that a file for options.quantize has. */
GUMBEL_API void gumbel_describe_recipes(gumbel_write_callback write, void *user);

/* The tokenizer of a checkpoint directory or of a GGUF, with its chat templates. */
GUMBEL_API gumbel_status gumbel_export_tokenizer(const char *checkpoint, gumbel_tokenizer **tokenizer,
                                                 gumbel_error *error);

#ifdef __cplusplus
}
#endif

#endif
