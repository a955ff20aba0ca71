import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { type RequestTrace, type SpanAttributes, Traces } from '../../../application/ports/traces.ts';

/** W3C Trace Context section 3.2. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;
const SERVER_ERRORS = 500;

/** Spans by the interface of OpenTelemetry; the tracer decides on their export. */
export class OtelTraces extends Traces {
  readonly #tracer: Tracer;
  /** A separate context, not the global one of the process, which belongs to the application that embeds the service. */
  readonly #contexts = new AsyncLocalStorage<Context>();

  constructor(tracer: Tracer) {
    super();
    this.#tracer = tracer;
  }

  override begin(method: string, route: string, parent: string | undefined): RequestTrace {
    const attributes = { 'http.request.method': method, 'http.route': route };
    const options = { kind: SpanKind.SERVER, attributes };
    const span = this.#tracer.startSpan(`${method} ${route}`, options, contextOf(parent));
    const context = trace.setSpan(ROOT_CONTEXT, span);
    return {
      traceId: span.spanContext().traceId,
      within: (work) => this.#contexts.run(context, work),
      end(status) {
        span.setAttribute('http.response.status_code', status);
        if (status >= SERVER_ERRORS) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  }

  override span<T>(name: string, attributes: SpanAttributes, work: () => T): T {
    const parent = this.#contexts.getStore();
    // Work of jobs belongs to no trace.
    if (parent === undefined) return work();
    const span = this.#tracer.startSpan(name, { attributes }, parent);
    return this.#contexts.run(trace.setSpan(parent, span), () => ending(span, work));
  }

  override headers(): Readonly<Record<string, string>> {
    const span = trace.getSpan(this.#contexts.getStore() ?? ROOT_CONTEXT);
    if (span === undefined) return {};
    const { traceId, spanId, traceFlags } = span.spanContext();
    return { traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}` };
  }
}

/** The sampling decision is made here, whatever the caller requests: attackers could otherwise make the service keep every trace. */
function contextOf(parent: string | undefined): Context {
  const [, traceId = '', spanId = ''] = TRACEPARENT.exec(parent ?? '') ?? [];
  const remote = { traceId, spanId, traceFlags: TraceFlags.NONE, isRemote: true };
  return isSpanContextValid(remote) ? trace.setSpanContext(ROOT_CONTEXT, remote) : ROOT_CONTEXT;
}

/** The message of an error is left out, because it may quote confidential data. */
function ending<T>(span: Span, work: () => T): T {
  const fail = (error: unknown) => {
    span.setStatus({ code: SpanStatusCode.ERROR });
    span.setAttribute('error.type', error instanceof Error ? error.name : 'unknown');
    span.end();
  };
  try {
    const result = work();
    if (result instanceof Promise) result.then(() => span.end(), fail);
    else span.end();
    return result;
  } catch (error) {
    fail(error);
    throw error;
  }
}
