export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Fields that all log lines of one request share. */
export type LogContext = Record<string, LogFields[string]>;

/** Structured log. Fields are names, numbers and ids; never a secret, a token or a claim. */
export abstract class Log {
  abstract info(message: string, fields?: LogFields): void;
  abstract warn(message: string, fields?: LogFields): void;
  abstract error(message: string, fields?: LogFields, cause?: unknown): void;

  /** Runs the work of one request: every log line in it has the fields of `about` at that time. */
  within<T>(_context: LogContext, work: () => T): T {
    return work();
  }

  /** Adds fields to the context of the current `within`; does nothing outside of one. */
  note(_fields: LogFields): void {}
}
