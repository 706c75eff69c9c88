/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/framing.h"

#include <ctype.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct framing {
    unsigned lengths, encodings, hosts;
    bool has_control, has_bad_name, has_bad_length, has_bad_encoding;
} framing;

/* RFC 9110, 5.6.2. */
static bool is_token(const char *name) {
    for (const char *letter = name; *letter; letter++)
        if (!isalnum((unsigned char)*letter) && !strchr("!#$%&'*+-.^_`|~", *letter))
            return false;
    return name[0] != '\0';
}

static bool has_control(const char *value) {
    for (const char *letter = value; *letter; letter++)
        if (((unsigned char)*letter < ' ' && *letter != '\t') || *letter == 0x7F)
            return true;
    return false;
}

static enum MHD_Result look_at(void *user, enum MHD_ValueKind kind, const char *name, const char *value) {
    (void)kind;
    framing *found = user;
    value = value ? value : "";
    found->has_bad_name |= !is_token(name);
    found->has_control |= has_control(value);
    found->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        found->lengths++;
        found->has_bad_length |= !value[0] || value[strspn(value, "0123456789")];
    }
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        found->encodings++;
        found->has_bad_encoding |= strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

bool server_check_framing(struct MHD_Connection *connection, const char *version, server_failure *failure) {
    framing found = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, look_at, &found);
    if (found.has_bad_name)
        return server_refuse(failure, NULL, "a header's name is no token");
    if (found.hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_1) == 0)
        return server_refuse(failure, NULL, "there is no Host header, which HTTP/1.1 needs");
    if (found.has_control)
        return server_refuse(failure, NULL, "a header's value has a control character");
    if (found.hosts > 1)
        return server_refuse(failure, NULL, "there are %u Host headers", found.hosts);
    if (found.lengths > 1)
        return server_refuse(failure, NULL, "there are %u Content-Length headers", found.lengths);
    if (found.has_bad_length)
        return server_refuse(failure, NULL, "Content-Length: expected decimal digits");
    if (found.encodings > 0 && found.lengths > 0)
        return server_refuse(failure, NULL, "there are both Content-Length and Transfer-Encoding");
    if (found.encodings > 1)
        return server_refuse(failure, NULL, "there are %u Transfer-Encoding headers", found.encodings);
    if (found.encodings > 0 && strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
        return server_refuse(failure, NULL, "%.16s has no Transfer-Encoding", version);
    if (found.has_bad_encoding)
        return server_fail(failure, 501, "Transfer-Encoding: only chunked is known");
    return true;
}

uint64_t server_content_length(struct MHD_Connection *connection) {
    const char *value =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return value ? strtoull(value, NULL, 10) : 0;
}
