/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-th call of the system or the n-th allocation of a server fails, from main() on or from its first
 * request on. It does not start and says why, or answers rightly, with an error, or not at all on that
 * connection; the request after the fault is answered rightly, and no descriptor is left.
 */
#include "bundled.h"
#include "cases.h"
#include "failing_calls.h"
#include "fault_command.h"
#include "served.h"
#include "support/temporary.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAULTS_MADE, NOT_STARTED, RIGHT, ERRORS, CLOSED };
enum { ALLOCATION = CALL_KILLS, KINDS, PHASES = 2, LISTS = KINDS * PHASES }; /* kinds of calls come first */
enum { REQUESTS = 4, HEALTH = 0, STREAMED = 2, BAD = 3 };

#define MESSAGES                                                                                             \
    "\"messages\":[{\"role\":\"user\",\"content\":\"Why is the sky blue?\"}],\"seed\":7,\"max_tokens\":6"

static const char *const kinds[KINDS] = {"failed call", "call on a full disk", "interrupted call",
                                         "short call", "allocation"};
static const struct {
    const char *path, *body;
} requests[REQUESTS] = {{"/health", NULL},
                        {"/v1/chat/completions", "{" MESSAGES "}"},
                        {"/v1/chat/completions", "{" MESSAGES ",\"stream\":true}"},
                        {"/v1/chat/completions", "{\"messages\":5}"}};
static size_t calls[LISTS];
static char expected[4096];
static reply given;

typedef struct faulty_server {
    size_t kind, nth;
    bool is_asked_first; /* faults begin with the requests */
    char name[96];
    size_t descriptors;
    served server;
} faulty_server;

/* ---- The server ---------------------------------------------------------------------------------------- */

static faulty_server server_of(size_t list, size_t nth) {
    faulty_server s = {.kind = list % KINDS, .nth = nth, .is_asked_first = list >= KINDS};
    snprintf(s.name, sizeof s.name, "%s %zu %s", kinds[s.kind], nth,
             s.is_asked_first ? "of the requests" : "from the start");
    return s;
}

static void set_environment(const faulty_server *s) {
    char call[48], nth[32];
    snprintf(call, sizeof call, "%zu %zu", s->kind, s->nth);
    snprintf(nth, sizeof nth, "%zu", s->nth);
    setenv("GUMBEL_FAILING_CALL", call, 1);
    setenv("GUMBEL_FAILING_ALLOCATION", nth, 1);
    setenv("GUMBEL_TELL_FAULTS", "1", 1);
    if (s->is_asked_first)
        setenv("GUMBEL_FAULTS_FROM", "signal", 1);
    else
        unsetenv("GUMBEL_FAULTS_FROM");
}

static bool start(faulty_server *s) {
    const char *const words[] = {s->kind == ALLOCATION ? GUMBEL_FAILING_MALLOC : GUMBEL_FAILING_CALLS,
                                 "serve",
                                 bundled_path(BUNDLED_GEMMA_INT4),
                                 "--port",
                                 "0",
                                 "--parallel",
                                 "2",
                                 "--threads",
                                 "2",
                                 "--max-context",
                                 "256",
                                 "--no-sandbox",
                                 NULL};
    set_environment(s);
    if (!start_server(&s->server, words))
        return false;
    s->descriptors = descriptors_of_server(&s->server);
    if (s->is_asked_first)
        kill(s->server.process, SIGUSR2);
    if (s->is_asked_first && !await_said(FAULTS_BEGIN))
        fail_case("%s: the faults do not begin", s->name);
    return true;
}

static bool is_made(void) {
    return strstr(said_by_server(), FAULT_MADE);
}

static bool changes_nothing(const faulty_server *s) {
    return s->kind == CALL_IS_INTERRUPTED || s->kind == CALL_IS_SHORT;
}

/* ---- Answers ------------------------------------------------------------------------------------------- */

/* Appends what the first choice of an answer, or of a part of a stream, has as its text. */
static void add_content(const char *json, size_t length, char *text) {
    json_t *value = json_loadb(json, length, 0, NULL);
    const json_t *choice = json_array_get(json_object_get(value, "choices"), 0);
    const json_t *message = json_object_get(choice, "message");
    const char *content =
        json_string_value(json_object_get(message ? message : json_object_get(choice, "delta"), "content"));
    if (content)
        strncat(text, content, sizeof expected - 1 - strlen(text));
    json_decref(value);
}

/* Whether a stream, whose events are lines, is at its end. */
static bool read_events(const char *body, char *text) {
    static const char mark[] = "data: ";
    bool is_done = false;
    for (const char *line = strstr(body, mark); line; line = strstr(line, mark)) {
        line += sizeof mark - 1;
        is_done = is_done || strncmp(line, "[DONE]", 6) == 0;
        add_content(line, strcspn(line, "\n"), text);
    }
    return is_done;
}

static bool has_right_text(size_t which) {
    char text[sizeof expected] = "";
    bool is_done = true;
    if (which == STREAMED)
        is_done = read_events(given.body, text);
    else
        add_content(given.body, strlen(given.body), text);
    return is_done && strcmp(text, expected) == 0;
}

/* Of a stream that was cut, what has come is a beginning. */
static bool has_right_beginning(void) {
    char text[sizeof expected] = "";
    read_events(given.body, text);
    return strncmp(text, expected, strlen(text)) == 0;
}

