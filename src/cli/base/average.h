/* SPDX-License-Identifier: Apache-2.0
 *
 * The mean of numbers as they come, and how far they scatter.
 */
#ifndef GUMBEL_CLI_BASE_AVERAGE_H
#define GUMBEL_CLI_BASE_AVERAGE_H

/* Start from {0}. */
typedef struct cli_average {
    double count, mean;
    double squares; /* sum of the squared distances from the mean */
} cli_average;

void cli_average_add(cli_average *average, double number);

/* Standard deviation of the numbers, and standard error of their mean; 0 for fewer than two. */
double cli_average_deviation(const cli_average *average);
double cli_average_error(const cli_average *average);

#endif
