/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a program's chat section, and as the JSON of messages, of tools and of variables: refused, or
 * rendered.
 */
#include "base/memory.h"
#include "text/chat/chat_render.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char template_text[] =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ m.reasoning_content }}"
    "{% for c in m.tool_calls %}{{ c.id }}{{ c.function.name }}{{ c.function.arguments }}{% endfor %}"
    "{% endfor %}{{ tools | tojson }}{{ kw }}";

static void render(const gb_chat_section *section, gumbel_chat_options options) {
    gb_jinja_output output = {0};
    gumbel_error error = {0};
    options.size = sizeof options;
    gumbel_status status = gb_chat_render(section, NULL, 0, &options, &output, &error);
    if (status != GUMBEL_OK && (error.status != status || !error.message[0] || output.text))
        abort();
    gb_jinja_output_free(&output);
}

static void use_section(const uint8_t *data, size_t size) {
    static const char messages[] = "[{\"role\":\"user\",\"content\":\"Hi\"}]";
    gb_chat_section section;
    if (gb_chat_section_parse(&(gb_blob){data, size}, &section, NULL) != GUMBEL_OK)
        return;
    gb_byte_buffer bytes = {0};
    gb_chat_section_write(&section, &bytes);
    if (bytes.size != size)
        abort(); /* nothing is read that would not be written */
    gb_buffer_free(&bytes);
    if (size < 1000) /* fuzz_template has limits for longer ones */
        render(&section, (gumbel_chat_options){.messages_json = messages});
    gb_chat_section_free(&section);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char messages[] = "[{\"role\":\"user\",\"content\":\"Hi\"}]";
    if (size > 4 && data[1] == 0) {
        use_section(data, size);
        return 0;
    }
    char *text = gb_copy_string((const char *)data, size);
    if (!text)
        return 0;
    render(NULL, (gumbel_chat_options){.messages_json = text, .template_text = template_text});
    render(NULL, (gumbel_chat_options){
                     .messages_json = text, .template_text = template_text, .continue_final_message = true});
    render(NULL,
           (gumbel_chat_options){.messages_json = messages, .tools = text, .template_text = template_text});
    render(NULL, (gumbel_chat_options){
                     .messages_json = messages, .template_kwargs = text, .template_text = template_text});
    gb_free(text);
    return 0;
}
