/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's files, as they lie beside this one. The build makes them into bytes.
 */
#ifndef GUMBEL_SERVER_PAGE_PAGE_H
#define GUMBEL_SERVER_PAGE_PAGE_H

#include <stddef.h>

extern const unsigned char server_page_html[], server_page_css[], server_page_js[];
extern const size_t server_page_html_length, server_page_css_length, server_page_js_length;

#endif
