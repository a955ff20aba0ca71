import { Remote, type RemoteResponse } from '../../application/ports/remote.ts';

/** Calls a server by another address than the one that it publishes, for example within a cluster. */
export class RedirectedRemote extends Remote {
  readonly #remote: Remote;
  readonly #published: string;
  readonly #internal: string;

  /** @param addresses base addresses without a trailing slash. */
  constructor(remote: Remote, addresses: { readonly published: string; readonly internal: string }) {
    super();
    this.#remote = remote;
    this.#published = addresses.published;
    this.#internal = addresses.internal;
  }

  override refuses(url: string, tenantId: string | undefined): boolean {
    return this.#remote.refuses(this.#internalUrl(url), tenantId);
  }

  override request(url: string, options: Parameters<Remote['request']>[1]): Promise<RemoteResponse> {
    return this.#remote.request(this.#internalUrl(url), options);
  }

  #internalUrl(url: string): string {
    const isWithin = url === this.#published || url.startsWith(`${this.#published}/`);
    return isWithin ? this.#internal + url.slice(this.#published.length) : url;
  }
}
