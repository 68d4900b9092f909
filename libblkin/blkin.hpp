/*
 * The span API of blkin.h for C++11 and later: a span that ends with its scope.
 *
 *     void Pool::write(const Request &request)
 *     {
 *         blkin::Span span("write", BLKIN_SERVER, request.context());
 *         span.tag("offset", request.offset());
 *         ...
 *         if (failed)
 *             span.error("EIO");
 *     } // recorded here, whatever way leaves the scope
 *
 * Header only, nothing allocates, nothing throws. What blkin.h says of recording, strings, times,
 * threads and signals holds here too. An argument that is costly to prepare is best guarded with
 * recorded().
 *
 * A span cannot be copied or moved: it holds a kilobyte of its own, and a layer below may have its
 * address as the current span. For a request that one thread begins and another one ends, make the
 * span a member of the request object; one that is begun later than the object is made is declared
 * without arguments and begun with begin(). Only one thread may use it at a time: what passes the
 * request from thread to thread (a queue's lock, say) orders the uses of the span too. To be the
 * parent of other spans is no use in this sense, see blkin.h; it may have ended.
 *
 * Texts are const char * or std::string, or a const char * and a length; they end at a NUL.
 *
 * -DBLKIN_DISABLE makes all of it empty and needs no library. Files that exchange a blkin::Span
 * must agree on it: else they do not link, instead of losing spans silently.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_HPP
#define BLKIN_HPP

#include "blkin.h"

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>

namespace blkin
{
#ifdef BLKIN_DISABLE
inline namespace disabled
{
#endif

/* A span: begun by its constructor or by begin(), ended by its destructor, or before by end(). */
class Span
{
public:
    // Not begun: does nothing until begin().
    Span() noexcept
    {
        forget();
    }

    // The root of a new trace, if that is sampled.
    explicit Span(const char *name, blkin_kind kind = BLKIN_INTERNAL) noexcept
    {
        blkin_span_begin_remote(&span_, name, kind, nullptr);
    }

    // A child of parent, which is one of:
    //   const Span &, const Span *    a span of this process
    //   const blkin_span *            the same, as C has it: blkin_current(), say
    //   const blkin_context *         one of another process, see blkin_context.h
    // A null pointer makes it a root.
    template <typename Parent>
    Span(const char *name, blkin_kind kind, const Parent &parent) noexcept
    {
        start(name, kind, parent);
    }

    ~Span()
    {
        end();
    }

    Span(const Span &) = delete;
    Span &operator=(const Span &) = delete;

    // Begins it, as the constructors of the same arguments do. One that has not ended is ended
    // first.
    void begin(const char *name, blkin_kind kind = BLKIN_INTERNAL) noexcept
    {
        begin(name, kind, nullptr);
    }

    template <typename Parent>
    void begin(const char *name, blkin_kind kind, const Parent &parent) noexcept
    {
        end();
        start(name, kind, parent);
    }

    // Of no interest after all: not recorded, nor what begins below it from now on.
    void drop() noexcept
    {
        blkin_span_drop(&span_);
    }

    // Ends it now and records it. A second end does nothing.
    void end() noexcept
    {
        blkin_span_end(&span_);
    }

    // Ended at a time before now, in ns of CLOCK_MONOTONIC.
    void end_at(std::uint64_t time_ns) noexcept
    {
        blkin_span_end_at(&span_, time_ns);
    }

    // Began at another time: while the request waited in a queue.
    void set_start(std::uint64_t time_ns) noexcept
    {
        blkin_span_set_start(&span_, time_ns);
    }

    // Another name: that of the operation, once the request is decoded.
    void set_name(const char *name) noexcept
    {
        blkin_span_set_name(&span_, name);
    }

    void set_name(const std::string &name) noexcept
    {
        blkin_span_set_name(&span_, name.c_str());
    }

    void set_name(const char *name, std::size_t length) noexcept
    {
        blkin_span_set_name_n(&span_, name, length);
    }

    // True if what is recorded on it is seen by somebody: to skip costly preparations.
    bool recorded() const noexcept
    {
        return blkin_span_is_recorded(&span_) != 0;
    }

    // An event within the span, now.
    void annotate(const char *text) noexcept
    {
        blkin_span_annotate(&span_, text);
    }

