export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Structured log. Fields are names, numbers and ids; never a secret, a token or a claim. */
export abstract class Log {
  abstract info(message: string, fields?: LogFields): void;
  abstract warn(message: string, fields?: LogFields): void;
  abstract error(message: string, fields?: LogFields, cause?: unknown): void;
}
