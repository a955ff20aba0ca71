import { isIP } from 'node:net';

/** Two calls in a second, to hosts that are not this machine. */
const PAUSE_MS = 500;

/** An address that this run may not call, and why. */
export class RefusedAddress extends Error {}

/** Whether a host, as `URL` writes it, is this machine. Names that merely resolve to it count as others. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (bare === 'localhost' || bare === '::1') return true;
  return isIP(bare) === 4 && bare.startsWith('127.');
}

/**
 * Says which hosts are called, and how fast. Loopback is called as it is; any other host only when the operator names
 * just that host, and then slowly.
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

  /** @throws RefusedAddress for what may not be called. */
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
    const at = Math.max(this.#now(), this.#next);
    this.#next = at + PAUSE_MS;
    if (at > this.#now()) await this.#sleep(at - this.#now());
  }
}
