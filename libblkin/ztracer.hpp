/*
 * The original BlkKin C++ API: ZTracer::Endpoint and ZTracer::Trace over zipkin_c.h.
 *
 * Header only, source compatible with the original (ceph/blkin at commit 63711bf), C++98 and later.
 *
 * Strings given to a constructor or to init() are borrowed: they must outlive the object. Strings
 * given to copy_name() or copy_ip() are copied into the object. A copied object has copies of the
 * strings that the source has copied, and borrows the strings that the source borrows. A trace
 * always borrows its Endpoint. Threads and signals: see zipkin_c.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ZTRACER_HPP_
#define ZTRACER_HPP_

#include <string>

/* zipkin_c.h declares extern "C" itself; this second one does no harm. */
extern "C" {
#include "zipkin_c.h"
}

namespace ZTracer
{

/* The core annotations of zipkin_c.h, under the names that C++ users know. */
#define BLKIN_ZTRACER_CONSTANT_(name, text) const char *const name = text;
BLKIN_EACH_CONSTANT_(BLKIN_ZTRACER_CONSTANT_)
#undef BLKIN_ZTRACER_CONSTANT_

/* Opens the library: see blkin_init(). Returns 0. */
static inline int ztrace_init()
{
    return blkin_init();
}

/* The service that records. */
class Endpoint : private blkin_endpoint
{
private:
    std::string _ip;   // storage of copy_ip() and copy_address_from()
    std::string _name; // storage of copy_name()

    friend class Trace;

    // Called after a copy. For each string that the source stores itself, makes the pointer refer
    // to this object's storage.
    void repoint(bool own_ip, bool own_name)
    {
        if (own_ip)
            ip = _ip.c_str();
        if (own_name)
            name = _name.c_str();
    }

    bool points_to_own_ip() const
    {
        return ip == _ip.c_str();
    }

    bool points_to_own_name() const
    {
        return name == _name.c_str();
    }

public:
    // A service without an address: ip "0.0.0.0" and port 0.
    Endpoint(const char *service)
    {
        blkin_init_endpoint(this, "0.0.0.0", 0, service);
    }

    // address may be IPv4 or IPv6 text; number is the port, 0..65535
    Endpoint(const char *address, int number, const char *service)
    {
        blkin_init_endpoint(this, address, static_cast<int16_t>(number), service);
    }

    Endpoint(const Endpoint &rhs) : blkin_endpoint(rhs), _ip(rhs._ip), _name(rhs._name)
    {
        repoint(rhs.points_to_own_ip(), rhs.points_to_own_name());
    }

    const Endpoint &operator=(const Endpoint &rhs)
    {
        const bool own_ip = rhs.points_to_own_ip(), own_name = rhs.points_to_own_name();

        *static_cast<blkin_endpoint *>(this) = rhs;
        _ip = rhs._ip;
        _name = rhs._name;
        repoint(own_ip, own_name);
        return *this;
    }

    // Keeps a copy of the address text.
    void copy_ip(const std::string &newip)
    {
        _ip = newip;
        ip = _ip.c_str();
    }

    // Keeps a copy of the service name.
    void copy_name(const std::string &newname)
    {
        _name = newname;
        name = _name.c_str();
    }

    // Takes the address and port of another endpoint, with a copy of the text.
    void copy_address_from(const Endpoint *other)
    {
        _ip = other->ip ? other->ip : "";
        ip = _ip.c_str();
        port = other->port;
    }

    // Takes the address and port of another endpoint, which must outlive this one.
    void share_address_from(const Endpoint *endpoint)
    {
        ip = endpoint->ip;
        port = endpoint->port;
    }

    // Sets the listening port, 0..65535.
    void set_port(int p)
    {
        port = static_cast<int16_t>(p);
    }
};

/* A span. Not traced (valid() is false) until a constructor, init() or set_info() gives it ids. */
class Trace : private blkin_trace
{
private:
    std::string _name; // storage of copy_name()