static bool is_right(size_t which) {
    if (!given.is_whole || given.status != (which == BAD ? 400 : 200))
        return false;
    if (which == BAD || which == HEALTH)
        return strstr(given.body, which == BAD ? "message" : "ok");
    return has_right_text(which);
}

static bool is_error(size_t which) {
    const bool is_told = strstr(given.body, "message");
    return given.is_whole && is_told &&
           (given.status >= 400 || (which == STREAMED && given.status == 200 && has_right_beginning()));
}

static bool is_closed(size_t which) {
    return !given.is_whole && (given.status != 200 || which != STREAMED || has_right_beginning());
}

static void ask(const faulty_server *s, size_t which, bool must_be_right, uint64_t *counts) {
    ask_server(&s->server, requests[which].path, requests[which].body, &given);
    const size_t outcome = is_right(which) ? RIGHT : is_error(which) ? ERRORS : CLOSED;
    counts[outcome]++;
    if (given.has_timed_out)
        fail_case("%s: request %zu has no answer; %s", s->name, which, said_by_server());
    if ((outcome == CLOSED && !is_closed(which)) || (outcome != RIGHT && must_be_right))
        fail_case("%s: request %zu: status %d%s \"%s\"; %s", s->name, which, given.status,
                  given.is_whole ? "" : ", cut,", given.body, said_by_server());
    if (outcome == ERRORS && which != BAD && getenv("GUMBEL_SHOW_ERRORS"))
        fprintf(stderr, "%s: request %zu: %s\n", s->name, which, given.body);
}

/* ---- A life -------------------------------------------------------------------------------------------- */

/* Connections are closed a little after the client has seen their end. */
static void check_descriptors(const faulty_server *s, size_t expected_more) {
    enum { TURNS = 500 };
    size_t now = 0;
    for (int i = 0; i < TURNS; i++) {
        now = descriptors_of_server(&s->server);
        if (now <= s->descriptors + expected_more)
            return;
        nanosleep(&(const struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_case("%s: %zu descriptors, and there were %zu; %s", s->name, now, s->descriptors, said_by_server());
}

static void check_not_started(const faulty_server *s) {
    if (s->server.status != 1 || !strstr(said_by_server(), "gumbel: ") || changes_nothing(s))
        fail_case("%s: it does not start, status %d; %s", s->name, s->server.status, said_by_server());
}

static void check_end(faulty_server *s) {
    end_server(&s->server);
    const bool is_told = s->server.status == 1 && strstr(said_by_server(), "gumbel: ");
    if (s->server.status != 0 && (!is_told || changes_nothing(s)))
        fail_case("%s: it ends with status %d; %s", s->name, s->server.status, said_by_server());
}

static void live(faulty_server *s, uint64_t *counts) {
    if (!start(s)) {
        counts[NOT_STARTED]++;
        check_not_started(s);
        return;
    }
    for (size_t i = 0; i < REQUESTS; i++)
        ask(s, i, changes_nothing(s), counts);
    const bool was_made = is_made();
    for (size_t i = 1; i <= STREAMED; i++)
        ask(s, i, was_made || changes_nothing(s), counts);
    check_descriptors(s, 0);
    check_end(s);
}

static void fail_something(uint64_t seed, uint64_t *counts) {
    size_t list, item;
    if (!choose_item(seed, calls, LISTS, &list, &item))
        return;
    faulty_server s = server_of(list, item + 1);
    live(&s, counts);
    counts[FAULTS_MADE] += is_made();
}

/* ---- How many there are -------------------------------------------------------------------------------- */

static void read_expected(faulty_server *s) {
    ask_server(&s->server, requests[1].path, requests[1].body, &given);
    expected[0] = '\0';
    add_content(given.body, strlen(given.body), expected);
    if (!given.is_whole || expected[0] == '\0')
        fail_case("no answer: %s; %s", given.body, said_by_server());
}

static void count_one(size_t list) {
    uint64_t counts[MOST_COUNTS] = {0};
    const char *file = temporary_path("count");
    faulty_server s = server_of(list, 0);
    unlink(file);
    if (!start(&s))
        fail_case("it does not start: %s", said_by_server());
    if (expected[0] == '\0')
        read_expected(&s);
    for (size_t i = 0; i < REQUESTS; i++)
        ask(&s, i, true, counts);
    check_descriptors(&s, 0);
    check_end(&s);
    calls[list] = read_fault_count(file);
}

static void count_all(void) {
    export_bundled();
    hide_home();
    setenv("GUMBEL_CALL_COUNT", temporary_path("count"), 1);
    setenv("GUMBEL_ALLOCATION_COUNT", temporary_path("count"), 1);
    for (size_t i = 0; i < LISTS; i++)
        count_one(i);
    if (getenv("GUMBEL_SHOW_ERRORS"))
        for (size_t i = 0; i < LISTS; i++)
            fprintf(stderr, "%s: %zu\n", server_of(i, 0).name, calls[i]);
}

static uint64_t count_cases(void) {
    return count_turns(calls, LISTS);
}

int main(int argument_count, char **arguments) {
    static const harness h = {
        .name = "serve_faults",
        .counted = {"faults", "not started", "right answers", "errors", "closed connections"},
        .prepare = count_all,
        .case_count = count_cases,
        .run_case = fail_something};
    return run_harness(&h, argument_count, arguments);
}
