/* SPDX-License-Identifier: Apache-2.0
 *
 * The page at /, and its files below /page/. Its policy lets the browser load nothing from elsewhere, run
 * nothing but these files, and take markup from nothing but DOMPurify, whatever a model writes.
 */
#include "server/page/page.h"

#include "server/routes/routes.h"

#include <string.h>

static const server_page_file *find_file(const char *name) {
    for (size_t i = 0; i < server_page_file_count; i++)
        if (strcmp(server_page_files[i].name, name) == 0)
            return &server_page_files[i];
    return NULL;
}

static void add_headers(server_exchange *exchange, const server_page_file *file) {
    server_add_header(
        exchange, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types dompurify");
    server_add_header(exchange, "Referrer-Policy", "no-referrer");
    server_add_header(exchange, "X-DNS-Prefetch-Control", "off"); /* a link's host is not looked up either */
    server_add_header(exchange, "Cache-Control", "no-cache");
    server_add_header(exchange, "ETag", file->tag);
}

static bool has_browser(const server_exchange *exchange, const server_page_file *file) {
    const char *tags = server_header(exchange, "If-None-Match");
    return tags && strstr(tags, file->tag);
}

void server_page_route(server *s, server_exchange *exchange, const char *rest) {
    (void)s;
    const server_page_file *file = find_file(rest);
    if (!file) {
        server_fail(&exchange->failure, 404, "there is no route %.100s", exchange->path);
        server_reply_failure(exchange, &exchange->failure);
        return;
    }
    add_headers(exchange, file);
    if (has_browser(exchange, file)) {
        server_reply_constant(exchange, 304, file->type, "", 0);
        return;
    }
    if (file->is_gzip)
        server_add_header(exchange, "Content-Encoding", "gzip");
    server_reply_constant(exchange, 200, file->type, (const char *)file->bytes, file->length);
}
