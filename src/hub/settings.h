/* SPDX-License-Identifier: Apache-2.0
 *
 * What the environment says about the hub, by the variables of Hugging Face's own tools: HF_ENDPOINT,
 * HF_HUB_OFFLINE, and the token from HF_TOKEN or the file that `hf auth login` has written (HF_TOKEN_PATH,
 * else token below HF_HOME). CURL_CA_BUNDLE, REQUESTS_CA_BUNDLE or SSL_CERT_FILE name the certificates.
 */
#ifndef GUMBEL_HUB_SETTINGS_H
#define GUMBEL_HUB_SETTINGS_H

#include "gumbel.h"

typedef struct hub_settings {
    char endpoint[512];       /* "https://huggingface.co", without a slash at its end */
    char token[512];          /* "": none */
    const char *certificates; /* a file with those that are trusted; NULL: the system's. Of the environment */
    bool is_offline;          /* nothing may be asked of a network */
} hub_settings;

/* Errors: ARGUMENT naming the variable or file whose value cannot be used. The token is never in a message.
 */
gumbel_status hub_read_settings(hub_settings *settings, gumbel_error *error);

#endif
