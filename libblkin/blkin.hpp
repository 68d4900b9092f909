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
 * A span cannot be copied or moved: it holds its event, and a layer below may have its
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

/*
 * A span: begun by its constructor or by begin(), ended by its destructor, or before by end().
 * Span is one of the usual size. SpanOf<256> is one of 256 bytes: see BLKIN_SPAN_ROOM().
 */
template <std::size_t Size>
class SpanOf
{
public:
    // Not begun: does nothing until begin().
    SpanOf() noexcept
    {
        forget();
    }

    // The root of a new trace, if that is sampled.
    explicit SpanOf(const char *name, blkin_kind kind = BLKIN_INTERNAL) noexcept
    {
        start(name, kind, nullptr);
    }

    // A child of parent, which is one of:
    //   const Span &, const Span *    a span of this process
    //   const blkin_span *            the same, as C has it: blkin_current(), say
    //   const blkin_context *         one of another process, see blkin_context.h
    // A null pointer makes it a root.
    template <typename Parent>
    SpanOf(const char *name, blkin_kind kind, const Parent &parent) noexcept
    {
        start(name, kind, parent);
    }

    ~SpanOf()
    {
        end();
    }

    SpanOf(const SpanOf &) = delete;
    SpanOf &operator=(const SpanOf &) = delete;

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
        blkin_span_drop(c_span());
    }

    // Ends it now and records it. A second end does nothing.
    void end() noexcept
    {
        blkin_span_end(c_span());
    }

    // Ended at a time before now, in ns of CLOCK_MONOTONIC.
    void end_at(std::uint64_t time_ns) noexcept
    {
        blkin_span_end_at(c_span(), time_ns);
    }

    // Began at another time: while the request waited in a queue.
    void set_start(std::uint64_t time_ns) noexcept
    {
        blkin_span_set_start(c_span(), time_ns);
    }

    // Another name: that of the operation, once the request is decoded.
    void set_name(const char *name) noexcept
    {
        blkin_span_set_name(c_span(), name);
    }

    void set_name(const std::string &name) noexcept
    {
        blkin_span_set_name(c_span(), name.c_str());
    }

    void set_name(const char *name, std::size_t length) noexcept
    {
        blkin_span_set_name_n(c_span(), name, length);
    }

    // True if what is recorded on it is seen by somebody: to skip costly preparations.
    bool recorded() const noexcept
    {
        return blkin_span_is_recorded(c_span()) != 0;
    }

    // An event within the span, now.
    void annotate(const char *text) noexcept
    {
        blkin_span_annotate(c_span(), text);
    }

    void annotate(const std::string &text) noexcept
    {
        blkin_span_annotate(c_span(), text.c_str());
    }

    void annotate(const char *text, std::size_t length) noexcept
    {
        blkin_span_log_n(c_span(), BLKIN_INFO, text, length);
    }

    // The same of what printf(3) makes, which is not called if the span is not recorded.
    __attribute__((format(printf, 2, 3))) void annotatef(const char *format, ...) noexcept
    {
        va_list arguments;

        va_start(arguments, format);
        blkin_span_vannotatef(c_span(), format, arguments);
        va_end(arguments);
    }

    // The same with a severity.
    void log(blkin_severity severity, const char *text) noexcept
    {
        blkin_span_log(c_span(), severity, text);
    }

    void log(blkin_severity severity, const std::string &text) noexcept
    {
        blkin_span_log(c_span(), severity, text.c_str());
    }

    void log(blkin_severity severity, const char *text, std::size_t length) noexcept
    {
        blkin_span_log_n(c_span(), severity, text, length);
    }

    // The same at a time of the caller's, in ns of CLOCK_MONOTONIC.
    void log_at(blkin_severity severity, const char *text, std::uint64_t time_ns) noexcept
    {
        blkin_span_log_at(c_span(), severity, text, time_ns);
    }

    // Tags.
    void tag(const char *key, const char *value) noexcept
    {
        blkin_span_tag_string(c_span(), key, value);
    }

    void tag(const char *key, const std::string &value) noexcept
    {
        blkin_span_tag_string(c_span(), key, value.c_str());
    }

    void tag(const char *key, const char *value, std::size_t length) noexcept
    {
        blkin_span_tag_string_n(c_span(), key, value, length);
    }

    void tag(const char *key, bool value) noexcept
    {
        blkin_span_tag_bool(c_span(), key, value);
    }

    // Narrower integers and enumerations become one of these by promotion.
    void tag(const char *key, int value) noexcept
    {
        blkin_span_tag_int64(c_span(), key, value);
    }

    void tag(const char *key, long value) noexcept
    {
        blkin_span_tag_int64(c_span(), key, value);
    }

    void tag(const char *key, long long value) noexcept
    {
        blkin_span_tag_int64(c_span(), key, value);
    }

    void tag(const char *key, unsigned value) noexcept
    {
        blkin_span_tag_uint64(c_span(), key, value);
    }

    void tag(const char *key, unsigned long value) noexcept
    {
        blkin_span_tag_uint64(c_span(), key, value);
    }

    void tag(const char *key, unsigned long long value) noexcept
    {
        blkin_span_tag_uint64(c_span(), key, value);
    }

    void tag(const char *key, double value) noexcept
    {
        blkin_span_tag_double(c_span(), key, value);
    }

    void tag(const char *key, long double value) noexcept
    {
        blkin_span_tag_double(c_span(), key, static_cast<double>(value));
    }

    // Another pointer would become a bool.
    template <typename T>
    void tag(const char *key, const T *value) = delete;

    // The request failed; message is such as strerror() gives.
    void error(const char *message) noexcept
    {
        blkin_span_error(c_span(), message);
    }

    void error(const std::string &message) noexcept
    {
        blkin_span_error(c_span(), message.c_str());
    }

    void error(const char *message, std::size_t length) noexcept
    {
        blkin_span_tag_string_n(c_span(), "error", message, length);
    }

    // The trace is worth to be kept whole, whatever it took.
    void keep(const char *why) noexcept
    {
        blkin_span_keep(c_span(), why);
    }

    void keep(const std::string &why) noexcept
    {
        blkin_span_keep(c_span(), why.c_str());
    }

    // Another span that this one has to do with: of each request that one commit serves, say.
    template <std::size_t Other>
    void link(const SpanOf<Other> &span) noexcept
    {
        blkin_span_link(c_span(), span.context());
    }

    void link(const blkin_context &context) noexcept
    {
        blkin_span_link(c_span(), &context);
    }

    // The other side of a client or server span. Copied.
    void set_remote(const char *name, const char *ip, std::uint16_t port) noexcept
    {
        blkin_span_set_remote(c_span(), name, ip, port);
    }

    // The same of an address such as getpeername(2) gives.
    void set_remote(const char *name, const sockaddr *address, std::size_t length) noexcept
    {
        blkin_span_set_remote_sockaddr(c_span(), name, address, length);
    }

    // Another service than the process's. Copied.
    void set_service(const char *name, const char *ip, std::uint16_t port) noexcept
    {
        blkin_span_set_service(c_span(), name, ip, port);
    }

    // What to send along with a request: see the writers of blkin_context.h. Valid as long as the
    // object, recorded or not.
    const blkin_context *context() const noexcept
    {
        return blkin_span_context(c_span());
    }

    // For functions of blkin.h.
    blkin_span *c_span() noexcept
    {
        return blkin_span_in(room_);
    }

    const blkin_span *c_span() const noexcept
    {
        return blkin_span_in(const_cast<std::uint64_t *>(room_));
    }

