/* SPDX-License-Identifier: Apache-2.0
 *
 * What this machine has.
 */
#ifndef GUMBEL_BASE_MACHINE_H
#define GUMBEL_BASE_MACHINE_H

#include <stdint.h>

/* Bytes of memory, or what a container may use of them; 0 where the system does not say. */
uint64_t gb_machine_bytes(void);

#endif
