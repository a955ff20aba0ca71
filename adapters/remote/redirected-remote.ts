import { Remote, type RemoteResponse } from '../../application/ports/remote.ts';

/** Reaches a server by another address than the one that it publishes: within a cluster, for example. */
export class RedirectedRemote extends Remote {
  readonly #remote: Remote;
  readonly #published: string;
  readonly #internal: string;

  /** @param addresses bases of addresses, without a slash at the end. */
  constructor(remote: Remote, addresses: { readonly published: string; readonly internal: string }) {
    super();
    this.#remote = remote;
    this.#published = addresses.published;
    this.#internal = addresses.internal;
  }

  override refuses(url: string, tenantId: string | undefined): boolean {
    return this.#remote.refuses(this.#reached(url), tenantId);
  }

  override request(url: string, options: Parameters<Remote['request']>[1]): Promise<RemoteResponse> {
    return this.#remote.request(this.#reached(url), options);
  }

  #reached(url: string): string {
    const isWithin = url === this.#published || url.startsWith(`${this.#published}/`);
    return isWithin ? this.#internal + url.slice(this.#published.length) : url;
  }
}
