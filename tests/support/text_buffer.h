/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps what is printed, for tests that look at it.
 */
#ifndef GUMBEL_TESTS_TEXT_BUFFER_H
#define GUMBEL_TESTS_TEXT_BUFFER_H

#include "base/text_sink.h"

/* Zeroed at the start. text has a terminating zero once something was printed; free it with free(). */
typedef struct text_buffer {
    char *text;
    size_t length;
} text_buffer;

/* A sink that appends to buffer. */
gb_text_sink text_buffer_sink(text_buffer *buffer);

#endif
