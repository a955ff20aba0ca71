/** A dependency that can be down. Each adapter that can fail has one; `GET /health` runs all of them. */
export type Probe = {
  /** Name in the health answer, for example `database`. */
  readonly name: string;
  /** The service works without it: it is degraded, not down. */
  readonly isPartial?: true;
  /** Time for which a result is cached, for checks that are expensive for the dependency. */
  readonly restMs?: number;
  /** Registers a callback that runs when the cached result may be out of date. */
  onChange?(changed: () => void): void;
  /** Resolves when it works; throws, or never resolves, when it does not. */
  check(): Promise<void>;
};
