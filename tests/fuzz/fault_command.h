/* SPDX-License-Identifier: Apache-2.0
 *
 * When faults of a command begin, and how it tells of one:
 *
 *     GUMBEL_FAULTS_FROM=signal        they begin at SIGUSR2, and not with main()
 *     GUMBEL_TELL_FAULTS=1             standard error gets FAULTS_BEGIN and FAULT_MADE, each a line
 */
#ifndef GUMBEL_TESTS_FAULT_COMMAND_H
#define GUMBEL_TESTS_FAULT_COMMAND_H

#define FAULTS_BEGIN "faults begin\n"
#define FAULT_MADE "a fault was made\n"

/* Calls begin at once or at the signal; it must be safe in a handler. Call it once, in main(). */
void start_faults(void (*begin)(void));

void tell_of_fault(void);

#endif
