/*
 * The address of an HTTP server: "[ADDRESS:]PORT".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_LISTEN_H
#define BLKIN_BASE_LISTEN_H

#include "error.h"

#include <stdbool.h>

struct listen_address {
    char host[64]; /* numeric; default: 127.0.0.1 */
    char port[8];
};

/* Parses "9464", "10.0.0.3:9464" or "[::1]:9464". Returns false with error set; the message names
 * key and text. */
bool listen_parse(struct listen_address *address, const char *key, const char *text,
                  struct error *error);

/* Returns a non-blocking listening socket, or -1 with error set. The message names key and text. */
int listen_open(const struct listen_address *address, const char *key, const char *text,
                struct error *error);

#define LISTEN_URL_MAX 96

/* Writes "http://127.0.0.1:9464", with the port that the kernel chose if the address has port 0. */
void listen_url(const struct listen_address *address, int fd, const char *scheme,
                char url[LISTEN_URL_MAX]);

#endif
