/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the hub's list of files: refused, or files whose names stay below their folder and whose
 * hashes can name a blob; and what is chosen of them is some of them.
 */
#include "hub/listing.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const hub_listing *listing) {
    if (!hub_is_hash(listing->commit, HUB_COMMIT - 1))
        abort();
    for (size_t i = 0; i < listing->count; i++) {
        const hub_file *file = &listing->files[i];
        if (!hub_stays_below(file->name) || file->size > UINT64_C(1) << 50 ||
            !(hub_is_hash(file->hash, HUB_SHA1) || hub_is_hash(file->hash, HUB_SHA256)))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const hub_name names[] = {
        {.repository = "a/b"}, {.repository = "a/b", .quant = "Q8_0"}, {.repository = "a/b", .file = "x"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hub_listing listing;
        gumbel_error error;
        if (hub_parse_listing((const char *)data, size, "a/b", &listing, &error) == GUMBEL_OK) {
            size_t count = listing.count;
            check(&listing);
            if (hub_select(&listing, &names[i], &error) == GUMBEL_OK &&
                (listing.count == 0 || listing.count > count))
                abort();
            check(&listing);
        }
        hub_listing_free(&listing);
    }
    return 0;
}
