/* SPDX-License-Identifier: Apache-2.0
 *
 * A temporary directory for the files of one test program.
 */
#ifndef GUMBEL_TESTS_TEMPORARY_H
#define GUMBEL_TESTS_TEMPORARY_H

#include <stddef.h>

/* An empty directory of this process, the same at every call; it is removed, with its files and eight levels
 * of directories below it, when the process ends. */
const char *temporary_directory(void);

/* Removes everything in it. */
void empty_temporary_directory(void);

/* The path of a file in it, valid until the eighth call from here on. name may contain one directory, which
 * is created. */
const char *temporary_path(const char *name);

/* Writes size bytes to the path. Ends the test on an error. */
void write_file(const char *path, const void *data, size_t size);

/* The same with a string. */
void write_text(const char *path, const char *text);

/* How many files and directories stand in the directory at path. */
size_t count_files(const char *path);

#endif
