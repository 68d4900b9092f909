// The same spans as bench-lib's, made with OpenTelemetry's SDK for Go: begin, two events, a string
// and an integer attribute, end. Prints "otel NAME LEAST P10 SPREAD", in ns.
//
//	go run . (or: make bench-otel)
//
// What a span is handed to is a processor that does nothing ("sampled"), or OpenTelemetry's batching
// one with an exporter that does nothing ("batched").
//
// SPDX-License-Identifier: BSD-2-Clause
package main

import (
	"context"
	"fmt"
	"runtime"
	"sort"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	batch   = 2000
	batches = 400
)

type nowhere struct{}

func (nowhere) OnStart(context.Context, sdk.ReadWriteSpan)            {}
func (nowhere) OnEnd(sdk.ReadOnlySpan)                                {}
func (nowhere) Shutdown(context.Context) error                        { return nil }
func (nowhere) ForceFlush(context.Context) error                      { return nil }
func (nowhere) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }

func span(ctx context.Context, tracer trace.Tracer, i int) {
	_, span := tracer.Start(ctx, "osd_op write")
	span.AddEvent("queued")
	span.SetAttributes(attribute.String("object", "rbd_data.4f2a.01"))
	span.SetAttributes(attribute.Int64("offset", int64(i)))
	span.AddEvent("committed")
	span.End()
}

func measure(name string, provider trace.TracerProvider) {
	tracer := provider.Tracer("bench")
	ctx, root := tracer.Start(context.Background(), "client request")
	defer root.End()
	times := make([]float64, batches)
	for b := range times {
		start := time.Now()
		for i := 0; i < batch; i++ {
			span(ctx, tracer, i)
		}
		times[b] = float64(time.Since(start).Nanoseconds()) / batch
	}
	first, second := least(times[:batches/2]), least(times[batches/2:])
	sort.Float64s(times)
	spread := first/second - 1
	if spread < 0 {
		spread = -spread
	}
	fmt.Printf("otel %s %.4f %.4f %.4f\n", name, times[0], times[batches/10], spread)
}

func least(times []float64) float64 {
	result := times[0]
	for _, t := range times {
		if t < result {
			result = t
		}
	}
	return result
}

func main() {
	runtime.LockOSThread()
	measure("off", trace.NewNoopTracerProvider())
	measure("not_sampled", sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()),
		sdk.WithSpanProcessor(nowhere{})))
	measure("sampled", sdk.NewTracerProvider(sdk.WithSpanProcessor(nowhere{})))
	measure("batched", sdk.NewTracerProvider(sdk.WithBatcher(nowhere{})))
}
