/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reports of --stats measure: this process's memory, and how fast the disk takes bytes.
 */
#ifndef GUMBEL_CLI_BASE_MEASURE_H
#define GUMBEL_CLI_BASE_MEASURE_H

/* The most memory that was resident at one time since the process began, in MB; mapped files count where they
 * were read. 0 when the system does not say. */
double cli_peak_megabytes(void);

/* Lets cli_peak_megabytes tell the peak from now on. Where the system cannot, it stays that of the process.
 */
void cli_forget_peak(void);

/* Bytes per second at which a file beside path can be written and synced, 0 when it cannot be said: writes
 * 128 MiB of what stands in the file at path (again from its beginning where it is shorter) to a file without
 * a name. */
double cli_disk_write_rate(const char *path);

#endif
