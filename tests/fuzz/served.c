/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* strcasestr */
#include "served.h"

#include "cases.h"
#include "support/temporary.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEPS_A_SECOND = 200 };

static void wait_a_step(void) {
    nanosleep(&(const struct timespec){.tv_nsec = 1000000000 / STEPS_A_SECOND}, NULL);
}

/* ---- The process --------------------------------------------------------------------------------------- */

static _Noreturn void become(const char *const *words) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int errors = open(temporary_path("said"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    close(nothing);
    close(errors);
    execv(words[0], (char *const *)(uintptr_t)words);
    _exit(99);
}

const char *said_by_server(void) {
    static char text[1 << 16];
    const int file = open(temporary_path("said"), O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

bool await_said(const char *text) {
    for (int i = 0; i < SERVED_SECONDS * STEPS_A_SECOND; i++) {
        if (strstr(said_by_server(), text))
            return true;
        wait_a_step();
    }
    return false;
}

static bool has_ended(served *server) {
    int status;
    if (waitpid(server->process, &status, WNOHANG) != server->process)
        return false;
    server->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

static void kill_server(served *server) {
    kill(server->process, SIGKILL);
    waitpid(server->process, NULL, 0);
    server->status = -1;
}

bool start_server(served *server, const char *const *words) {
    unlink(temporary_path("said"));
    fflush(NULL);
    *server = (served){.process = fork()};
    if (server->process == 0)
        become(words);
    for (int i = 0; i < SERVED_SECONDS * STEPS_A_SECOND; i++) {
        const char *place = strstr(said_by_server(), "listening on http://127.0.0.1:");
        if (place && strchr(place, '\n') &&
            sscanf(place, "listening on http://127.0.0.1:%u", &server->port) == 1)
            return true;
        if (has_ended(server))
            return false;
        wait_a_step();
    }
    kill_server(server);
    return false;
}

void end_server(served *server) {
    kill(server->process, SIGTERM);
    for (int i = 0; i < SERVED_SECONDS * STEPS_A_SECOND; i++) {
        if (has_ended(server))
            return;
        wait_a_step();
    }
    kill_server(server);
}

size_t descriptors_of_server(const served *server) {
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)server->process);
    DIR *folder = opendir(path);
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* ---- The client ---------------------------------------------------------------------------------------- */

static int connect_to(const served *server) {
    const struct timeval limit = {.tv_sec = SERVED_SECONDS};
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)server->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(made, (const struct sockaddr *)&address, sizeof address) == 0)
        return made;
    close(made);
    return -1;
}

static void send_request(int connection, const char *path, const char *body) {
    static char request[1 << 13];
    const int length = snprintf(request, sizeof request,
                                "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                body ? "POST" : "GET", path, body ? strlen(body) : 0, body ? body : "");
    if (send(connection, request, (size_t)length, MSG_NOSIGNAL) != length)
        return; /* it was closed, as the answer says */
}

static size_t receive(int connection, char *text, size_t capacity, bool *has_timed_out) {
    const time_t end = time(NULL) + SERVED_SECONDS; /* pings are no answer */
    size_t length = 0;
    ssize_t count;
    while ((count = recv(connection, text + length, capacity - 1 - length, 0)) > 0 && time(NULL) <= end)
        length += (size_t)count;
    *has_timed_out = count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
    text[length] = '\0';
    return length;
}

/* Whether the chunk that ends the body has come. */
static bool join_chunks(const char *from, char *to) {
    char *rest;
    for (;;) {
        const size_t size = strtoul(from, &rest, 16), left = strlen(from);
        const size_t head = (size_t)(rest - from) + 2;
        if (rest == from || strncmp(rest, "\r\n", 2) != 0)
            break;
        if (size == 0)
            return *to = '\0', true;
        if (left < head + size + 2)
            break;
        memcpy(to, from + head, size);
        to += size;
        from += head + size + 2;
    }
    *to = '\0';
    return false;
}

static bool take_body(const char *head, const char *body, char *to) {
    const char *length = strcasestr(head, "\r\nContent-Length:");
    const bool has_length = length && length < body;
    if (!has_length)
        return join_chunks(body, to);
    strcpy(to, body);
    return strlen(body) == strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
}

void ask_server(const served *server, const char *path, const char *body, reply *given) {
    static char text[sizeof given->body];
    memset(given, 0, offsetof(reply, body) + 1);
    const int connection = connect_to(server);
    if (connection < 0)
        return;
    send_request(connection, path, body);
    receive(connection, text, sizeof text, &given->has_timed_out);
    close(connection);
    const char *end = strstr(text, "\r\n\r\n");
    if (!end || sscanf(text, "HTTP/1.1 %d", &given->status) != 1)
        return;
    given->is_whole = take_body(text, end + 4, given->body);
}
