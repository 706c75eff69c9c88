/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the tests' data and the bundled models lie. The folders are known to one source alone, so that the
 * others compile the same in every folder (ccache).
 */
#ifndef GUMBEL_TESTS_PATHS_H
#define GUMBEL_TESTS_PATHS_H

extern const char test_data_folder[];   /* tests/data, or where GUMBEL_TEST_DATA says */
extern const char test_models_folder[]; /* models, or where GUMBEL_TEST_MODELS says */

/* The path of a file or folder below them. It stays valid, and one name gives one pointer; for one thread at
 * a time. Ends the program where more names are used than there is room for. */
const char *test_data(const char *name);
const char *bundled_model(const char *name);

#endif
