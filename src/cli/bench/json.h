/* SPDX-License-Identifier: Apache-2.0
 *
 * What `gumbel bench` has measured as JSON, for its formats that programs read.
 */
#ifndef GUMBEL_CLI_BENCH_JSON_H
#define GUMBEL_CLI_BENCH_JSON_H

#include "cli/bench/report.h"

#include <jansson.h>

/* One object with all tests in a list. Free with json_decref. */
json_t *cli_bench_json(const cli_bench_results *results);

/* One test with what holds for all of them, without objects in objects: "seconds_mean" for the mean of
 * "seconds". Every test has the same keys in the same order, but for the list "profile", where there is one.
 */
json_t *cli_bench_record(const cli_bench_results *results, size_t test);

#endif
