/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients of a server under measurement, in a process of their own: each sends one request and reads its
 * stream to the end.
 */
#ifndef GUMBEL_BENCH_CLIENTS_H
#define GUMBEL_BENCH_CLIENTS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_CLIENTS = 256 };

/* Request i has this body, "%u" of which is i. */
typedef struct clients {
    uint16_t port;
    uint32_t count;
    const char *body;
} clients;

typedef struct client {
    const clients *all;
    uint32_t index;
    pthread_t thread;
} client;

static void *read_stream(void *user) {
    const client *c = user;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(c->all->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char body[1024], buffer[65536];
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (const struct sockaddr *)&address, sizeof address) != 0)
        return NULL;
    const char *number = strstr(c->all->body, "%u");
    if (number)
        snprintf(body, sizeof body, "%.*s%u%s", (int)(number - c->all->body), c->all->body, c->index,
                 number + 2);
    else
        snprintf(body, sizeof body, "%s", c->all->body);
    dprintf(connection,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
            "%zu\r\n\r\n%s",
            strlen(body), body);
    while (read(connection, buffer, sizeof buffer) > 0) {
    }
    close(connection);
    return NULL;
}

static void read_all(const clients *all) {
    static client each[MOST_CLIENTS];
    for (uint32_t i = 0; i < all->count; i++) {
        each[i] = (client){.all = all, .index = i};
        pthread_create(&each[i].thread, NULL, read_stream, &each[i]);
    }
    for (uint32_t i = 0; i < all->count; i++)
        pthread_join(each[i].thread, NULL);
}

/* Returns when all streams have ended. */
static inline void run_clients(const clients *all) {
    const pid_t process = fork();
    if (process == 0) {
        read_all(all);
        _exit(0);
    }
    waitpid(process, NULL, 0);
}

#endif
