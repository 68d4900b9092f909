/*
 * A trace without events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "nothing.h"

#include "tools/base/folders.h"

#include <endian.h>
#include <stdio.h>

static const char nothing_metadata[] =
    "/* CTF 1.8 */\n"
    "typealias integer { size = 64; align = 8; } := u64;\n"
    "trace { major = 1; minor = 8; byte_order = le; };\n"
    "clock { name = monotonic; freq = 1000000000; offset = 0; };\n"
    "typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := ns;\n"
    "stream {\n"
    "    packet.context := struct {\n"
    "        ns timestamp_begin; ns timestamp_end; u64 content_size; u64 packet_size;\n"
    "    };\n"
    "    event.header := struct { ns timestamp; };\n"
    "};\n"
    "event { name = none; fields := struct { u64 nothing; }; };\n";

static bool write_file(const char *folder, const char *name, const void *data, size_t size)
{
    char path[PATH_ROOM];
    FILE *file;
    bool is_whole;

    path_set(path, "%s/%s", folder, name);
    file = fopen(path, "we");
    is_whole = file && fwrite(data, 1, size, file) == size;
    return file && fclose(file) == 0 && is_whole;
}

bool nothing_make(const char *folder, int64_t end_ns)
{
    const uint64_t packet[4] = {htole64((uint64_t)end_ns), htole64((uint64_t)end_ns),
                                htole64(8 * sizeof(packet)), htole64(8 * sizeof(packet))};

    return tree_remove(folder) && folder_make(folder) &&
           write_file(folder, "metadata", nothing_metadata, sizeof(nothing_metadata) - 1) &&
           (!end_ns || write_file(folder, "stream", packet, sizeof(packet)));
}
