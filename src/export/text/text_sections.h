/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that a program needs to know about text, read from a checkpoint's directory or from a GGUF
 * file.
 */
#ifndef GUMBEL_EXPORT_TEXT_TEXT_SECTIONS_H
#define GUMBEL_EXPORT_TEXT_TEXT_SECTIONS_H

#include "base/byte_buffer.h"
#include "export/checkpoint/gguf.h"

typedef struct gb_text_sections {
    gb_byte_buffer tokenizer; /* empty: the checkpoint has no tokenizer */
    gb_byte_buffer chat;      /* empty: it has no chat template */
    gb_byte_buffer trie;      /* of the tokens; empty until gb_write_trie_section */
    int32_t token_count;      /* ids are below it; 0 without a tokenizer */
    int32_t bos_token;        /* the first token of plain text or of a conversation, or -1 */
    int32_t stop_token;       /* ends the assistant's turn, or -1 */
} gb_text_sections;

/* Reads directory/tokenizer.json and the chat templates. A missing tokenizer, and a template with something
 * that is not known here, are reported to log (may be NULL) as warnings. Errors: IO, FORMAT, UNSUPPORTED
 * (naming file and key), MEMORY. Free with gb_text_sections_free, also after an error. */
gumbel_status gb_read_text_sections(const char *directory, gumbel_log_callback log, void *log_user,
                                    gb_text_sections *sections, gumbel_error *error);

/* The same from a GGUF file's metadata; path stands in messages. */
gumbel_status gb_read_gguf_text_sections(const gb_gguf *file, const char *path, gumbel_log_callback log,
                                         void *log_user, gb_text_sections *sections, gumbel_error *error);

/* Makes the trie, of the tokenizer's tokens and of the model's further ids, of which there are vocab_size;
 * nothing without a tokenizer, and of more tokens than a trie may have. Errors: MEMORY. */
gumbel_status gb_write_trie_section(uint64_t vocab_size, gb_text_sections *sections, gumbel_error *error);

void gb_text_sections_free(gb_text_sections *sections);

#endif
