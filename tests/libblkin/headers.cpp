/*
 * Every call of the C++ API: in all dialects and with -DBLKIN_DISABLE for test-headers.sh, recorded
 * for test-spans.sh.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <ztracer.hpp>
#include <blkin.hpp>
#include <blkin.hpp>

#include <memory>
#include <type_traits>
#include <utility>

static_assert(!std::is_copy_constructible<blkin::Span>::value, "a span stays where it is");
static_assert(!std::is_move_constructible<blkin::Span>::value, "a span stays where it is");
static_assert(std::is_nothrow_destructible<blkin::Span>::value, "destructor");
static_assert(!std::is_copy_constructible<blkin::Step>::value, "nor is a step copied");
static_assert(!std::is_move_constructible<blkin::Step>::value, "nor moved");
static_assert(!std::is_copy_assignable<blkin::Step>::value, "nor assigned");
static_assert(std::is_nothrow_destructible<blkin::Step>::value, "destructor");
static_assert(std::is_nothrow_constructible<blkin::Step, blkin::Span &, const char *>::value, "");
static_assert(noexcept(std::declval<blkin::Step &>().context()), "a step throws nothing");
static_assert(!std::is_convertible<const char *, blkin::Span>::value, "no span by accident");

enum Plain { plain = 3 };

static void tags(blkin::SpanOf<2048> &span)
{
    const std::string text("text");
    char array[] = "array";
    char *not_const = array;

    span.tag("literal", "text");
    span.tag("string", text);
    span.tag("temporary", text + "x");
    span.tag("array", array);
    span.tag("char *", not_const);
    span.tag("bool", true);
    span.tag("char", 'c');
    span.tag("signed char", static_cast<signed char>(-1));
    span.tag("unsigned char", static_cast<unsigned char>(255));
    span.tag("short", static_cast<short>(-1));
    span.tag("unsigned short", static_cast<unsigned short>(65535));
    span.tag("int", -1);
    span.tag("unsigned", 4294967295u);
    span.tag("long", -1L);
    span.tag("unsigned long", static_cast<unsigned long>(-1));
    span.tag("long long", -1LL);
    span.tag("unsigned long long", 18446744073709551615ULL);
    span.tag("int64_t", INT64_MIN);
    span.tag("uint64_t", UINT64_MAX);
    span.tag("size_t", sizeof(span));
    span.tag("ptrdiff_t", static_cast<std::ptrdiff_t>(-1));
    span.tag("enum", plain);
    span.tag("float", 0.5f);
    span.tag("double", 0.25);
    span.tag("long double", 0.125L);
    span.tag("null", nullptr);
}

static void spans()
{
    blkin::Span root("root", BLKIN_SERVER);
    blkin::Current current(root);
    blkin::SpanOf<2048> child("child", BLKIN_INTERNAL, root);
    blkin::Span same("pointer", BLKIN_INTERNAL, &root);
    blkin::Span below("current", BLKIN_INTERNAL, blkin_current());
    blkin::Span far("far", BLKIN_CLIENT, root.context());
    blkin::Span other("no parent", BLKIN_CONSUMER, nullptr);
    blkin::Span name_only("name");
    blkin::Span late;
    blkin::SpanOf<256> small("small", BLKIN_INTERNAL, root);
    blkin::SpanOf<256> smaller("below it", BLKIN_INTERNAL, &small);
    blkin::Step in_small(small, "step");
    std::unique_ptr<blkin::Span> on_heap(new blkin::Span("heap", BLKIN_PRODUCER, child));
    const blkin::Span &constant = root;

    tags(child);
    root.annotate("text");
    root.annotate(std::string("text"));
    root.log(BLKIN_WARNING, "text");
    root.log(BLKIN_WARNING, std::string("text"));
    root.log_at(BLKIN_WARNING, "text", 1);
    root.annotate("text", 2);
    root.annotatef("%d of %s", 1, "text");
    root.log(BLKIN_WARNING, "text", 2);
    root.tag("with length", "text", 2);
    root.keep("odd");
    root.keep(std::string("odd"));
    root.set_name("decoded");
    root.set_name(std::string("decoded"));
    root.set_name("decoded", 3);
    root.link(child);
    root.link(*child.context());
    root.error("EIO", 2);
    root.error("EIO");
    root.error(std::string("EIO"));
    root.set_remote("mon", "10.0.0.1", 6789);
    root.set_service("mon", "10.0.0.1", 6789);
    root.set_start(1);
    BLKIN_TAG_STRING(root.c_span(), "macro", std::string("text").c_str());
    late.annotate("nothing: it has not begun");
    late.begin("late", BLKIN_INTERNAL, constant);
    late.begin("again");
    late.end_at(1);
    late.begin("dropped", BLKIN_INTERNAL, root);
    late.drop();
    root.end();
    root.end();
    if (constant.recorded() != (constant.c_span()->state_ != 0))
        on_heap->error("impossible");
    {
        blkin::Current nothing(nullptr);
        blkin::Span also_root("root", BLKIN_INTERNAL, blkin_current());
    }
}

static bool is_of(const blkin_context &context, const blkin_context &span)
{
    return context.trace_id == span.trace_id && context.trace_id_high == span.trace_id_high &&
           context.span_id == span.span_id;
}

// Without recording, a step passes on the context of its span.
static bool steps()
{
    const blkin_context given = {0, 1, 2, 0, 0, 0, nullptr};
    const std::string name("string");
    blkin::Span span("request", BLKIN_SERVER, &given);
    blkin::Current current(span);
    bool right = true;

    {
        blkin::Step step(span, "literal");
        blkin::Step client(span, "client", BLKIN_CLIENT);
        const blkin_context context = client.context();

        span.tag("of", "the step");
        span.error("EIO");
        right = span.recorded() || (is_of(context, given) && is_of(step.context(), given));
        blkin::Span below("below", BLKIN_SERVER, &context);
        right = right && (below.recorded() || is_of(*below.context(), given));
    }
    {
        blkin::Step of_string(span, name);
        blkin::Step of_kind(span, name, BLKIN_PRODUCER);
        blkin::Step of_temporary(span, name + "x", BLKIN_PRODUCER);
    }
    {
        blkin::Step of_c(blkin_current(), "current");
        blkin::Step of_kind(span.c_span(), "kind", BLKIN_CLIENT);
        blkin::Step of_string(blkin_current(), name, BLKIN_CLIENT);
    }
    blkin::Step none(nullptr, "none");
    blkin::Step none_of_kind(nullptr, name, BLKIN_CLIENT);
    return right && is_of(none.context(), blkin_context{0, 0, 0, 0, 0, 0, nullptr});
}

int main()
{
    ZTracer::ztrace_init();
    spans();
    return steps() ? 0 : 1;
}
