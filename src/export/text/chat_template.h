/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint's chat templates and the special tokens that they use, from where Hugging Face's tools and
 * llama.cpp keep them.
 */
#ifndef GUMBEL_EXPORT_TEXT_CHAT_TEMPLATE_H
#define GUMBEL_EXPORT_TEXT_CHAT_TEMPLATE_H

#include "export/checkpoint/gguf.h"
#include "text/chat/chat_section.h"

/* Reads directory/chat_template.jinja as "default", or where there is none chat_template of
 * directory/tokenizer_config.json: a string, or a list of {"name", "template"}. Beside the file are those of
 * directory/additional_chat_templates/NAME.jinja. Special tokens are all
 * "..._token" of tokenizer_config.json. A checkpoint without templates gives a section without. Errors: IO,
 * FORMAT, LIMIT, MEMORY. Free with gb_chat_section_free, also after an error. */
gumbel_status gb_read_chat_templates(const char *directory, gb_chat_section *chat, gumbel_error *error);

/* The same from a GGUF file's tokenizer.chat_template ("default") and tokenizer.chat_template.NAME; path only
 * stands in messages. */
gumbel_status gb_read_gguf_chat_templates(const gb_gguf *file, const char *path, gb_chat_section *chat,
                                          gumbel_error *error);

/* Says of each template that is not known here whole why it will fail (it is kept), as a warning to log. */
void gb_warn_of_chat_templates(const gb_chat_section *chat, gumbel_log_callback log, void *log_user);

#endif
