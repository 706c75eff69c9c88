/* SPDX-License-Identifier: Apache-2.0
 *
 * The built program, for the tests that start it. Its path is known to one source alone, so that the others
 * compile the same in every folder (ccache).
 */
#ifndef GUMBEL_TESTS_CLI_PROGRAM_PATH_H
#define GUMBEL_TESTS_CLI_PROGRAM_PATH_H

extern const char gumbel_command_path[];
extern const char gumbel_manual_pages[]; /* the commands that have a page, with blanks between */

#endif
