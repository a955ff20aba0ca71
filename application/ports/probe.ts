/** Something that can be down. Each adapter that can fail binds one; `GET /health` runs them all. */
export abstract class Probe {
  /** How the health answer calls it, for example `database`. */
  abstract readonly name: string;
  /** Resolves when it works; throws, or never resolves, when it does not. */
  abstract check(): Promise<void>;
}
