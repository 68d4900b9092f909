/*
 * Where an HTTP server listens: "[ADDRESS:]PORT".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_LISTEN_H
#define BLKIN_BASE_LISTEN_H

#include "error.h"

#include <stdbool.h>

struct listen_address {
    char host[64]; /* numeric; 127.0.0.1 unless given */
    char port[8];
};

/* Takes "9464", "10.0.0.3:9464" or "[::1]:9464". Errors name the key and the text. Returns false
 * with error set. */
bool listen_parse(struct listen_address *address, const char *key, const char *text,
                  struct error *error);

/* Returns a listening socket, non-blocking, or -1 with error set; key and text are for it. */
int listen_open(const struct listen_address *address, const char *key, const char *text,
                struct error *error);

#define LISTEN_URL_MAX 96

/* "http://127.0.0.1:9464", with the port that the kernel chose if the address has port 0. */
void listen_url(const struct listen_address *address, int fd, const char *scheme,
                char url[LISTEN_URL_MAX]);

#endif
