import { Remote, type RemoteResponse } from '../../application/ports/remote.ts';
import type { WorkPlaces } from '../../application/ports/work-places.ts';
import { AddressGuard } from './address-guard.ts';
import type { GuardedHttpClient } from './http-client.ts';
import { loadUndiciInTurns } from './load-undici.ts';

/** The way out of the service. Its HTTP client is loaded when the first call is made; many processes never make one. */
export class Outgoing extends Remote {
  readonly #allow: readonly string[];
  readonly #guard: AddressGuard;
  readonly #places: WorkPlaces | undefined;
  #client: Promise<GuardedHttpClient> | undefined;

  /**
   * @param settings `places` of requests that wait for these calls.
   * @throws Error when an entry of `allow` cannot be read, so that a typing error stops the start.
   */
  constructor(settings: { readonly allow: readonly string[]; readonly places?: WorkPlaces }) {
    super();
    this.#places = settings.places;
    this.#guard = new AddressGuard(settings.allow);
    this.#allow = settings.allow;
  }

  override refuses(url: string, tenantId: string | undefined): boolean {
    return this.#guard.of(tenantId).refuses(url);
  }

  override async request(url: string, options: Parameters<Remote['request']>[1]): Promise<RemoteResponse> {
    this.#client ??= this.#load();
    const client = this.#client;
    const call = async () => (await client).request(url, options);
    return this.#places === undefined ? call() : this.#places.elsewhere(call);
  }

  async #load(): Promise<GuardedHttpClient> {
    await loadUndiciInTurns();
    const { GuardedHttpClient: Client } = await import('./http-client.ts');
    return new Client({ allow: this.#allow });
  }

  /** Ends after the calls that are under way. */
  async close(): Promise<void> {
    await (await this.#client)?.close();
  }
}
