// The load for receivers of SDKs' spans: OpenTelemetry's SDK for Go in its usual set-up. A trace goes
// through three services. One of -slow traces is slow. The program prints the ids of the slow traces.
//
// SPDX-License-Identifier: BSD-2-Clause
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const spansOfTrace = 10

// the duration of a slow trace; the others take a tenth
const slow = 500 * time.Millisecond

var services = []string{"gateway", "orders", "store"}

type load struct {
	tracers []trace.Tracer
	now     time.Time
	took    time.Duration
}

func newProvider(ctx context.Context, url, service string, gzip bool) *sdk.TracerProvider {
	compression := otlptracehttp.NoCompression
	if gzip {
		compression = otlptracehttp.GzipCompression
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url+"/v1/traces"),
		otlptracehttp.WithCompression(compression))
	if err != nil {
		log.Fatal(err)
	}
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(attribute.String("service.name", service),
			attribute.String("service.version", "1.2.3"),
			attribute.String("deployment.environment.name", "production")))
	if err != nil {
		log.Fatal(err)
	}
	return sdk.NewTracerProvider(sdk.WithResource(described),
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(1<<17), sdk.WithBatchTimeout(time.Second)))
}

// Makes a span of the service. from and to are shares of the trace's duration. inside makes the
// span's children.
func (l *load) span(ctx context.Context, service int, name string, kind trace.SpanKind, from, to float64,
	inside func(context.Context)) trace.SpanContext {
	at := func(part float64) trace.SpanEventOption {
		return trace.WithTimestamp(l.now.Add(time.Duration(part * float64(l.took))))
	}
	ctx, span := l.tracers[service].Start(ctx, name, trace.WithSpanKind(kind), at(from), trace.WithAttributes(
		attribute.String("http.request.method", "GET"), attribute.String("url.path", "/v1/objects/4711"),
		attribute.String("server.address", "10.0.0.17"), attribute.Int("server.port", 8080),
		attribute.Int("http.response.status_code", 200), attribute.Bool("cache.hit", from > 0.3),
		attribute.Float64("queue.load", to)))
	if inside != nil {
		inside(ctx)
	}
	span.End(at(to))
	return span.SpanContext()
}

func (l *load) trace() trace.SpanContext {
	leaf := func(ctx context.Context, service int, name string, from, to float64) {
		l.span(ctx, service, name, trace.SpanKindInternal, from, to, nil)
	}
	return l.span(context.Background(), 0, "GET /objects", trace.SpanKindServer, 0, 1, func(ctx context.Context) {
		leaf(ctx, 0, "authorize", 0.01, 0.1)
		l.span(ctx, 0, "orders", trace.SpanKindClient, 0.1, 0.95, func(ctx context.Context) {
			l.span(ctx, 1, "lookup", trace.SpanKindServer, 0.12, 0.9, func(ctx context.Context) {
				leaf(ctx, 1, "parse", 0.12, 0.2)
				leaf(ctx, 1, "cache", 0.2, 0.3)
				l.span(ctx, 1, "store", trace.SpanKindClient, 0.3, 0.85, func(ctx context.Context) {
					l.span(ctx, 2, "read", trace.SpanKindServer, 0.35, 0.8, func(ctx context.Context) {
						leaf(ctx, 2, "seek", 0.4, 0.5)
						leaf(ctx, 2, "transfer", 0.5, 0.8)
					})
				})
			})
		})
	})
}

func main() {
	url := flag.String("url", "http://127.0.0.1:4318", "where spans go")
	rate := flag.Int("rate", 30000, "spans per second")
	seconds := flag.Float64("seconds", 5, "how long")
	slowOne := flag.Int("slow", 100, "one trace in this number is slow")
	gzip := flag.Bool("gzip", false, "compress")
	flag.Parse()

	ctx := context.Background()
	var failed atomic.Int64
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		failed.Add(1)
		log.Print(err)
	}))
	l := &load{}
	var providers []*sdk.TracerProvider
	for _, service := range services {
		provider := newProvider(ctx, *url, service, *gzip)
		providers = append(providers, provider)
		l.tracers = append(l.tracers, provider.Tracer("blkin/load", trace.WithInstrumentationVersion("0.1")))
	}
	said := struct {
		Spans  int      `json:"spans"`
		Failed int64    `json:"failed"`
		Slow   []string `json:"slow"`
	}{}
	begin := time.Now()
	for end := begin.Add(time.Duration(*seconds * float64(time.Second))); time.Now().Before(end); {
		// every 5 ms several traces, as servers have bursts of requests
		due := int(time.Since(begin).Seconds() * float64(*rate))
		for ; said.Spans < due; said.Spans += spansOfTrace {
			isSlow := said.Spans/spansOfTrace%*slowOne == *slowOne-1
			l.took = slow / 10
			if isSlow {
				l.took = slow
			}
			l.now = time.Now().Add(-l.took)
			if made := l.trace(); isSlow {
				said.Slow = append(said.Slow, made.TraceID().String())
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, provider := range providers {
		if err := provider.Shutdown(ctx); err != nil {
			log.Print(err)
			failed.Add(1)
		}
	}
	said.Failed = failed.Load()
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		log.Fatal(err)
	}
}
