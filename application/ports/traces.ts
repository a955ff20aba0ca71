export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** One request that is answered. */
export type RequestTrace = {
  /** In the log, so that lines and trace are found by each other. */
  readonly traceId: string;
  /** Runs what belongs to the request. */
  within<T>(work: () => T): T;
  end(status: number): void;
};

/**
 * Where time goes, step by step, across services (W3C Trace Context). There is none where nobody collects it. Names and
 * attributes are as in metrics: nothing that callers choose, and nothing of persons.
 */
export abstract class Traces {
  /**
   * @param route its pattern.
   * @param parent the header field `traceparent` of the caller. It says where the trace belongs, and nothing else.
   */
  abstract begin(method: string, route: string, parent: string | undefined): RequestTrace;
  /** Runs `work` as a part of what is under way; what fails is marked so. */
  abstract span<T>(name: string, attributes: SpanAttributes, work: () => T): T;
  /** Header fields by which a backend goes on with this trace; empty outside of one. */
  abstract headers(): Readonly<Record<string, string>>;
}
