import nodeVault from 'node-vault';
import { isJsonObject, type JsonObject } from '../../../domain/shared/json.ts';
import { type Exchange, VaultConnection } from './vault-connection.ts';
import { refusal, VaultError } from './vault-error.ts';
import type { VaultSettings } from './vault-settings.ts';

export type VaultCall = {
  readonly method: Exchange['method'];
  /** Below `/v1/`, encoded. */
  readonly path: string;
  readonly body?: JsonObject | undefined;
  readonly token?: string;
  /** What must not appear in an error, should Vault repeat it; the token does not either. */
  readonly secrets?: readonly string[];
  readonly signal: AbortSignal;
};

/** Calls of Vault's HTTP interface, as somebody who has a token or none. */
export class VaultClient {
  readonly #vault: nodeVault.client;
  readonly #connection: VaultConnection;

  constructor(settings: VaultSettings) {
    const connection = new VaultConnection(settings);
    const vault = nodeVault({
      endpoint: settings.address,
      // It would print what is sent.
      debug: () => {},
      // Its own way to send follows redirects with the token, has no limit for answers and cannot be broken off.
      'request-promise': { defaults: () => (options: Exchange) => connection.exchange(options) },
    });
    // It takes these from the variables of Vault's command line, which are not about this service.
    Object.assign(vault, { token: '', namespace: settings.namespace ?? '', pathPrefix: '' });
    this.#vault = vault;
    this.#connection = connection;
  }

  /**
   * @returns the answer; an empty object when Vault has nothing to say.
   * @throws VaultError, or the reason of the signal.
   */
  async call({ method, path, body, token, secrets = [], signal }: VaultCall): Promise<JsonObject> {
    // A Vault agent between may insist on the first header, so that no page of a browser can call it.
    const headers = { 'X-Vault-Request': 'true', ...(token !== undefined && { 'X-Vault-Token': token }) };
    const options = { method, path: `/${path}`, headers, signal, ...(body !== undefined && { json: body }) };
    const answer: unknown = await this.#vault.request(options).catch((error: unknown) => {
      throw explained(error, token === undefined ? secrets : [token, ...secrets]);
    });
    if (!isJsonObject(answer)) throw new VaultError('what listens there is no Vault: its answer is no JSON');
    return answer;
  }

  /** Ends after the calls that are under way. */
  async close(): Promise<void> {
    await this.#connection.close();
  }
}

/** `node-vault` gives an answer that is not 200 or 204 as the `response` of an error. */
function explained(error: unknown, secrets: readonly string[]): unknown {
  const { response } = error as {
    readonly response?: { readonly statusCode: number; readonly body: unknown };
  };
  return response === undefined ? error : refusal(response.statusCode, response.body, secrets);
}
