/* SPDX-License-Identifier: Apache-2.0
 *
 * What launchers say by variables: which rank of how many a process is, and where rank 0 is found.
 */
#include "backends/ranks/processes/launch.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* All that are read; the tests themselves may run under a launcher. */
static const char *const variables[] = {"RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID",
                                        "TORCHELASTIC_USE_AGENT_STORE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "OMPI_MCA_ess_base_jobid",
                                        "PMIX_NAMESPACE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMI_FD",
                                        "MPI_LOCALRANKID",
                                        "MPI_LOCALNRANKS",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_LOCALID",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID",
                                        "TMPDIR"};

static void clear(void) {
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
}

/* Words "NAME=value NAME=value", beside those that are set. */
static void add(const char *words) {
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        assert_non_null(equals);
        *equals = '\0';
        setenv(word, equals + 1, 1);
    }
}

static gb_launch read_launch(const char *words) {
    gb_launch launch;
    gumbel_error error;
    clear();
    add(words);
    assert_ok(gb_launch_read(&launch, &error), &error);
    return launch;
}

static void refuse(const char *words, const char *part) {
    gb_launch launch;
    gumbel_error error;
    clear();
    add(words);
    assert_fails(gb_launch_read(&launch, &error), GUMBEL_ERROR_ARGUMENT, &error, part);
}

static void assert_numbers(const gb_launch *launch, uint32_t rank, uint32_t count, uint32_t local_rank,
                           uint32_t local_count) {
    assert_int_equal(launch->rank, rank);
    assert_int_equal(launch->count, count);
    assert_int_equal(launch->local_rank, local_rank);
    assert_int_equal(launch->local_count, local_count);
}

/* A socket's file in folder whose name ends so. */
static void assert_file(const gb_launch *launch, const char *folder, const char *job) {
    char expected[512];
    snprintf(expected, sizeof expected, "%s/gumbel-%lu%s", folder, (unsigned long)getuid(), job);
    assert_string_equal(launch->path, expected);
    assert_string_equal(launch->host, "");
    assert_string_equal(launch->port, "");
}

static void assert_address(const gb_launch *launch, const char *host, const char *port) {
    assert_string_equal(launch->path, "");
    assert_string_equal(launch->host, host);
    assert_string_equal(launch->port, port);
}

/* ---- Launchers ----------------------------------------------------------------------------------------- */

#define TORCHRUN "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 "
#define OPEN_MPI                                                                                             \
    "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=2 "                            \
    "OMPI_COMM_WORLD_LOCAL_SIZE=3 "
#define MPICH "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 "
#define SLURM "SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=6 SLURM_LOCALID=1 SLURM_JOB_ID=77 SLURM_STEP_ID=3 "

static void torchrun_on_one_host(void **unused) {
    (void)unused;
    const gb_launch launch =
        read_launch(TORCHRUN "LOCAL_WORLD_SIZE=4 MASTER_ADDR=localhost MASTER_PORT=29500 "
                             "TORCHELASTIC_RUN_ID=a/b.c TMPDIR=/var/run");
    assert_numbers(&launch, 1, 4, 1, 4);
    assert_file(&launch, "/var/run", "-a-b-c-29500");
    const gb_launch by_hand = read_launch(TORCHRUN "LOCAL_WORLD_SIZE=4");
    assert_file(&by_hand, "/tmp", "--");
    const gb_launch empty = read_launch(TORCHRUN "LOCAL_WORLD_SIZE=4 TMPDIR=");
    assert_file(&empty, "/tmp", "--");
}

/* torchrun listens at the port itself, unless the first process does. */
static void torchrun_on_several_hosts(void **unused) {
    (void)unused;
    gb_launch launch = read_launch(TORCHRUN "LOCAL_WORLD_SIZE=2 MASTER_ADDR=first.example MASTER_PORT=29500 "
                                            "TORCHELASTIC_USE_AGENT_STORE=True");
    assert_numbers(&launch, 1, 4, 1, 2);
    assert_address(&launch, "first.example", "29501");
    launch = read_launch(TORCHRUN "LOCAL_WORLD_SIZE=2 MASTER_ADDR=::1 MASTER_PORT=29500 "
                                  "TORCHELASTIC_USE_AGENT_STORE=False");
    assert_address(&launch, "::1", "29500");
    launch = read_launch(TORCHRUN "LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=65534");
    assert_address(&launch, "10.0.0.1", "65534");
}

static void open_mpi(void **unused) {
    (void)unused;
    gb_launch launch = read_launch(OPEN_MPI "PMIX_NAMESPACE=9@1 OMPI_MCA_ess_base_jobid=12");
    assert_numbers(&launch, 2, 3, 2, 3);
    assert_file(&launch, "/tmp", "-9-1-12");
    launch = read_launch(OPEN_MPI "OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_ADDR=a MASTER_PORT=5000 "
                                  "TORCHELASTIC_USE_AGENT_STORE=True");
    assert_address(&launch, "a", "5000");
}

/* What tells two jobs from each other stands at the end of a long name. */
static void long_names_of_jobs(void **unused) {
    (void)unused;
    const gb_launch launch =
        read_launch(OPEN_MPI "PMIX_NAMESPACE=prterun-a-host-that-has-a-name-of-very-many-letters-31337@1");
    assert_file(&launch, "/tmp", "--has-a-name-of-very-many-letters-31337-1-");
}

/* Its processes have one parent; the descriptor by which that is asked is another in each. */
static void mpich(void **unused) {
    (void)unused;
    char job[64];
    gb_launch launch = read_launch(MPICH "MPI_LOCALNRANKS=2 PMI_FD=7");
    snprintf(job, sizeof job, "-%ld", (long)getppid());
    assert_numbers(&launch, 0, 2, 0, 2);
    assert_file(&launch, "/tmp", job);
}

