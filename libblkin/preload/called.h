/*
 * Messages of a connection that was made.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CALLED_H
#define BLKIN_PRELOAD_CALLED_H

#include "interaction.h"

/*
 * A connection is being made. is_on: for the request that certainly has caused this, if there is
 * one.
 */
void called_connects(int fd, const struct sockaddr *address, socklen_t length, bool is_on);

/* It is to be written to, as soon as that can be: as where one is being made. */
void called_will_write(struct connection *connection);

void called_has_read(struct connection *connection, int fd, size_t count);
void called_before_write(struct connection *connection, int fd);
void called_has_written(struct connection *connection, struct bytes head, size_t count);
void called_forget_opener(struct connection *connection);

#endif
