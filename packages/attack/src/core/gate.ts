import { isIP } from 'node:net';

/** Rate limit for remote hosts: two calls per second. */
const PAUSE_MS = 500;

/** An address that this run may not call, with the reason. */
export class RefusedAddress extends Error {}

/** True if a host, as serialized by `URL`, is this machine. Names that merely resolve to it count as remote. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (bare === 'localhost' || bare === '::1') return true;
  return isIP(bare) === 4 && bare.startsWith('127.');
}

/**
 * Decides which hosts may be called, and how fast. Loopback is unrestricted; any other host is called only if the operator names it, and
 * then slowly.
 */
export class Gate {
  readonly #operated: ReadonlySet<string>;
  readonly #now: () => number;
  readonly #sleep: (ms: number) => Promise<void>;
  #next = 0;

  constructor(
    operated: readonly string[],
    now: () => number = () => performance.now(),
    sleep: (ms: number) => Promise<void> = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  ) {
    this.#operated = new Set(operated.map((host) => host.toLowerCase()));
    this.#now = now;
    this.#sleep = sleep;
  }

  /** @throws RefusedAddress for a forbidden address. */
  admit(address: string | URL): URL {
    let url: URL;
    try {
      url = new URL(address);
    } catch {
      throw new RefusedAddress(`not an address: ${String(address).slice(0, 100)}`);
    }
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new RefusedAddress(`not http: ${url.protocol}`);
    if (isLoopback(url.hostname) || this.#operated.has(url.hostname)) return url;
    throw new RefusedAddress(`${url.hostname} is not this machine. If you operate it, say so: --i-operate-this ${url.hostname}`);
  }

  /** Waits until this address may be called. */
  async turn(url: URL): Promise<void> {
    if (isLoopback(url.hostname)) return;
    const startAt = Math.max(this.#now(), this.#next);
    this.#next = startAt + PAUSE_MS;
    if (startAt > this.#now()) await this.#sleep(startAt - this.#now());
  }
}
