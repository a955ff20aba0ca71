import nodeVault from 'node-vault';
import { isJsonObject, type JsonObject } from '../../../domain/shared/json.ts';
import { type Exchange, VaultConnection } from './vault-connection.ts';
import { toVaultError, VaultError } from './vault-error.ts';
import type { VaultSettings } from './vault-settings.ts';

export type VaultCall = {
  readonly method: Exchange['method'];
  /** Path below `/v1/`, encoded. */
  readonly path: string;
  readonly body?: JsonObject | undefined;
  readonly token?: string;
  /** Values that must not appear in an error, should Vault repeat them; the token does not either. */
  readonly secrets?: readonly string[];
  readonly signal: AbortSignal;
};

/** Calls of Vault's HTTP interface, with or without a token. */
export class VaultClient {
  readonly #vault: nodeVault.client;
  readonly #connection: VaultConnection;

  constructor(settings: VaultSettings) {
    const connection = new VaultConnection(settings);
    const vault = nodeVault({
      endpoint: settings.address,
      // The default prints requests.
      debug: () => {},
      // The default transport follows redirects with the token, has no limit for responses and cannot be aborted.
      'request-promise': { defaults: () => (options: Exchange) => connection.exchange(options) },
    });
    // The library takes these from variables of Vault's command line, which do not concern this service.
    Object.assign(vault, { token: '', namespace: settings.namespace ?? '', pathPrefix: '' });
    this.#vault = vault;
    this.#connection = connection;
  }

  /**
   * @returns the response; an empty object if Vault returns none.
   * @throws VaultError, or the reason of the signal.
   */
  async call({ method, path, body, token, secrets = [], signal }: VaultCall): Promise<JsonObject> {
    // A Vault agent in between may require the first header, which protects it from pages in a browser.
    const headers = { 'X-Vault-Request': 'true', ...(token !== undefined && { 'X-Vault-Token': token }) };
    const options = { method, path: `/${path}`, headers, signal, ...(body !== undefined && { json: body }) };
    const answer: unknown = await this.#vault.request(options).catch((error: unknown) => {
      throw toCallError(error, token === undefined ? secrets : [token, ...secrets]);
    });
    if (!isJsonObject(answer)) throw new VaultError('the server there is not Vault: its response is not JSON');
    return answer;
  }

  /** Resolves after the running calls. */
  async close(): Promise<void> {
    await this.#connection.close();
  }
}

/** `node-vault` returns a response other than 200 or 204 as the `response` of an error. */
function toCallError(error: unknown, secrets: readonly string[]): unknown {
  const { response } = error as { readonly response?: { readonly statusCode: number; readonly body: unknown } };
  return response === undefined ? error : toVaultError(response.statusCode, response.body, secrets);
}
