export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** Where time goes, step by step, across services (W3C Trace Context). There is none where nobody collects it. */
export abstract class Traces {
  /** Runs `work` as a part of what is under way; what fails is marked so. Names and attributes as in metrics: nothing of persons. */
  abstract span<T>(name: string, attributes: SpanAttributes, work: () => T): T;
  /** Header fields by which another service goes on with this trace; empty outside of one. */
  abstract headers(): Readonly<Record<string, string>>;
}
