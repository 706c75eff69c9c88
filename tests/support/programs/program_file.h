/* SPDX-License-Identifier: Apache-2.0
 *
 * A program file's bytes in memory, for tests that damage them.
 */
#ifndef GUMBEL_TESTS_PROGRAM_FILE_H
#define GUMBEL_TESTS_PROGRAM_FILE_H

#include "program/file/format.h"
#include "program/program.h"

typedef struct program_file {
    uint8_t *bytes; /* 64-byte aligned; free with gb_free */
    uint64_t size;
} program_file;

/* The program's file, with a tokenizer and a chat section. Destroys the program. Fails the test on an
 * error. */
program_file program_file_of(gb_program *program);

/* The file of the tiny program, or of the tiny recurrent one, with a tokenizer and a chat section.
 * Fails the test on an error. */
program_file tiny_program_file(bool use_sampling);
program_file tiny_recurrent_file(bool use_sampling);

/* That of the tiny target with its head. */
program_file tiny_pair_file(void);

/* The same of quantized_program.h's program with its head interleaved. */
program_file packed_program_file(void);

/* A copy with room for extra more bytes, which are zero and not counted in its size. */
program_file copy_program_file(const program_file *file, uint64_t extra);

/* The table entry of the section of that kind, in the file's bytes. */
uint8_t *section_entry(const program_file *file, uint32_t kind);

/* Makes all checksums, the file size and the id fit the bytes again, as far as sections lie in the file. */
void repair_checksums(program_file *file);

/* Reads the bytes as a program. Fails the test unless that gives the status and a message with that part. */
void assert_refused(const program_file *file, gumbel_status expected, const char *part);

#endif
