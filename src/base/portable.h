/* SPDX-License-Identifier: Apache-2.0
 *
 * What Linux has by one name, and macOS by another, in another header, or not at all.
 */
#ifndef GUMBEL_BASE_PORTABLE_H
#define GUMBEL_BASE_PORTABLE_H

#include <sys/stat.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <sys/random.h> /* getentropy */
#include <sys/socket.h>

#define st_mtim st_mtimespec
#define fdatasync fsync
#if !defined(SOCK_CLOEXEC)
#define SOCK_CLOEXEC 0
#endif
#endif

#endif
