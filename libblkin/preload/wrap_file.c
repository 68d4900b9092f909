/*
 * Wrappers of the calls that are of files only. read(2), write(2) and their like, which are of
 * sockets too, are in wrap_socket.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "file.h"