    // Makes the span "not traced". The span stays "not traced" if the initialization fails.
    void clear()
    {
        const blkin_trace_info none = {0, 0, 0};

        name = NULL;
        info = none;
        endpoint = NULL;
    }

    bool points_to_own_name() const
    {
        return name == _name.c_str();
    }

public:
    // not traced
    Trace()
    {
        clear();
    }

    // A child of parent if parent is traced; ep NULL takes the parent's endpoint. Without a traced
    // parent, a new root.
    Trace(const char *span, const Endpoint *ep, const Trace *parent = NULL)
    {
        clear();
        init(span, ep, parent);
    }

    // From the info of another process's span: a child of that span, or (child = false) the same
    // span.
    Trace(const char *span, const Endpoint *ep, const blkin_trace_info *i, bool child = false)
    {
        clear();
        if (child) {
            blkin_init_child_info(this, i, ep, span);
        } else {
            blkin_init_new_trace(this, span, ep);
            blkin_set_trace_info(this, i);
        }
    }

    Trace(const Trace &rhs) : blkin_trace(rhs), _name(rhs._name)
    {
        if (rhs.points_to_own_name())
            name = _name.c_str();
    }

    const Trace &operator=(const Trace &rhs)
    {
        const bool own_name = rhs.points_to_own_name();

        *static_cast<blkin_trace *>(this) = rhs;
        _name = rhs._name;
        if (own_name)
            name = _name.c_str();
        return *this;
    }

    // Returns true if the trace has ids: then it records.
    bool valid() const
    {
        return info.trace_id != 0;
    }

    operator bool() const
    {
        return valid();
    }

    // Works like the constructors with the same arguments. Returns 0, or -EINVAL like the C
    // functions: the trace then stays as it was.
    int init(const char *span, const Endpoint *ep, const Trace *parent = NULL)
    {
        if (parent && parent->valid())
            return blkin_init_child(this, parent, ep, span);

        return blkin_init_new_trace(this, span, ep);
    }

    int init(const char *span, const Endpoint *ep, const blkin_trace_info *i, bool child = false)
    {
        if (child)
            return blkin_init_child_info(this, i, ep, span);
        if (ep)
            return blkin_set_trace_properties(this, i, span, ep);

        // ep may be NULL, as in the constructor: each event and each child then needs its own
        // endpoint.
        const int error = blkin_set_trace_info(this, i);
        if (error == 0) {
            name = span;
            endpoint = NULL;
        }
        return error;
    }

    // Keeps a copy of the span's name.
    void copy_name(const std::string &newname)
    {
        _name = newname;
        name = _name.c_str();
    }

    // Returns the ids to send with a request; valid as long as the object.
    const blkin_trace_info *get_info() const
    {
        return &info;
    }

    // Copies the ids, which must not be NULL: the span is then the span with these ids.
    void set_info(const blkin_trace_info *i)
    {
        info = *i;
    }

    // keyval() adds a tag, event() an annotation at the current time. ep NULL: the span's endpoint.
    // Both read their arguments during the call only, and do nothing if the span is not traced.
    void keyval(const char *key, const char *val) const
    {
        keyval(key, val, NULL);
    }

    void keyval(const char *key, int64_t val) const
    {
        keyval(key, val, NULL);
    }

    void keyval(const char *key, const char *val, const Endpoint *ep) const
    {
        if (valid())
            BLKIN_KEYVAL_STRING(this, ep, key, val);
    }

    void keyval(const char *key, int64_t val, const Endpoint *ep) const
    {
        if (valid())
            BLKIN_KEYVAL_INTEGER(this, ep, key, val);
    }

    void event(const char *text) const
    {
        event(text, NULL);
    }

    void event(const char *text, const Endpoint *ep) const
    {
        if (valid())
            BLKIN_TIMESTAMP(this, ep, text);
    }
};

} // namespace ZTracer

#endif /* ZTRACER_HPP_ */
