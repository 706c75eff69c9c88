/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

#include "support/temporary.h"
#include "support/test_arguments.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct limits {
    uint64_t seed, cases, short_cases;
    double seconds;
} limits;

/* What parent and child both see. */
typedef struct shared_state {
    atomic_uint_fast64_t begun, done;
    uint64_t counts[MOST_COUNTS];
} shared_state;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void fail_case(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(NULL);
    _exit(1);
}

void hide_home(void) {
    static const char *const folders[] = {"HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        setenv(folders[i], temporary_directory(), 1);
}

size_t read_fault_count(const char *path) {
    size_t count = 0;
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%zu", &count) != 1)
        fail_case("%s: no number of calls or allocations", path);
    fclose(file);
    return count;
}

uint64_t random_bits(random_source *source) {
    uint64_t z = source->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t random_below(random_source *source, uint64_t limit) {
    return random_bits(source) % limit;
}

uint64_t neighbour_of(uint64_t number, random_source *source) {
    const uint64_t neighbours[] = {number + 1, number - 1, number * 2, number / 2};
    return neighbours[random_below(source, sizeof neighbours / sizeof *neighbours)];
}

void draw_tokens(random_source *source, uint32_t vocab_size, int32_t *tokens, size_t count) {
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int32_t)random_below(source, vocab_size);
}

uint64_t count_turns(const size_t *sizes, size_t count) {
    size_t largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = sizes[i] > largest ? sizes[i] : largest;
    return (uint64_t)count * largest;
}

bool choose_item(uint64_t seed, const size_t *sizes, size_t count, size_t *list, size_t *item) {
    enum { LARGE_PRIME = 1000003 };
    uint64_t turn = seed % count_turns(sizes, count);
    *list = (size_t)(turn % count);
    if (turn / count >= sizes[*list])
        return false;
    *item = (size_t)(turn / count * LARGE_PRIME % sizes[*list]);
    return true;
}

static void read_limits(int argument_count, char **arguments, limits *read) {
    *read = (limits){.seed = 1, .cases = UINT64_MAX, .seconds = 1e9};
    for (int i = 1; i < argument_count; i++) {
        const char *name = arguments[i], *value = i + 1 < argument_count ? arguments[++i] : "";
        char *end;
        uint64_t number = strtoull(value, &end, 10);
        if (strcmp(name, "--seed") == 0)
            read->seed = number;
        else if (strcmp(name, "--cases") == 0)
            read->cases = number;
        else if (strcmp(name, "--short") == 0)
            read->short_cases = number;
        else if (strcmp(name, "--seconds") == 0)
            read->seconds = (double)number;
        else
            end = "unknown";
        if (*value == '\0' || *end != '\0') {
            fprintf(stderr, "usage: %s [--seed N] [--cases N] [--seconds N] [--short N]\n", arguments[0]);
            exit(2);
        }
    }
    if (is_short_run() && read->short_cases > 0 && read->short_cases < read->cases)
        read->cases = read->short_cases;
}

#ifdef GUMBEL_SANITIZED
/* Sizes that a damaged file makes up are refused, as a system without so much memory does. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=4096";
}
__attribute__((weak)) void __lsan_do_leak_check(void); /* ThreadSanitizer has none */
static void limit_memory(void) {}
static void look_for_leaks(void) {
    if (__lsan_do_leak_check)
        __lsan_do_leak_check();
}
#else
/* A device's driver takes address space that is not memory. */
static void limit_memory(void) {
#ifdef GUMBEL_UNLIMITED_CASES
    return;
#endif
    const struct rlimit limit = {(rlim_t)8 << 30, (rlim_t)8 << 30};
    setrlimit(RLIMIT_AS, &limit);
}
static void look_for_leaks(void) {}
#endif

static void run_cases(const harness *h, const limits *given, shared_state *state) {
    limit_memory();
    double end = now() + given->seconds;
    for (uint64_t i = 0; i < given->cases && now() < end; i++) {
        atomic_fetch_add(&state->begun, 1);
        h->run_case(given->seed + i, state->counts);
        atomic_fetch_add(&state->done, 1);
    }
    look_for_leaks();
    fflush(NULL);
    _exit(0); /* the temporary directory is the parent's */
}

/* Waits for the child; kills it when one case takes too long. Returns its status. */
static int await_child(pid_t child, shared_state *state) {
    uint64_t last = 0;
    double since = now();
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        uint64_t begun = atomic_load(&state->begun);
        if (begun != last) {
            last = begun;
            since = now();
        }
        if (now() - since > CASE_SECONDS)
            kill(child, SIGKILL);
    }
    return status;
}

static void report(const harness *h, const limits *given, const shared_state *state, double seconds) {
    printf("%s: %" PRIu64 " cases", h->name, (uint64_t)state->done);
    if (h->case_count)
        printf(" of %" PRIu64, h->case_count());
    for (int i = 0; i < MOST_COUNTS && h->counted[i]; i++)
        printf(", %" PRIu64 " %s", state->counts[i], h->counted[i]);
    printf("; from seed %" PRIu64 ", %.0f s\n", given->seed, seconds);
}

int run_harness(const harness *h, int argument_count, char **arguments) {
    limits given;
    read_limits(argument_count, arguments, &given);
    shared_state *state =
        mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (state == MAP_FAILED)
        return perror("mmap"), 1;
    temporary_directory();
    if (h->prepare)
        h->prepare();
    if (h->case_count && h->case_count() < given.cases)
        given.cases = h->case_count();
    double start = now();
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return perror("fork"), 1;
    if (child == 0)
        run_cases(h, &given, state);
    int status = await_child(child, state);
    report(h, &given, state, now() - start);
    if (status == 0)
        return 0;
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s: signal %d%s\n", h->name, WTERMSIG(status),
                WTERMSIG(status) == SIGKILL ? " (the case took too long, or there was no memory)" : "");
    fprintf(stderr, "%s: case %" PRIu64 " failed; again: %s --seed %" PRIu64 " --cases 1\n", h->name,
            given.seed + state->done, arguments[0], given.seed + state->done);
    return 1;
}
