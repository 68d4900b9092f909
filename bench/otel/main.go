// The same spans as bench-lib's, made with OpenTelemetry's SDK for Go: begin, two events, a string
// and an integer attribute, end. Prints "otel NAME LEAST", in ns.
//
//	go run . (or: make bench-otel)
//
// Each span goes to a processor that does nothing.
//
// SPDX-License-Identifier: BSD-2-Clause
package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
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

func (nowhere) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (nowhere) OnEnd(sdk.ReadOnlySpan)                     {}
func (nowhere) Shutdown(context.Context) error             { return nil }
func (nowhere) ForceFlush(context.Context) error           { return nil }

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
	least := math.Inf(1)
	for b := 0; b < batches; b++ {
		start := time.Now()
		for i := 0; i < batch; i++ {
			span(ctx, tracer, i)
		}
		least = math.Min(least, float64(time.Since(start).Nanoseconds())/batch)
	}
	fmt.Printf("otel %s %.4f\n", name, least)
}

func main() {
	runtime.LockOSThread()
	measure("off", trace.NewNoopTracerProvider())
	measure("not_sampled", sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()),
		sdk.WithSpanProcessor(nowhere{})))
	measure("sampled", sdk.NewTracerProvider(sdk.WithSpanProcessor(nowhere{})))
}
