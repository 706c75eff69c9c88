/* SPDX-License-Identifier: Apache-2.0
 *
 * The page at /. Its policy lets the browser load nothing from elsewhere and run nothing but page.js,
 * whatever a model writes.
 */
#include "server/page/page.h"

#include "server/routes/routes.h"

static void reply(server_exchange *exchange, const char *type, const unsigned char *bytes, size_t length) {
    server_add_header(
        exchange, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'");
    server_add_header(exchange, "Referrer-Policy", "no-referrer");
    server_add_header(exchange, "Cache-Control", "no-cache");
    server_reply_constant(exchange, 200, type, (const char *)bytes, length);
}

void server_page_route(server *s, server_exchange *exchange, const char *rest) {
    (void)s, (void)rest;
    reply(exchange, "text/html; charset=utf-8", server_page_html, server_page_html_length);
}

void server_style_route(server *s, server_exchange *exchange, const char *rest) {
    (void)s, (void)rest;
    reply(exchange, "text/css; charset=utf-8", server_page_css, server_page_css_length);
}

void server_script_route(server *s, server_exchange *exchange, const char *rest) {
    (void)s, (void)rest;
    reply(exchange, "text/javascript; charset=utf-8", server_page_js, server_page_js_length);
}
