/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of the library. Signals that are sent to a process are for the threads of its caller.
 */
#ifndef GUMBEL_BASE_THREAD_H
#define GUMBEL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread in which every signal is blocked but those of its own faults (SIGBUS, SIGFPE, SIGILL,
 * SIGSEGV): a blocked one would end the process past the handler of the caller. The thread is the caller's to
 * join. False: the system refuses it. Thread-safe. Source: POSIX.1-2017, pthread_sigmask. */
bool gb_start_thread(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
