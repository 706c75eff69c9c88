/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that grow. Where there is no memory the text is marked as failed and takes no more.
 */
#ifndef GUMBEL_SERVER_BASE_TEXT_H
#define GUMBEL_SERVER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Starts zeroed. */
typedef struct server_text {
    char *bytes; /* NULL while it is empty */
    size_t length, capacity;
    bool has_failed;
} server_text;

void server_text_add(server_text *text, const char *bytes, size_t length);
void server_text_add_string(server_text *text, const char *string);
__attribute__((format(printf, 2, 3))) void server_text_print(server_text *text, const char *format, ...);

/* Room for length more bytes at the end, which then count; NULL where there is no memory. */
char *server_text_extend(server_text *text, size_t length);

/* A callback for the library and for jansson: user is a server_text. */
void server_text_write(void *user, const char *bytes, size_t length);
int server_text_write_json(const char *bytes, size_t length, void *user);

/* The bytes with a zero behind them; "" where it has failed. */
const char *server_text_string(server_text *text);

void server_text_clear(server_text *text); /* keeps the memory */
void server_text_free(server_text *text);

#endif
