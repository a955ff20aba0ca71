export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** What lines are about, as far as it is known. */
export type LogContext = Record<string, LogFields[string]>;

/** Structured log. Fields are names, numbers and ids; never a secret, a token or a claim. */
export abstract class Log {
  abstract info(message: string, fields?: LogFields): void;
  abstract warn(message: string, fields?: LogFields): void;
  abstract error(message: string, fields?: LogFields, cause?: unknown): void;

  /** Runs what belongs together, such as the answer to a request: every line of it has `about` as it is by then. */
  within<T>(_about: LogContext, work: () => T): T {
    return work();
  }

  /** Adds to what the lines of the work under way are about; nothing outside of `within`. */
  note(_fields: LogFields): void {}
}
