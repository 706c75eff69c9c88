/* SPDX-License-Identifier: Apache-2.0 */
#include "run/process_group.h"

#include "backends/ranks/processes/follow.h"
#include "base/versioned.h"
#include "program/verify/verifier.h"
#include "run/handles.h"

#include <string.h>

gumbel_status gumbel_process_group_join(uint32_t seconds, gumbel_process_group **group, gumbel_error *error) {
    enum { USUAL_SECONDS = 300 };
    gb_launch launch;
    *group = NULL;
    GB_TRY(gb_launch_read(&launch, error));
    return gb_processes_join(&launch, seconds > 0 ? seconds : USUAL_SECONDS, group, error);
}

gumbel_status gumbel_process_group_get_info(const gumbel_process_group *group,
                                            gumbel_process_group_info *info, gumbel_error *error) {
    GB_TRY(gb_check_versioned(info, "process group info", error));
    const gumbel_process_group_info full = {.size = sizeof full,
                                            .rank = group->launch.rank,
                                            .count = group->launch.count,
                                            .local_rank = group->launch.local_rank};
    gb_write_versioned(&full, sizeof full, info);
    return GUMBEL_OK;
}

static gumbel_status settle_device(const gumbel_process_group *group, const gb_backend_entry *entry,
                                   const gumbel_engine_options *options, int *device, gumbel_error *error) {
    int count = 1;
    if (entry->count_devices)
        GB_TRY(entry->count_devices(&count, error));
    *device = options->device_count > 0 ? options->devices[0] : (int)group->launch.local_rank % count;
    return GUMBEL_OK;
}

gumbel_status gb_settle_process(const gumbel_process_group *group, const gb_backend_entry *entry,
                                const gumbel_engine_options *options, int *device, gumbel_error *error) {
    if (options->device_count > 1)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%u devices of one process: expected one",
                       options->device_count);
    if (options->device_count > 0 && !options->devices)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "a device without its number");
    if (!entry->has_ranks && group->launch.count > 1)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "backend %s runs on one device", entry->name);
    return settle_device(group, entry, options, device, error);
}

static gumbel_status follow(gumbel_process_group *group, const gumbel_program *program,
                            const gumbel_engine_options *given, gumbel_error *error) {
    gumbel_engine_options options;
    const gb_backend_entry *entry;
    int device = 0;
    GB_TRY(gb_read_versioned(given, "engine options", &options, sizeof options, error));
    GB_TRY(gb_backend_find(options.backend, &entry, error));
    GB_TRY(gb_settle_process(group, entry, &options, &device, error));
    GB_TRY(gb_verify_weights(program->program, error));
    const gb_program *programs[] = {program->program, program->head ? program->head->program : NULL};
    const gb_followed followed = {
        .programs = programs,
        .program_count = program->head ? 2 : 1,
        .create = entry->create,
        .backend = entry->name,
        .options = {
            .device = device, .threads = options.threads, .cpu_isa = options.cpu_isa, .lock = options.lock}};
    return gb_processes_follow(group, &followed, error);
}

/* The others hear why this process does not. */
gumbel_status gumbel_process_group_follow(gumbel_process_group *group, const gumbel_program *program,
                                          const gumbel_engine_options *options, gumbel_error *error) {
    gumbel_error why;
    if (group->launch.rank == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "rank 0 follows nobody");
    const gumbel_status status = follow(group, program, options, &why);
    if (status == GUMBEL_OK)
        return status;
    if (strncmp(why.message, "rank ", 5) != 0)
        gb_prefix(&why, status, "rank %u", group->launch.rank);
    gb_fail(error, status, "%s", why.message);
    gb_meeting_break(gb_processes_meeting(group), &why);
    return status;
}

void gumbel_process_group_on_failure(gumbel_process_group *group,
                                     void (*on_failure)(void *user, const gumbel_error *error), void *user) {
    gb_processes_on_failure(group, on_failure, user);
}

void gumbel_process_group_leave(gumbel_process_group *group) {
    gb_processes_leave(group);
}
