import { LRUCache } from 'lru-cache';
import type { WalletClient } from '../../domain/issuance/issuance-configuration.ts';
import { keysFor, type ParsedAssertion } from '../../domain/oauth/client-assertion.ts';
import { type JsonObject, parseJsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Log } from '../ports/log.ts';
import { Remote, RemoteError } from '../ports/remote.ts';
import { boundedBytes } from '../tenant-cache/cache-memory.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 256 * 1024;
const MAX_AGE_MS = 10 * 60 * 1000;
/** Minimum time between attempts, also failed ones, so that anonymous callers cannot trigger calls at will. */
const RETRY_PAUSE_MS = 30 * 1000;
const MAX_SET_BYTES = 16 * 1024 * 1024;

type KeySet = {
  readonly keys: JsonObject | undefined;
  readonly fetchedAt: number;
  /** Time of the last attempt, successful or not. */
  readonly triedAt: number;
};

/** The keys of registered wallets: as registered, or fetched from the configured address. */
export class ClientKeys extends needs({ remote: Remote, clock: Clock, log: Log }) {
  readonly #sets = new LRUCache<string, KeySet>(boundedBytes(MAX_SET_BYTES));
  readonly #flights = new SingleFlight<KeySet>();

  /** @returns the keys with which the assertion may verify; none when they cannot be fetched. */
  async candidates(tenantId: string, client: WalletClient, assertion: ParsedAssertion): Promise<readonly PublicJwk[]> {
    const { jwks, jwks_uri: uri } = client;
    if (uri === undefined) return keysFor(assertion, jwks);
    const keySet = await this.#current(tenantId, uri);
    const candidates = keysFor(assertion, keySet.keys);
    if (candidates.length > 0 || this.ports.clock.now().getTime() - keySet.triedAt < RETRY_PAUSE_MS) return candidates;
    // The key may be newer than the cached set.
    return keysFor(assertion, (await this.#fetchOnce(tenantId, uri, keySet)).keys);
  }

  async #current(tenantId: string, uri: string): Promise<KeySet> {
    const now = this.ports.clock.now().getTime();
    const cached = this.#sets.get(`${tenantId} ${uri}`);
    if (cached === undefined) return this.#fetchOnce(tenantId, uri, undefined);
    if (now - cached.fetchedAt < MAX_AGE_MS) return cached;
    if (now - cached.triedAt < RETRY_PAUSE_MS) return { ...cached, keys: undefined };
    return this.#fetchOnce(tenantId, uri, undefined);
  }

  #fetchOnce(tenantId: string, uri: string, previousSet: KeySet | undefined): Promise<KeySet> {
    const key = `${tenantId} ${uri}`;
    return this.#flights.run(key, async () => {
      const keys = await this.#fetch(tenantId, uri);
      const now = this.ports.clock.now().getTime();
      const failed = { keys: previousSet?.keys, fetchedAt: previousSet?.fetchedAt ?? 0, triedAt: now };
      const set = keys === undefined ? failed : { keys, fetchedAt: now, triedAt: now };
      this.#sets.set(key, set);
      return set;
    });
  }

  async #fetch(tenantId: string, uri: string): Promise<JsonObject | undefined> {
    const headers = { accept: 'application/jwk-set+json, application/json' };
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES };
    const options = { tenantId, method: 'GET', headers, ...limits } as const;
    try {
      const { status, body } = await this.ports.remote.request(uri, options);
      if (status !== 200) return this.#failed(tenantId, uri, `HTTP status ${status}`);
      const text = decodeUtf8(body);
      const keys = text === undefined ? undefined : parseJsonObject(text);
      return keys ?? this.#failed(tenantId, uri, 'the response is not a JSON object');
    } catch (error) {
      if (error instanceof RemoteError) return this.#failed(tenantId, uri, error.reason);
      throw error;
    }
  }

  /** The reason is logged; the wallet gets an unspecific error. */
  #failed(tenantId: string, uri: string, reason: string): undefined {
    const { host = '' } = URL.parse(uri) ?? {};
    this.ports.log.warn('the keys of a wallet client could not be fetched', { tenantId, host, reason });
    return undefined;
  }
}
