/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections between the processes of a launch: a socket of one host's files, or TCP.
 */
#ifndef GUMBEL_BACKENDS_RANKS_PROCESSES_SOCKETS_H
#define GUMBEL_BACKENDS_RANKS_PROCESSES_SOCKETS_H

#include "backends/ranks/processes/launch.h"

#include <stdbool.h>
#include <stddef.h>

/* Where rank 0 listens. The socket is closed on exec, as all of these. Errors: IO. */
gumbel_status gb_listen(const gb_launch *launch, int *listener, gumbel_error *error);

/* Closes it, and removes its file. */
void gb_listen_end(const gb_launch *launch, int listener);

/* The next connection, within so many milliseconds; -1: none has come. On one host those of other users are
 * turned away. */
int gb_accept(const gb_launch *launch, int listener, int milliseconds);

/* Connects to rank 0, which may begin to listen later, within so many seconds. Errors: IO. */
gumbel_status gb_connect(const gb_launch *launch, double seconds, int *socket, gumbel_error *error);

/* Another connection to where that one, of the launch, has come. Errors: IO. */
gumbel_status gb_connect_again(const gb_launch *launch, int first, int *socket, gumbel_error *error);

/* Sending and receiving take so many seconds at most; 0: as long as they do. */
void gb_limit_waiting(int socket, uint32_t seconds);

/* Two stretches of bytes, or size of them, whole. The second may be empty. False: the other side has gone,
 * or the socket was shut down, or the limit of gb_limit_waiting has passed. */
bool gb_send_all(int socket, const void *head, size_t head_size, const void *body, size_t body_size);
bool gb_receive_all(int socket, void *data, size_t size);

#endif
