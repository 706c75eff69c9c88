/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of a backend, as its driver tells them.
 */
#ifndef GUMBEL_BACKENDS_DEVICES_H
#define GUMBEL_BACKENDS_DEVICES_H

#include "base/status.h"

#include <stdint.h>

enum { GB_DEVICE_NAME = 320 };

typedef struct gb_device_info {
    int number;
    char name[GB_DEVICE_NAME];
    uint64_t memory_bytes, free_bytes;
    double bytes_per_second; /* at which its memory can be read at most; 0: not known */
} gb_device_info;

/* Fills in the devices that can share a program with the first, which is at [0]: of its kind, and each
 * reaches the memory of the others. capacity: of devices, at least 1. Errors: BACKEND (there is none),
 * UNSUPPORTED (not in this build). */
typedef gumbel_status (*gb_list_devices)(gb_device_info *devices, uint32_t capacity, uint32_t *count,
                                         gumbel_error *error);

#endif
