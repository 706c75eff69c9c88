/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/hash.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

hub_hash *hub_hash_begin_plain(const hub_file *file) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const EVP_MD *kind = strlen(file->hash) == HUB_SHA1 ? EVP_sha1() : EVP_sha256();
    if (context && EVP_DigestInit_ex(context, kind, NULL) == 1)
        return context;
    EVP_MD_CTX_free(context);
    return NULL;
}

hub_hash *hub_hash_begin(const hub_file *file) {
    char header[40];
    int length = snprintf(header, sizeof header, "blob %" PRIu64, file->size);
    hub_hash *hash = hub_hash_begin_plain(file);
    if (!hash || strlen(file->hash) != HUB_SHA1 || hub_hash_add(hash, header, (size_t)length + 1))
        return hash;
    hub_hash_free(hash);
    return NULL;
}

bool hub_hash_add(hub_hash *hash, const void *bytes, size_t count) {
    return EVP_DigestUpdate(hash, bytes, count) == 1;
}

void hub_hash_end(hub_hash *hash, char digits[HUB_HASH]) {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (EVP_DigestFinal_ex(hash, bytes, &length) != 1)
        length = 0;
    digits[0] = '\0';
    for (unsigned i = 0; i < length && 2 * i + 2 < HUB_HASH; i++)
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    EVP_MD_CTX_free(hash);
}

void hub_hash_free(hub_hash *hash) {
    EVP_MD_CTX_free(hash);
}
