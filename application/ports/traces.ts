export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export type RequestTrace = {
  /** Written to the log, so that log lines and trace can be correlated. */
  readonly traceId: string;
  within<T>(work: () => T): T;
  end(status: number): void;
};

/**
 * Distributed tracing (W3C Trace Context); an optional port, absent if nothing collects traces. Names and attributes follow the rule
 * of metrics: nothing that callers choose, and no personal data.
 */
export abstract class Traces {
  /**
   * @param route its pattern.
   * @param parent the header field `traceparent` of the caller; it only links the trace.
   */
  abstract begin(method: string, route: string, parent: string | undefined): RequestTrace;
  /** Runs `work` as a child span of the current one; a failure marks the span. */
  abstract span<T>(name: string, attributes: SpanAttributes, work: () => T): T;
  /** Header fields that let a backend continue this trace; empty outside of one. */
  abstract headers(): Readonly<Record<string, string>>;
}
