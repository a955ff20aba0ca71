/** Salted slow hashes of client secrets. */
export abstract class Secrets {
  /** @returns a self-describing hash (`argon2id$…`), safe to store. */
  abstract hash(secret: string): Promise<string>;
  /**
   * @param hash empty for a client that does not exist. Such attempts wait among themselves only, and attempts on one
   *   client take few of the places of all, so that nobody can shut the others out.
   * @returns whether `secret` is the one behind `hash`, in time that does not tell why not.
   * @throws Failure `too_many_requests` when too many attempts of the kind wait.
   */
  abstract verify(secret: string, hash: string): Promise<boolean>;
}
