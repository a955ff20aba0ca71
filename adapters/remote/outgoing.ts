import { Remote, type RemoteResponse } from '../../application/ports/remote.ts';
import type { RequestSlots } from '../../application/ports/request-slots.ts';
import { AddressGuard } from './address-guard.ts';
import type { GuardedHttpClient } from './http-client.ts';
import { loadUndiciStepwise } from './load-undici.ts';

/** Outgoing calls of the service. The HTTP client is loaded with the first call; many processes never make one. */
export class Outgoing extends Remote {
  readonly #allow: readonly string[];
  readonly #guard: AddressGuard;
  readonly #requestSlots: RequestSlots | undefined;
  #client: Promise<GuardedHttpClient> | undefined;

  /**
   * @param settings `requestSlots`: slots of the requests that wait for these calls.
   * @throws Error for an invalid entry of `allow`, so that a typing error prevents the start.
   */
  constructor(settings: { readonly allow: readonly string[]; readonly requestSlots?: RequestSlots }) {
    super();
    this.#requestSlots = settings.requestSlots;
    this.#guard = new AddressGuard(settings.allow);
    this.#allow = settings.allow;
  }

  override refuses(url: string, tenantId: string | undefined): boolean {
    return this.#guard.forTenant(tenantId).refuses(url);
  }

  override async request(url: string, options: Parameters<Remote['request']>[1]): Promise<RemoteResponse> {
    this.#client ??= this.#load();
    const client = this.#client;
    const call = async () => (await client).request(url, options);
    return this.#requestSlots === undefined ? call() : this.#requestSlots.releaseSlotWhile(call);
  }

  async #load(): Promise<GuardedHttpClient> {
    await loadUndiciStepwise();
    const { GuardedHttpClient: Client } = await import('./http-client.ts');
    return new Client({ allow: this.#allow });
  }

  /** Resolves after the running calls. */
  async close(): Promise<void> {
    await (await this.#client)?.close();
  }
}
