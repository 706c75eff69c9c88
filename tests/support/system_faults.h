/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets calls of the system that writing a file takes fail, one after the other. A test that uses this has
 * them in place of the C library's: open, openat, stat, fstatat, readlink, flock, write, lseek, fsync,
 * linkat, renameat.
 */
#ifndef GUMBEL_TESTS_SYSTEM_FAULTS_H
#define GUMBEL_TESTS_SYSTEM_FAULTS_H

#include <stdbool.h>

/* Lets the n-th of these calls fail with that errno, from 0; the others are as ever. */
void fail_system_call(int n, int reason);

/* Ends that. Whether the call has come. */
bool end_system_faults(void);

/* Whether the file system has files without a name, as it is from the start where it can. */
void allow_nameless_files(bool allowed);

/* Calls hook once, just before the next flock. */
void before_flock(void (*hook)(void));

#endif
