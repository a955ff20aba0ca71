/** Salted slow hashes of client secrets. */
export abstract class Secrets {
  /** @returns a self-describing hash (`argon2id$…`), safe to store. */
  abstract hash(secret: string): Promise<string>;
  /**
   * @param hash empty for a client that does not exist: the answer takes as long as for one that does.
   * @param name of the client, known or not. Attempts on one name take few of the places of all, so that nobody can shut the
   *   others out.
   * @returns whether `secret` is the one behind `hash`, in time that does not tell why not.
   * @throws Failure `too_many_requests` when too many attempts on the name wait, whether or not there is such a client.
   */
  abstract verify(secret: string, hash: string, name: string): Promise<boolean>;
}