private:
    static_assert(Size >= BLKIN_SPAN_SIZE_MIN && Size % 8 == 0, "no size of a span");

    void forget() noexcept
    {
        const blkin_context none = {0, 0, 0, 0, 0, 0, nullptr};

        c_span()->context = none;
        c_span()->has_context_ = 0;
        c_span()->state_ = 0;
    }

    template <std::size_t Other>
    void start(const char *name, blkin_kind kind, const SpanOf<Other> *parent) noexcept
    {
        start(name, kind, parent ? parent->c_span() : nullptr);
    }

    template <std::size_t Other>
    void start(const char *name, blkin_kind kind, const SpanOf<Other> &parent) noexcept
    {
        start(name, kind, parent.c_span());
    }

    void start(const char *name, blkin_kind kind, const blkin_span *parent) noexcept
    {
        (void)blkin_span_begin_in(room_, Size, name, kind, parent);
    }

    void start(const char *name, blkin_kind kind, const blkin_context *parent) noexcept
    {
        (void)blkin_span_begin_remote_in(room_, Size, name, kind, parent);
    }

    void start(const char *name, blkin_kind kind, std::nullptr_t) noexcept
    {
        (void)blkin_span_begin_remote_in(room_, Size, name, kind, nullptr);
    }

    std::uint64_t room_[Size / 8];
};

/* A span of the usual size. */
using Span = SpanOf<BLKIN_SPAN_SIZE>;

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
    template <std::size_t Size>
    explicit Current(SpanOf<Size> &span) noexcept : before_(blkin_set_current(span.c_span()))
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

    template <std::size_t Size>
    Step(SpanOf<Size> &span, const char *name, blkin_kind kind = BLKIN_INTERNAL) noexcept
        : Step(span.c_span(), name, kind)
    {
    }

    template <std::size_t Size>
    Step(SpanOf<Size> &span, const std::string &name, blkin_kind kind = BLKIN_INTERNAL) noexcept
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
