/** Salted slow hashes of client secrets. */
export abstract class Secrets {
  /** @returns a self-describing hash (`argon2id$…`), safe to store. */
  abstract hash(secret: string): Promise<string>;
  /** @returns whether `secret` is the one behind `hash`, in time that does not tell why not. */
  abstract verify(secret: string, hash: string): Promise<boolean>;
}
