/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/processes/launch.h"

#include "backends/ranks/meeting.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names of variables. Those of a job name it among all of this user, so that its processes find each other.
 */
typedef struct launcher {
    const char *rank, *count, *local_rank, *local_count;
    const char *job[3]; /* NULL where there are fewer */
} launcher;

/* torchrun's, which scripts set by hand, too; then Open MPI's and MPICH's mpirun, which a job of Slurm may
 * start; then srun's. */
static const launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {NULL}},
    {"SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

enum { TORCHRUN = 0, MPICH = 2, SLURM = 3 };

/* ---- Numbers ------------------------------------------------------------------------------------------- */

/* Digits at the start of a variable: "2(x3)" is Slurm's way to say that three hosts have 2 tasks each. */
static gumbel_status read_number(const char *name, uint32_t least, uint32_t most, uint32_t *number,
                                 gumbel_error *error) {
    const char *text = getenv(name);
    char *end = NULL;
    const unsigned long value = text && isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
    if (!end || (*end != '\0' && *end != '(' && *end != ',') || value < least || value > most)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the launcher's %s is \"%.40s\": expected %u to %u",
                       name, text ? text : "", least, most);
    *number = (uint32_t)value;
    return GUMBEL_OK;
}

static gumbel_status read_numbers(const launcher *l, gb_launch *launch, gumbel_error *error) {
    GB_TRY(read_number(l->count, 1, GB_MOST_RANKS, &launch->count, error));
    GB_TRY(read_number(l->rank, 0, launch->count - 1, &launch->rank, error));
    GB_TRY(read_number(l->local_count, 1, launch->count, &launch->local_count, error));
    return read_number(l->local_rank, 0, launch->count - 1, &launch->local_rank, error);
}

/* ---- Where rank 0 is ----------------------------------------------------------------------------------- */

static const char *folder_of_sockets(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* Of a long name the end, where a job's number stands; a host's name stands before it. */
static void append_part(const char *part, char *name, size_t size) {
    enum { MOST = 40 };
    const size_t length = strlen(name), of_part = part ? strlen(part) : 0;
    snprintf(name + length, size - length, "-%s", part ? part + (of_part > MOST ? of_part - MOST : 0) : "");
}

static void name_job(const launcher *l, char *name, size_t size) {
    for (size_t i = 0; i < sizeof l->job / sizeof *l->job && l->job[i]; i++)
        append_part(getenv(l->job[i]), name, size);
    for (char *c = name; *c; c++)
        *c = isalnum((unsigned char)*c) ? *c : '-';
}

/* MPICH names no job, but its processes on a host have one parent. */
static gumbel_status name_socket(const launcher *l, gb_launch *launch, gumbel_error *error) {
    char parent[24] = "";
    if (l == &launchers[MPICH])
        snprintf(parent, sizeof parent, "-%ld", (long)getppid());
    const int length = snprintf(launch->path, sizeof launch->path, "%s/gumbel-%lu%s%s", folder_of_sockets(),
                                (unsigned long)getuid(), launch->job, parent);
    if (length > 0 && (size_t)length < sizeof launch->path)
        return GUMBEL_OK;
    launch->path[0] = '\0';
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "%s: too long for the socket by which processes meet; set TMPDIR to a shorter folder",
                   folder_of_sockets());
}

/* torchrun itself listens at its port, but where it says otherwise. */
static bool is_port_taken(const launcher *l) {
    const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE");
    return l == &launchers[TORCHRUN] && store && strcmp(store, "True") == 0;
}

/* The first of Slurm's hosts: "node[07-09,12]-ib" or "a,b". */
static void read_first_host(const char *list, char *host, size_t size) {
    const size_t length = strcspn(list, "[,");
    const char *first = list + length + 1, *end = list[length] == '[' ? strchr(first, ']') : NULL;
    if (end)
        snprintf(host, size, "%.*s%.*s%.*s", (int)length, list, (int)strcspn(first, "-,]"), first,
                 (int)strcspn(end + 1, ","), end + 1);
    else
        snprintf(host, size, "%.*s", (int)length, list);
}

/* A job's own, where nobody has named one: those above 20000 that no service is registered for are many. */
static uint32_t port_of_job(void) {
    enum { FIRST = 20000, PORTS = 10000, STEPS = 16 };
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    return (uint32_t)(FIRST +
                      (strtoul(job ? job : "0", NULL, 10) * STEPS + strtoul(step ? step : "0", NULL, 10)) %
                          PORTS);
}

static gumbel_status find_address(const launcher *l, gb_launch *launch, gumbel_error *error) {
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT"),
               *hosts = l == &launchers[SLURM] ? getenv("SLURM_STEP_NODELIST") : NULL;
    if (host && port) {
        uint32_t number;
        GB_TRY(read_number("MASTER_PORT", 1, UINT16_MAX - 1, &number, error));
        snprintf(launch->host, sizeof launch->host, "%s", host);
        snprintf(launch->port, sizeof launch->port, "%u", number + is_port_taken(l));
        return GUMBEL_OK;
    }
    if (!hosts)
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "processes on several hosts meet at rank 0: set MASTER_ADDR to its host and MASTER_PORT "
            "to a free port there, for all of them (mpirun -x MASTER_ADDR -x MASTER_PORT)");
    read_first_host(hosts, launch->host, sizeof launch->host);
    snprintf(launch->port, sizeof launch->port, "%u", port_of_job());
    return GUMBEL_OK;
}

static bool has_started(const launcher *l) {
    return getenv(l->rank) && getenv(l->count) && getenv(l->local_rank) && getenv(l->local_count);
}

gumbel_status gb_launch_read(gb_launch *launch, gumbel_error *error) {
    *launch = (gb_launch){0};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const launcher *l = &launchers[i];
        if (!has_started(l))
            continue;
        GB_TRY(read_numbers(l, launch, error));
        name_job(l, launch->job, sizeof launch->job);
        return launch->local_count == launch->count ? name_socket(l, launch, error)
                                                    : find_address(l, launch, error);
    }
    return gb_fail(
        error, GUMBEL_ERROR_ARGUMENT,
        "no launcher has started this process: neither torchrun, mpirun nor srun says which rank it "
        "is (RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE)");
}
