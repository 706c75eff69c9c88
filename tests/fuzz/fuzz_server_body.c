/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the body of a request. The first byte chooses the route. It is refused with a reason, or
 * becomes messages that the chat template's renderer takes or refuses.
 */
#include "server/fields/fields.h"
#include "server/generate/prompt.h"
#include "server/protocols/convert.h"
#include "support/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const server_model *find_model(void *user, const char *name, server_request *request,
                                      server_failure *failure) {
    (void)name, (void)request, (void)failure;
    return user;
}

static server_model *model_once(void) {
    static server_model model = {.names = "fuzz", .max_context = 4096};
    gumbel_tokenizer *tokenizer;
    gumbel_error error;
    if (model.tokenizer)
        return &model;
    if (gumbel_export_tokenizer(bundled_model("qwen3_5-moe-tiny"), &tokenizer, &error) != GUMBEL_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    model.tokenizer = tokenizer;
    model.info.vocab_size = 2048;
    model.sampling.size = sizeof model.sampling;
    gumbel_sampling_defaults(NULL, &model.sampling, NULL);
    return &model;
}

static void check_failure(const server_failure *failure) {
    if (failure->status >= 400 && failure->status < 600 && failure->message[0])
        return;
    fprintf(stderr, "refused with status %d and \"%s\"\n", failure->status, failure->message);
    abort();
}

static bool convert(server_request *request, server_responses *responses, server_failure *failure) {
    if (request->route == SERVER_MESSAGES)
        return server_convert_messages(request, responses, failure);
    return request->route != SERVER_RESPONSES || server_convert_input(request, responses, failure);
}

static void try_route(server_route route, const gb_byte_buffer *text) {
    server_model *model = model_once();
    server_responses responses;
    server_request request = {0};
    server_prompts prompts = {0};
    server_failure failure = {0};
    const server_model *found;
    json_t *body = server_parse_body(text, &failure);
    server_responses_init(&responses, 1 << 20);
    const bool is_good = body &&
                         server_read_request(route, body, find_model, model, &request, &found, &failure) &&
                         convert(&request, &responses, &failure) &&
                         server_make_prompts(&request, model, 0, &prompts, &failure);
    if (!is_good)
        check_failure(&failure);
    else
        json_decref(server_settings_json(&request));
    server_prompts_free(&prompts);
    server_request_free(&request);
    server_responses_free(&responses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const server_route routes[] = {SERVER_COMPLETIONS, SERVER_CHAT, SERVER_RESPONSES, SERVER_MESSAGES};
    if (size < 1 || size > 65536)
        return 0;
    const gb_byte_buffer text = {.text = (char *)(uintptr_t)(data + 1), .size = size - 1};
    try_route(routes[data[0] % (sizeof routes / sizeof *routes)], &text);
    return 0;
}
