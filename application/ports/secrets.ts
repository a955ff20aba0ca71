/** Salted slow hashes of client secrets. */
export abstract class Secrets {
  /** @returns a self-describing hash (`argon2id$…`), safe to store. */
  abstract hash(secret: string): Promise<string>;
  /**
   * @param hash empty for a client that does not exist: the answer takes as long as for one that does.
   * @param name id of the client, existing or not. Attempts on one id get few of the slots, so that an attacker cannot lock
   *   out other clients.
   * @returns true if `secret` matches `hash`; the time that it takes does not reveal the reason of a mismatch.
   * @throws Failure `too_many_requests` when too many attempts on the id wait, whether or not there is such a client.
   */
  abstract verify(secret: string, hash: string, name: string): Promise<boolean>;
}
