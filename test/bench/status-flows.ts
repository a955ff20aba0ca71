import { expectStatus, pathOf, payloadOf, WrongAnswer } from './http-client.ts';
import type { Parts } from './presentations.ts';

/** A session that issued a credential, and the list with its status. */
export type Revocable = { readonly session: string; readonly listUri: string };

const REVOKED = 1;

/** What the issuer does with the status of a credential, and what others read of it. */
export class StatusFlows {
  readonly #parts: Parts;
  /** Revoked is final, so each revocation takes a credential of its own. */
  readonly #revocable: Revocable[] = [];
  readonly #lastList = new Map<number, string>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  add(all: readonly Revocable[]): void {
    for (const one of all) this.#revocable.push(one);
  }

  /** Of the first credential that the wallets hold. */
  async read(): Promise<void> {
    const [held] = this.#parts.held['dc+sd-jwt'].all;
    const claims = payloadOf(held?.credential ?? '');
    const { uri } = (claims['status'] as { status_list?: { uri?: string } } | undefined)?.status_list ?? {};
    await this.#readList(uri ?? null);
  }

  /** @returns what was revoked. */
  async revoke(): Promise<Revocable> {
    const { http, bearer } = this.#parts;
    const taken = this.#revocable.pop();
    if (taken === undefined) throw new Error('too few credentials were made that can be revoked');
    const body = { sessionId: taken.session, status: REVOKED };
    expectStatus('revoke', await http.postJson('/session/revoke', body, { ...bearer }), 201);
    return taken;
  }

  async revokeAndRead(wallet: number): Promise<void> {
    const list = await this.#readList((await this.revoke()).listUri);
    if (this.#lastList.get(wallet) === list) throw new WrongAnswer('status list', 'the change is not there');
    this.#lastList.set(wallet, list);
  }

  async #readList(uri: string | null): Promise<string> {
    const list = await this.#parts.http.get(pathOf(uri));
    expectStatus('status list', list, 200);
    if (list.text.split('.').length !== 3) throw new WrongAnswer('status list', 'not a JWT');
    return list.text;
  }
}
