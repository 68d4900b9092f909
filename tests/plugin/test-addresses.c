/*
 * Addresses to listen on are parsed, and endpoints are shown without their secrets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/account/account.h"
#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/base/listen.h"
#include "check.h"

#include <unistd.h>

static void check_address(const char *text, const char *host, const char *port)
{
    struct listen_address address;
    struct error error;

    if (!host) {
        CHECK(!listen_parse(&address, "prometheus-listen", text, &error));
        CHECK(strstr(error.text, "prometheus-listen") != NULL);
        return;
    }
    CHECK(listen_parse(&address, "prometheus-listen", text, &error));
    CHECK_TEXT(address.host, host);
    CHECK_TEXT(address.port, port);
}

TEST(test_addresses)
{
    static const char *const wrong[] = {
        "",     ":",         ":9464",       "x",          "65536",       "99999999999",
        "-1",   "+1",        " 1",          "1 ",         "localhost:1", "127.0.0.1:",
        "[]:1", "[::1]",     "[::1]:",      "::1:9464",   "[::1:9464",   "[127.0.0.1]:1",
        "0x1",  "1.2.3:464", "1.2.3.4.5:1", "[::g]:9464",
    };
    char long_text[4096];

    check_address("9464", "127.0.0.1", "9464");
    check_address("0", "127.0.0.1", "0");
    check_address("0.0.0.0:65535", "0.0.0.0", "65535");
    check_address("[::1]:9464", "::1", "9464");
    check_address("[::]:1", "::", "1");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        check_address(wrong[i], NULL, NULL);
    memset(long_text, '1', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    check_address(long_text, NULL, NULL);
    long_text[4000] = ':';
    check_address(long_text, NULL, NULL);
}

static void check_url(const char *text, const char *start)
{
    struct listen_address address;
    char url[LISTEN_URL_MAX];
    struct error error;
    int fd;

    CHECK(listen_parse(&address, "otlp-listen", text, &error));
    fd = listen_open(&address, "otlp-listen", text, &error);
    CHECK(fd >= 0);
    listen_url(&address, fd, "https", url);
    CHECK(strncmp(url, start, strlen(start)) == 0 && atoi(url + strlen(start)) > 0);
    close(fd);
}

TEST(test_urls)
{
    check_url("0", "https://127.0.0.1:");
    check_url("0.0.0.0:0", "https://0.0.0.0:");
    check_url("[::1]:0", "https://[::1]:");
}

static void check_shown(const char *endpoint, const char *expected)
{
    char *shown = endpoint_shown(endpoint);

    CHECK_TEXT(shown, expected);
    free(shown);
}

TEST(test_endpoints)
{
    check_shown("http://h:9411/api/v2/spans", "http://h:9411/api/v2/spans");
    check_shown("https://user:secret@h/api?token=secret#secret", "https://h/api");
    check_shown("https://h?key=secret", "https://h");
    check_shown("user:secret@h/path@x", "h/path@x");
    check_shown("http://a@b@h/", "http://h/");
    check_shown("file:/tmp/a?b@c#d", "file:/tmp/a?b@c#d");
    check_shown("file:/tmp/a\n\x1b\x7f\"\\", "file:/tmp/a???\"\\");
    check_shown("file:/tmp/\xc3\xa9", "file:/tmp/\xc3\xa9");
    check_shown("file:/tmp/\xc3\xa9\xff", "file:/tmp/???");
    check_shown("", "");
}

CHECK_MAIN