static void slurm_on_one_host(void **unused) {
    (void)unused;
    const gb_launch launch = read_launch(SLURM "SLURM_STEP_TASKS_PER_NODE=6 SLURM_STEP_NODELIST=host");
    assert_numbers(&launch, 5, 6, 1, 6);
    assert_file(&launch, "/tmp", "-77-3");
}

static void slurm_on_several_hosts(void **unused) {
    (void)unused;
    static const struct {
        const char *hosts, *first;
    } cases[] = {{"node[07-09,12]", "node07"}, {"node[3,5]", "node3"},
                 {"node[10]", "node10"},       {"a,b", "a"},
                 {"a,node[1-2]", "a"},         {"host", "host"},
                 {"n[1-2],m[3-4]", "n1"},      {"gpu-a[001-128]", "gpu-a001"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[256];
        snprintf(words, sizeof words, SLURM "SLURM_STEP_TASKS_PER_NODE=2(x3) SLURM_STEP_NODELIST=%s",
                 cases[i].hosts);
        const gb_launch launch = read_launch(words);
        assert_numbers(&launch, 5, 6, 1, 2);
        assert_address(&launch, cases[i].first, "21235"); /* 20000 + (77 * 16 + 3) */
    }
    const gb_launch uneven = read_launch(SLURM "SLURM_STEP_TASKS_PER_NODE=3,2,1 SLURM_STEP_NODELIST=a,b,c "
                                               "MASTER_ADDR=b MASTER_PORT=1234");
    assert_numbers(&uneven, 5, 6, 1, 3);
    assert_address(&uneven, "b", "1234");
}

/* A script in a job of Slurm may start torchrun, and so may mpirun. */
static void the_nearest_launcher_counts(void **unused) {
    (void)unused;
    gb_launch launch = read_launch(SLURM "SLURM_STEP_TASKS_PER_NODE=6 " OPEN_MPI);
    assert_numbers(&launch, 2, 3, 2, 3);
    launch = read_launch(OPEN_MPI TORCHRUN "LOCAL_WORLD_SIZE=4");
    assert_numbers(&launch, 1, 4, 1, 4);
    launch = read_launch("RANK=0 WORLD_SIZE=4 " OPEN_MPI); /* torchrun sets all four */
    assert_numbers(&launch, 2, 3, 2, 3);
}

/* ---- What is refused ----------------------------------------------------------------------------------- */

static void without_a_launcher(void **unused) {
    (void)unused;
    refuse("", "no launcher has started this process");
    refuse("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0", "no launcher has started this process");
}

static void nonsense(void **unused) {
    (void)unused;
    static const char *const cases[][2] = {
        {"WORLD_SIZE=", "WORLD_SIZE is \"\""},
        {"WORLD_SIZE=two", "WORLD_SIZE is \"two\""},
        {"WORLD_SIZE=0", "WORLD_SIZE is \"0\": expected 1 to 16"},
        {"WORLD_SIZE=17", "WORLD_SIZE is \"17\": expected 1 to 16"},
        {"WORLD_SIZE=-1", "WORLD_SIZE is \"-1\""},
        {"WORLD_SIZE=0x2", "WORLD_SIZE is \"0x2\""},
        {"WORLD_SIZE=99999999999999999999999999", "WORLD_SIZE is \"99999999999999999999999999\""},
        {"WORLD_SIZE=4294967298", "WORLD_SIZE is \"4294967298\""},
        {"RANK=2", "RANK is \"2\": expected 0 to 1"},
        {"RANK=1x", "RANK is \"1x\""},
        {"RANK=1.0", "RANK is \"1.0\""},
        {"LOCAL_RANK=2", "LOCAL_RANK is \"2\": expected 0 to 1"},
        {"LOCAL_WORLD_SIZE=3", "LOCAL_WORLD_SIZE is \"3\": expected 1 to 2"},
        {"LOCAL_WORLD_SIZE=0", "LOCAL_WORLD_SIZE is \"0\": expected 1 to 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[256];
        snprintf(words, sizeof words, "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 %s", cases[i][0]);
        refuse(words, cases[i][1]);
    }
}

static void addresses_that_are_none(void **unused) {
    (void)unused;
#define HALF "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "
    refuse(HALF, "set MASTER_ADDR to its host and MASTER_PORT");
    refuse(HALF "MASTER_ADDR=a", "set MASTER_ADDR to its host and MASTER_PORT");
    refuse(HALF "MASTER_ADDR=a MASTER_PORT=0", "MASTER_PORT is \"0\": expected 1 to");
    refuse(HALF "MASTER_ADDR=a MASTER_PORT=65536", "MASTER_PORT is \"65536\": expected 1 to");
    refuse(HALF "MASTER_ADDR=a MASTER_PORT=http", "MASTER_PORT is \"http\"");
}

static void a_folder_with_a_long_name(void **unused) {
    (void)unused;
    char words[512] = TORCHRUN "LOCAL_WORLD_SIZE=4 TMPDIR=/";
    while (strlen(words) < 200)
        strcat(words, "folder/");
    refuse(words, "set TMPDIR to a shorter folder");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torchrun_on_one_host),
        cmocka_unit_test(torchrun_on_several_hosts),
        cmocka_unit_test(open_mpi),
        cmocka_unit_test(long_names_of_jobs),
        cmocka_unit_test(mpich),
        cmocka_unit_test(slurm_on_one_host),
        cmocka_unit_test(slurm_on_several_hosts),
        cmocka_unit_test(the_nearest_launcher_counts),
        cmocka_unit_test(without_a_launcher),
        cmocka_unit_test(nonsense),
        cmocka_unit_test(addresses_that_are_none),
        cmocka_unit_test(a_folder_with_a_long_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