    void annotate(const std::string &text) noexcept
    {
        blkin_span_annotate(&span_, text.c_str());
    }

    void annotate(const char *text, std::size_t length) noexcept
    {
        blkin_span_log_n(&span_, BLKIN_INFO, text, length);
    }

    // The same of what printf(3) makes, which is not called if the span is not recorded.
    __attribute__((format(printf, 2, 3))) void annotatef(const char *format, ...) noexcept
    {
        va_list arguments;

        va_start(arguments, format);
        blkin_span_vannotatef(&span_, format, arguments);
        va_end(arguments);
    }

    // The same with a severity.
    void log(blkin_severity severity, const char *text) noexcept
    {
        blkin_span_log(&span_, severity, text);
    }

    void log(blkin_severity severity, const std::string &text) noexcept
    {
        blkin_span_log(&span_, severity, text.c_str());
    }

    void log(blkin_severity severity, const char *text, std::size_t length) noexcept
    {
        blkin_span_log_n(&span_, severity, text, length);
    }

    // The same at a time of the caller's, in ns of CLOCK_MONOTONIC.
    void log_at(blkin_severity severity, const char *text, std::uint64_t time_ns) noexcept
    {
        blkin_span_log_at(&span_, severity, text, time_ns);
    }

    // Tags.
    void tag(const char *key, const char *value) noexcept
    {
        blkin_span_tag_string(&span_, key, value);
    }

    void tag(const char *key, const std::string &value) noexcept
    {
        blkin_span_tag_string(&span_, key, value.c_str());
    }

    void tag(const char *key, const char *value, std::size_t length) noexcept
    {
        blkin_span_tag_string_n(&span_, key, value, length);
    }

    void tag(const char *key, bool value) noexcept
    {
        blkin_span_tag_bool(&span_, key, value);
    }

    // Narrower integers and enumerations become one of these by promotion.
    void tag(const char *key, int value) noexcept
    {
        blkin_span_tag_int64(&span_, key, value);
    }

    void tag(const char *key, long value) noexcept
    {
        blkin_span_tag_int64(&span_, key, value);
    }

    void tag(const char *key, long long value) noexcept
    {
        blkin_span_tag_int64(&span_, key, value);
    }

    void tag(const char *key, unsigned value) noexcept
    {
        blkin_span_tag_uint64(&span_, key, value);
    }

    void tag(const char *key, unsigned long value) noexcept
    {
        blkin_span_tag_uint64(&span_, key, value);
    }

    void tag(const char *key, unsigned long long value) noexcept
    {
        blkin_span_tag_uint64(&span_, key, value);
    }

    void tag(const char *key, double value) noexcept
    {
        blkin_span_tag_double(&span_, key, value);
    }

    void tag(const char *key, long double value) noexcept
    {
        blkin_span_tag_double(&span_, key, static_cast<double>(value));
    }

    // Another pointer would become a bool.
    template <typename T>
    void tag(const char *key, const T *value) = delete;

    // The request failed; message is such as strerror() gives.
    void error(const char *message) noexcept
    {
        blkin_span_error(&span_, message);
    }

    void error(const std::string &message) noexcept
    {
        blkin_span_error(&span_, message.c_str());
    }

    void error(const char *message, std::size_t length) noexcept
    {
        blkin_span_tag_string_n(&span_, "error", message, length);
    }

    // The trace is worth to be kept whole, whatever it took.
    void keep(const char *why) noexcept
    {
        blkin_span_keep(&span_, why);
    }

    void keep(const std::string &why) noexcept
    {
        blkin_span_keep(&span_, why.c_str());
    }

    // Another span that this one has to do with: of each request that one commit serves, say.
    void link(const Span &span) noexcept
    {
        blkin_span_link(&span_, span.context());
    }

    void link(const blkin_context &context) noexcept
    {
        blkin_span_link(&span_, &context);
    }

    // The other side of a client or server span. Copied.
    void set_remote(const char *name, const char *ip, std::uint16_t port) noexcept
    {
        blkin_span_set_remote(&span_, name, ip, port);
    }

    // The same of an address such as getpeername(2) gives.
    void set_remote(const char *name, const sockaddr *address, std::size_t length) noexcept
    {
        blkin_span_set_remote_sockaddr(&span_, name, address, length);
    }

