/** Something that can be down. Each adapter that can fail has one; `GET /health` runs them all. */
export type Probe = {
  /** How the health answer calls it, for example `database`. */
  readonly name: string;
  /** Others go on without it: the service is degraded, and not down. */
  readonly isPartial?: true;
  /** An answer counts so long, whatever it was: for what costs the one who is asked more than a look. */
  readonly restMs?: number;
  /** Calls back when the answer that rests may be another one by now. */
  onChange?(changed: () => void): void;
  /** Resolves when it works; throws, or never resolves, when it does not. */
  check(): Promise<void>;
};
