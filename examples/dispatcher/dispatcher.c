/*
 * A dispatcher: a TCP proxy that sends each request where it waits least, as the back ends' traces
 * tell. The back ends are instrumented, or run by `blkin run`; the dispatcher itself needs nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "choice.h"
#include "feedback.h"
#include "relay.h"

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int usage(void)
{
    fprintf(stderr,
            "usage: blkin stat --json --interval=1 | dispatcher --back SERVICE=HOST:PORT...\n"
            "                  [--listen HOST:PORT] [--policy wait|least|turn] [--verbose]\n"
            "  --back     where requests go, and the name of that service in the traces\n"
            "  --listen   default 127.0.0.1:0; port 0: any free port, printed when ready\n"
            "  --policy   wait: where a request waits least, by the statistics that come on the\n"
            "             standard input (default); least: where the fewest are under way;\n"
            "             turn: one after the other\n"
            "  --verbose  print what is known of the back ends each time that something comes\n"
            "A client must have its whole answer before it sends the next request.\n");
    return 2;
}

static bool add_back_end(struct choice *choice, const char *text)
{
    const char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : 0;
    struct back_end *back = &choice->back[choice->count];

    if (length == 0 || length >= sizeof(back->name) || choice->count == BACK_ENDS_MAX) {
        fprintf(stderr,
                "dispatcher: bad back end '%s': expected SERVICE=HOST:PORT, a name of 63 bytes at "
                "most, %d at most\n",
                text, BACK_ENDS_MAX);
        return false;
    }
    memcpy(back->name, text, length);
    if (net_resolve(equals + 1, &back->address) < 0)
        return false;
    choice->count++;
    return true;
}

static bool read_policy(const char *text, enum policy *policy)
{
    static const char *const names[] = {"wait", "least", "turn"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *policy = (enum policy)i;
            return true;
        }
    }
    fprintf(stderr, "dispatcher: bad policy '%s': expected wait, least or turn\n", text);
    return false;
}

/* Signals are net_serve()'s, in the main thread. Returns false after a message. */
static bool start_feedback(struct feedback *feedback)
{
    sigset_t all, before;
    pthread_t thread;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, NULL, feedback_thread, feedback);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        fprintf(stderr, "dispatcher: no thread for the feedback: %s\n", strerror(rc));
        return false;
    }
    pthread_detach(thread);
    return true;
}

static int serve(struct choice *choice, const char *listen_on)
{
    struct net_address address;
    const int listener = net_open(listen_on, &address);
    int rc;

    if (listener < 0)
        return 1;
    rc = net_serve(listener, "dispatcher", &address, relay, choice);
    if (rc < 0)
        fprintf(stderr, "dispatcher: cannot serve: %s\n", strerror(-rc));
    for (size_t i = 0; i < choice->count; i++)
        printf("%s has got %" PRIu64 " requests\n", choice->back[i].name,
               atomic_load(&choice->back[i].requests));
    return rc < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"back", required_argument, NULL, 'b'},
        {"listen", required_argument, NULL, 'l'},
        {"policy", required_argument, NULL, 'p'},
        {"verbose", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    static struct choice choice; /* the feedback's thread may outlive main */
    static struct feedback feedback = {.choice = &choice, .fd = STDIN_FILENO};
    const char *listen_on = "127.0.0.1:0";
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b' && !add_back_end(&choice, optarg))
            return 2;
        else if (option == 'l')
            listen_on = optarg;
        else if (option == 'p' && !read_policy(optarg, &choice.policy))
            return 2;
        else if (option == 'v')
            feedback.verbose = true;
        else if (option == '?')
            return usage();
    }
    if (choice.count == 0 || optind != argc)
        return usage();
    if (choice.policy == POLICY_WAIT && !start_feedback(&feedback))
        return 1;
    return serve(&choice, listen_on);
}
