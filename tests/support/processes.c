/* SPDX-License-Identifier: Apache-2.0 */
#include "support/processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_ENGINES = 16, MOST_PROCESSES = 16 };

typedef struct launched_engine {
    gumbel_engine *engine; /* NULL: none */
    gumbel_process_group *group;
    pid_t processes[MOST_PROCESSES];
    uint32_t count;
} launched_engine;

static launched_engine engines[MOST_ENGINES];
static unsigned launches;

static void set_number(const char *name, unsigned long number) {
    char text[24];
    snprintf(text, sizeof text, "%lu", number);
    setenv(name, text, 1);
}

/* The launch's name has the first process's number, since tests run beside each other. */
void set_launch(uint32_t rank, uint32_t count, unsigned launch) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", count);
    set_number("LOCAL_RANK", rank);
    set_number("LOCAL_WORLD_SIZE", count);
    set_number("MASTER_PORT", launch);
    set_number("TORCHELASTIC_RUN_ID", (unsigned long)(rank == 0 ? getpid() : getppid()));
}

static _Noreturn void follow(const gumbel_program *program, const gumbel_engine_options *options) {
    gumbel_process_group *group;
    gumbel_error error;
    gumbel_status status = gumbel_process_group_join(60, &group, &error);
    if (status == GUMBEL_OK) {
        status = gumbel_process_group_follow(group, program, options, &error);
        gumbel_process_group_leave(group);
    }
    _exit((int)status);
}

void fork_followers(const gumbel_program *program, const gumbel_engine_options *options, uint32_t count,
                    unsigned launch, pid_t *processes) {
    fflush(NULL);
    for (uint32_t rank = 1; rank < count; rank++) {
        processes[rank] = fork();
        assert_true(processes[rank] >= 0);
        if (processes[rank] > 0)
            continue;
        set_launch(rank, count, launch);
        follow(program, options);
    }
}

void await_followers(const pid_t *processes, uint32_t count, gumbel_status expected) {
    for (uint32_t rank = 1; rank < count; rank++) {
        int status = 0;
        assert_int_equal(waitpid(processes[rank], &status, 0), processes[rank]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), (int)expected);
    }
}

static launched_engine *find(const gumbel_engine *engine) {
    for (size_t i = 0; i < MOST_ENGINES; i++)
        if (engines[i].engine == engine)
            return &engines[i];
    return NULL;
}

gumbel_status engine_on_processes(const gumbel_program *program, const gumbel_engine_options *given,
                                  uint32_t count, gumbel_engine **engine, gumbel_error *error) {
    launched_engine *made = find(NULL);
    gumbel_engine_options options = {.size = sizeof options};
    assert_non_null(made);
    if (given)
        options = *given;
    options.least_sharded_weights = 1;
    *made = (launched_engine){.count = count};
    fork_followers(program, &options, count, ++launches, made->processes);
    set_launch(0, count, launches);
    gumbel_status status = gumbel_process_group_join(60, &made->group, error);
    options.process_group = made->group;
    if (status == GUMBEL_OK)
        status = gumbel_engine_create(program, &options, engine, error);
    made->engine = status == GUMBEL_OK ? *engine : NULL;
    if (status == GUMBEL_OK)
        return status;
    *engine = NULL;
    gumbel_process_group_leave(made->group);
    for (uint32_t rank = 1; rank < count; rank++)
        waitpid(made->processes[rank], NULL, 0);
    return status;
}

void end_engine_on_processes(gumbel_engine *engine) {
    launched_engine *made = engine ? find(engine) : NULL;
    gumbel_engine_destroy(engine);
    if (!made)
        return;
    made->engine = NULL;
    gumbel_process_group_leave(made->group);
    await_followers(made->processes, made->count, GUMBEL_OK);
}
