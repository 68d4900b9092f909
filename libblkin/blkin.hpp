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
 *     } // recorded here, however the program leaves the scope
 *
 * Header only. No function throws, and the classes allocate nothing. The rules of blkin.h for
 * recording, texts, times, threads and signals apply here, too. If an argument is costly to
 * prepare, check recorded() first.
 *
 * A span cannot be copied or moved: it holds its event, and a layer below may have its address as
 * the current span. For a request that one thread begins and another one ends, make the span a
 * member of the request object. To begin the span later than the object is constructed, declare it
 * without arguments, and call begin(). Only one thread may use a span at a time. A lock that passes
 * the request from thread to thread, as in a queue, also orders the uses of the span. Beginning a
 * child does not count as a use of the parent, see blkin.h; the parent may have ended.
 *
 * Texts are const char * or std::string, or a const char * and a length; they end at a NUL.
 *
 * With -DBLKIN_DISABLE, all functions are empty and need no library. Files that pass a blkin::Span
 * to each other must all be compiled with it, or all without it: if not, they do not link.
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
#include <type_traits>

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
    // A span that has not begun: all functions do nothing until begin().
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
    //   const blkin_span *            a span of C, such as blkin_current()
    //   const blkin_context *         a span of another process, see blkin_context.h
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

    // Begins the span, like the constructors with the same arguments. If it has not ended, ends it
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

    // Discards the span: this span, and spans that begin below it from now on, are not recorded.
    void drop() noexcept
    {
        blkin_span_drop(c_span());
    }

    // Ends the span now and records it. A second end does nothing.
    void end() noexcept
    {
        blkin_span_end(c_span());
    }

    // Ends the span at an earlier time, in ns of CLOCK_MONOTONIC.
    void end_at(std::uint64_t time_ns) noexcept
    {
        blkin_span_end_at(c_span(), time_ns);
    }

    // Sets the start, for example to the time when the request entered a queue.
    void set_start(std::uint64_t time_ns) noexcept
    {
        blkin_span_set_start(c_span(), time_ns);
    }

    // Changes the name, for example to that of the operation once the request is decoded.
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

    // Returns true if the span is recorded and has not ended. Use it to skip costly preparations.
    bool recorded() const noexcept
    {
        return blkin_span_is_recorded(c_span()) != 0;
    }

    // Adds an annotation: an event within the span, now.
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

    // Adds an annotation that is formatted as by printf(3), if the span is recorded.
    __attribute__((format(printf, 2, 3))) void annotatef(const char *format, ...) noexcept
    {
        va_list arguments;

        va_start(arguments, format);
        blkin_span_vannotatef(c_span(), format, arguments);
        va_end(arguments);
    }

    // Adds an annotation with a severity.
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

    // Adds an annotation at the caller's time, in ns of CLOCK_MONOTONIC.
    void log_at(blkin_severity severity, const char *text, std::uint64_t time_ns) noexcept
    {
        blkin_span_log_at(c_span(), severity, text, time_ns);
    }

    // Adds a tag.
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

    // Adds a tag with a number. Narrower integers and unscoped enumerations become an int by
    // promotion.
    template <typename T>
    typename std::enable_if<std::is_arithmetic<T>::value || std::is_enum<T>::value>::type
    tag(const char *key, T value) noexcept
    {
        tag_number(key, +value);
    }

    // Deleted, because any other pointer would become a bool.
    template <typename T>
    void tag(const char *key, const T *value) = delete;

    // Marks the span as failed. The message may come from strerror().
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

    // Keeps the whole trace, even if it was fast.
    void keep(const char *why) noexcept
    {
        blkin_span_keep(c_span(), why);
    }

    void keep(const std::string &why) noexcept
    {
        blkin_span_keep(c_span(), why.c_str());
    }

    // Adds a link to a related span that is not the parent: for example to each request that one
    // commit serves.
    template <std::size_t Other>
    void link(const SpanOf<Other> &span) noexcept
    {
        blkin_span_link(c_span(), span.context());
    }

    void link(const blkin_context &context) noexcept
    {
        blkin_span_link(c_span(), &context);
    }

    // Sets the other side of a client or server span. Copied.
    void set_remote(const char *name, const char *ip, std::uint16_t port) noexcept
    {
        blkin_span_set_remote(c_span(), name, ip, port);
    }

    // Sets the other side by an address of getpeername(2). Copied.
    void set_remote(const char *name, const sockaddr *address, std::size_t length) noexcept
    {
        blkin_span_set_remote_sockaddr(c_span(), name, address, length);
    }

    // Sets a service other than the process's. Copied.
    void set_service(const char *name, const char *ip, std::uint16_t port) noexcept
    {
        blkin_span_set_service(c_span(), name, ip, port);
    }

    // Returns the context to send with a request: see the to_* functions of blkin_context.h. Valid
    // as long as the object, recorded or not.
    const blkin_context *context() const noexcept
    {
        return blkin_span_context(c_span());
    }

    // Returns the span for functions of blkin.h.
    blkin_span *c_span() noexcept
    {
        return blkin_span_in(room_);
    }

    const blkin_span *c_span() const noexcept
    {
        return blkin_span_in(const_cast<std::uint64_t *>(room_));
    }

private:
    static_assert(Size >= BLKIN_SPAN_SIZE_MIN && Size % 8 == 0, "not a size of a span");

    void forget() noexcept
    {
        const blkin_context none = {0, 0, 0, 0, 0, 0, nullptr};

        c_span()->context = none;
        c_span()->has_context_ = 0;
        c_span()->state_ = 0;
    }

    template <typename T>
    void tag_number(const char *key, T value) noexcept
    {
        if (std::is_floating_point<T>::value)
            blkin_span_tag_double(c_span(), key, static_cast<double>(value));
        else if (std::is_signed<T>::value)
            blkin_span_tag_int64(c_span(), key, static_cast<std::int64_t>(value));
        else
            blkin_span_tag_uint64(c_span(), key, static_cast<std::uint64_t>(value));
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
 * Makes a span the thread's current span (see blkin_current()) for the rest of a scope, and then
 * restores the former current span. The span must outlive the scope, on the same thread:
 *
 *     blkin::Span span("write", BLKIN_SERVER, request.context());
 *     blkin::Current current(span);
 *     backend->write(...); // has: blkin::Span io("pwrite", BLKIN_INTERNAL, blkin_current());
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
 * A step of a span for the rest of a scope, at a fraction of the cost of a span (see "Steps" in
 * blkin.h). Annotations and tags that the program adds to the span in the scope belong to the step.
 * Steps within the scope are its children. The span must outlive the scope.
 *
 *     blkin::Step step(span, "look up");
 *     span.tag("extent", extent);
 *     if (failed)
 *         span.error("ENOENT");
 *
 * span is a Span &, or a blkin_span * of C, such as blkin_current(); with a null pointer, there is
 * no step.
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

    // Returns the context that a client's step sends, so that the receiver's spans become its
    // children. Call context() before you begin an inner step. Without a span, there are no ids.
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
