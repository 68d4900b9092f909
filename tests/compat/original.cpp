/*
 * A program that uses only the original's C++ header, and gives the events in original-cpp.expect:
 * see original.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <ztracer.hpp>

#define CPP_CHECK(condition)                                         \
    do {                                                             \
        if (!(condition)) {                                          \
            std::fprintf(stderr, "does not hold: %s\n", #condition); \
            std::exit(1);                                            \
        }                                                            \
    } while (0)

static blkin_trace_info info(int64_t trace, int64_t span, int64_t parent)
{
    blkin_trace_info i = {trace, span, parent};
    return i;
}

// An endpoint whose strings live in the object itself, returned by value.
static ZTracer::Endpoint make_endpoint(const ZTracer::Endpoint &address)
{
    ZTracer::Endpoint ep("temporary");

    ep.copy_name(std::string("osd.") + "3");
    ep.copy_address_from(&address);
    return ep;
}

int main()
{
    CPP_CHECK(ZTracer::ztrace_init() == 0);

    ZTracer::Endpoint address("10.0.0.3", 50001, "address");
    ZTracer::Endpoint osd(make_endpoint(address));
    ZTracer::Endpoint journal("journal");
    ZTracer::Endpoint shared("shared");
    shared.share_address_from(&address);
    shared.set_port(6);
    journal.copy_ip("10.0.0.4");
    journal = ZTracer::Endpoint(journal);

    ZTracer::Trace none;
    CPP_CHECK(!none.valid());
    CPP_CHECK(!none);
    none.event("nobody sees this");
    none.keyval("nor", "this");

    blkin_trace_info fixed = info(0x33, 0x33, 0);
    ZTracer::Trace root("read", &osd);
    CPP_CHECK(root);
    root.set_info(&fixed);
    root.event("start");
    root.event("dispatched", &journal);
    root.keyval("tid", 7);
    root.keyval("type", "read");
    root.keyval("size", 8, &shared);
    root.keyval("mode", "sync", &shared);

    // a span that arrives over the wire: constructor and init() forms, child and not
    ZTracer::Trace child("from wire", &osd, root.get_info(), true);
    CPP_CHECK(child.get_info()->trace_id == 0x33 && child.get_info()->parent_span_id == 0x33);
    blkin_trace_info child_info = info(0x33, 0x44, 0x33);
    child.set_info(&child_info);
    child.event("decoded");

    ZTracer::Trace initialised;
    CPP_CHECK(initialised.init("named by init", &osd, &child_info) == 0);
    initialised.event("kept its name");
    CPP_CHECK(initialised.init("child by init", &osd, &child_info, true) == 0);
    CPP_CHECK(initialised.get_info()->parent_span_id == 0x44);
    blkin_trace_info grand_child = info(0x33, 0x55, 0x44);
    initialised.set_info(&grand_child);
    initialised.event("kept it again");

    // children of traces, with the parent's endpoint
    ZTracer::Trace local("local", NULL, &child);
    CPP_CHECK(local.get_info()->parent_span_id == 0x44);
    blkin_trace_info local_info = info(0x33, 0x66, 0x44);
    local.set_info(&local_info);
    local.event("inherited endpoint");
    ZTracer::Trace again;
    CPP_CHECK(again.init("again", NULL, &local) == 0);
    CPP_CHECK(again.init("new root", &osd) == 0);
    CPP_CHECK(again.get_info()->parent_span_id == 0);

    // from the wire without an endpoint, as the constructor allows (the original's init() did not)
    ZTracer::Trace bare;
    const ZTracer::Trace built("bare", NULL, &child_info);
    CPP_CHECK(bare.init("bare", NULL, static_cast<blkin_trace_info *>(NULL)) != 0 && !bare.valid());
    CPP_CHECK(bare.init("bare", NULL, &child_info) == 0);
    CPP_CHECK(std::memcmp(bare.get_info(), built.get_info(), sizeof(blkin_trace_info)) == 0);
    bare.event("nobody sees this");
    bare.event("with an endpoint of its own", &osd);
    CPP_CHECK(again.init("below bare", NULL, &bare) != 0);
    CPP_CHECK(again.init("below bare", &osd, &bare) == 0);
    CPP_CHECK(again.get_info()->parent_span_id == 0x44);

    // a copy keeps a copied name after the source is gone
    ZTracer::Trace copy;
    {
        ZTracer::Trace source("temporary", &osd, &fixed);
        source.copy_name(std::string("copied ") + "name");
        ZTracer::Trace constructed(source);
        copy = constructed;
    }
    copy.event("after the copy");

    // a copy has the new name, not the name before
    ZTracer::Trace renamed("temporary", &osd, &fixed);
    renamed.copy_name("before");
    CPP_CHECK(renamed.init("after", &osd, &fixed) == 0);
    ZTracer::Trace renamed_copy(renamed);
    renamed_copy.event("constructed");
    renamed_copy = renamed;
    renamed_copy.event("assigned");
    renamed_copy = *&renamed_copy;
    renamed_copy.event("assigned to itself");
    ZTracer::Endpoint moved("moved");
    moved.copy_ip("10.0.0.9");
    moved.share_address_from(&address);
    ZTracer::Endpoint moved_copy(moved);
    renamed_copy.event("address", &moved_copy);

    // a copy has its own empty name: the memory of the copy's source is overwritten
    ZTracer::Trace *empty = new ZTracer::Trace("temporary", &osd, &fixed);
    empty->copy_name("");
    ZTracer::Trace empty_copy(*empty);
    delete empty;
    char *other = new char[sizeof(ZTracer::Trace)];
    std::memset(other, 'x', sizeof(ZTracer::Trace));
    other[sizeof(ZTracer::Trace) - 1] = '\0';
    empty_copy.event("an empty name");
    delete[] other;
    return 0;
}
