/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's files: those beside this one and the libraries. The build makes the table.
 */
#ifndef GUMBEL_SERVER_PAGE_PAGE_H
#define GUMBEL_SERVER_PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct server_page_file {
    const char *name; /* behind /page/; that of the page itself, at /, is empty */
    const char *type; /* the media type */
    const char *tag;  /* of the content, for ETag, in quotation marks */
    const unsigned char *bytes;
    size_t length;
    bool is_gzip;
} server_page_file;

extern const server_page_file server_page_files[];
extern const size_t server_page_file_count;

#endif
