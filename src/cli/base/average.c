/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/average.h"

#include <math.h>

/* Welford's way, which loses no digits where the numbers are close to one another. */
void cli_average_add(cli_average *average, double number) {
    double before = number - average->mean;
    average->count++;
    average->mean += before / average->count;
    average->squares += before * (number - average->mean);
}

double cli_average_deviation(const cli_average *average) {
    return average->count > 1 ? sqrt(average->squares / (average->count - 1)) : 0;
}

double cli_average_error(const cli_average *average) {
    return average->count > 1 ? cli_average_deviation(average) / sqrt(average->count) : 0;
}