    // Another service than the process's. Copied.
    void set_service(const char *name, const char *ip, std::uint16_t port) noexcept
    {
        blkin_span_set_service(&span_, name, ip, port);
    }

    // What to send along with a request: see the writers of blkin_context.h. Valid as long as the
    // object, recorded or not.
    const blkin_context *context() const noexcept
    {
        return blkin_span_context(&span_);
    }

    // For functions of blkin.h.
    blkin_span *c_span() noexcept
    {
        return &span_;
    }

    const blkin_span *c_span() const noexcept
    {
        return &span_;
    }

private:
    void forget() noexcept
    {
        const blkin_context none = {0, 0, 0, 0, 0, 0, nullptr};

        span_.context = none;
        span_.has_context_ = 0;
        span_.state_ = 0;
    }

    void start(const char *name, blkin_kind kind, const Span *parent) noexcept
    {
        blkin_span_begin(&span_, name, kind, parent ? &parent->span_ : nullptr);
    }

    void start(const char *name, blkin_kind kind, const Span &parent) noexcept
    {
        blkin_span_begin(&span_, name, kind, &parent.span_);
    }

    void start(const char *name, blkin_kind kind, const blkin_span *parent) noexcept
    {
        blkin_span_begin(&span_, name, kind, parent);
    }

    void start(const char *name, blkin_kind kind, const blkin_context *parent) noexcept
    {
        blkin_span_begin_remote(&span_, name, kind, parent);
    }

    void start(const char *name, blkin_kind kind, std::nullptr_t) noexcept
    {
        blkin_span_begin_remote(&span_, name, kind, nullptr);
    }

    blkin_span span_;
};

/*
 * Makes a span the thread's current one (see blkin_current()) for the rest of a scope, and puts
 * back the one before. The span must outlive it, on the same thread:
 *
 *     blkin::Span span("write", BLKIN_SERVER, request.context());
 *     blkin::Current current(span);
 *     backend->write(...); // where: blkin::Span io("pwrite", BLKIN_INTERNAL, blkin_current());
 */
class Current
{
public:
    explicit Current(Span &span) noexcept : before_(blkin_set_current(span.c_span()))
    {
    }

    explicit Current(blkin_span *span) noexcept : before_(blkin_set_current(span))
    {
    }

    ~Current()
    {
        blkin_set_current(before_);
    }

    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;

private:
    blkin_span *before_;
};

/*
 * A step of a span for the rest of a scope: what its thread does one after the other, at a fifth of
 * the cost of a span (see "Steps" in blkin.h). Until then, what is said of the span is said of the
 * step; steps within it are its children. The span must outlive it.
 *
 *     blkin::Step step(span, "look up");
 *     span.tag("extent", extent);
 *     if (failed)
 *         span.error("ENOENT");
 *
 * span is a Span &, or a blkin_span * as C has it, blkin_current(), say; of a null pointer it is no
 * step.
 */
class Step
{
public:
    Step(blkin_span *span, const char *name, blkin_kind kind = BLKIN_INTERNAL) noexcept
        : span_(span)
    {
        if (span_)
            blkin_step_begin(span_, name, kind);
    }

    Step(blkin_span *span, const std::string &name, blkin_kind kind = BLKIN_INTERNAL) noexcept
        : Step(span, name.c_str(), kind)
    {
    }

    Step(Span &span, const char *name, blkin_kind kind = BLKIN_INTERNAL) noexcept
        : Step(span.c_span(), name, kind)
    {
    }

    Step(Span &span, const std::string &name, blkin_kind kind = BLKIN_INTERNAL) noexcept
        : Step(span.c_span(), name.c_str(), kind)
    {
    }

    ~Step()
    {
        if (span_)
            blkin_step_end(span_);
    }

    Step(const Step &) = delete;
    Step &operator=(const Step &) = delete;

    // What a client's step sends along, so that the receiver's spans become its children: to be
    // asked for before a step within this one is begun. Below none it is one without ids.
    blkin_context context() const noexcept
    {
        blkin_context context = {0, 0, 0, 0, 0, 0, nullptr};

        if (span_)
            blkin_step_context(span_, &context);
        return context;
    }

private:
    blkin_span *span_;
};

#ifdef BLKIN_DISABLE
} // namespace disabled
#endif
} // namespace blkin

#endif /* BLKIN_HPP */
