/* SPDX-License-Identifier: Apache-2.0
 *
 * A hub with one repository, org/name, in a process of its own, and what a cache may have of it.
 */
#ifndef GUMBEL_TESTS_SMALL_HUB_H
#define GUMBEL_TESTS_SMALL_HUB_H

#include <stdbool.h>
#include <stddef.h>

enum { SMALL_HUB_FILES = 4 };

/* The hub ends with the process that calls this. Sets HF_ENDPOINT. Ends the process on an error. */
void start_small_hub(void);

/* Ends the case where the cache in the folder HF_HOME has a wrong blob, a link to nothing, or a reference to
 * what is not whole; with must_be_whole also where something lacks. what and nth are for the message. */
void check_hub_cache(const char *home, bool must_be_whole, const char *what, size_t nth);

#endif
