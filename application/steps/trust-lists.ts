import { LRUCache } from 'lru-cache';
import {
  checkSuccession,
  type ListLifetime,
  listLifetime,
  type SeenRelease,
} from '../../domain/trust-lists/freshness.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { MAX_LIST_BYTES } from '../../domain/trust-lists/signed-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { Certificates } from '../ports/certificates.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { type Remote, RemoteError } from '../ports/remote.ts';
import type { Signatures } from '../ports/signatures.ts';
import { type PinnedSigners, verifyTrustList } from './verify-trust-list.ts';

const TIMEOUT_MS = 5_000;
const MAX_CACHE_BYTES = 128 * 1024 * 1024;
/** What an entry costs besides its text, which grows when it is parsed. */
const ENTRY_OVERHEAD = 8_192;
const MAX_RELEASES = 10_000;
const MAX_FAILURES = 10_000;
const FAILURE_MS = 15_000;
const MAX_TENANTS = 2_000;

type Ports = {
  readonly remote: Remote;
  readonly signatures: Signatures;
  readonly certificates: Certificates;
  readonly clock: Clock;
  readonly log: Log;
};

type Wanted = {
  readonly key: string;
  readonly tenantId: string;
  readonly uri: string;
  readonly signers: PinnedSigners;
};

type Known = {
  readonly uri: string;
  readonly list: TrustList;
  readonly contentHash: string;
  readonly size: number;
  readonly fetchedAt: Date;
  readonly lifetime: ListLifetime;
};

export type TrustListCacheStats = {
  readonly size: number;
  readonly hits: number;
  readonly misses: number;
  readonly entries: readonly { readonly uri: string; readonly fetchedAt: Date; readonly expiresAt: Date }[];
};

/** Trust lists of others: fetched once for all who wait, verified before they are kept, per tenant. */
export class TrustLists {
  readonly #ports: Ports;
  readonly #lists = new LRUCache<string, Known>({
    maxSize: MAX_CACHE_BYTES,
    sizeCalculation: ({ size }) => size + ENTRY_OVERHEAD,
  });
  /** Outlives the lists and the clearing of them, so that nobody brings an older release back. */
  readonly #releases = new LRUCache<string, SeenRelease>({ max: MAX_RELEASES });
  readonly #failures = new LRUCache<string, { readonly refusal: TrustListRefusal; readonly until: number }>({
    max: MAX_FAILURES,
  });
  readonly #underWay = new Map<string, Promise<Known>>();
  readonly #counts = new LRUCache<string, { hits: number; misses: number }>({ max: MAX_TENANTS });

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @returns the list as it counts now: the same object until its content changes.
   * @throws TrustListRefusal when no list can be had that one of `signers` vouches for.
   */
  async get(tenantId: string, uri: string, signers: PinnedSigners): Promise<TrustList> {
    const wanted = { key: `${tenantId} ${signers.id} ${uri}`, tenantId, uri, signers };
    const now = this.#ports.clock.now();
    const known = this.#lists.get(wanted.key);
    if (known === undefined || now >= known.lifetime.expiresAt) {
      this.#count(tenantId).misses++;
      return (await this.#fetchOnce(wanted)).list;
    }
    this.#count(tenantId).hits++;
    if (now >= known.lifetime.refreshAt) this.#refresh(wanted);
    return known.list;
  }

  stats(tenantId: string): TrustListCacheStats {
    const entries = [...this.#lists.entries()]
      .filter(([key]) => key.startsWith(`${tenantId} `))
      .map(([, { uri, fetchedAt, lifetime }]) => ({ uri, fetchedAt, expiresAt: lifetime.expiresAt }));
    const { hits, misses } = this.#counts.get(tenantId) ?? { hits: 0, misses: 0 };
    return { size: entries.length, hits, misses, entries };
  }

  /** The next check fetches, also while a fetch that began before is under way. */
  clear(tenantId: string): void {
    for (const table of [this.#lists, this.#failures, this.#underWay]) {
      for (const key of [...table.keys()]) if (key.startsWith(`${tenantId} `)) table.delete(key);
    }
  }

  #count(tenantId: string): { hits: number; misses: number } {
    let counts = this.#counts.get(tenantId);
    if (counts === undefined) {
      counts = { hits: 0, misses: 0 };
      this.#counts.set(tenantId, counts);
    }
    return counts;
  }

  /** Nobody waits for this copy. */
  #refresh(wanted: Wanted): void {
    this.#fetchOnce(wanted).catch((error: unknown) => {
      // Refusals are in the log already.
      if (error instanceof TrustListRefusal) return;
      this.#ports.log.error('trust list not refreshed', { tenantId: wanted.tenantId }, error);
    });
  }

  #fetchOnce(wanted: Wanted): Promise<Known> {
    const { key } = wanted;
    const failed = this.#failures.get(key);
    if (failed !== undefined && this.#ports.clock.now().getTime() < failed.until) {
      return Promise.reject(failed.refusal);
    }
    const underWay = this.#underWay.get(key);
    if (underWay !== undefined) return underWay;
    const fetching = this.#fetch(wanted).then(
      (known) => {
        if (this.#settle(key, fetching)) this.#lists.set(key, known);
        return known;
      },
      (error: unknown) => {
        const isCurrent = this.#settle(key, fetching);
        if (error instanceof TrustListRefusal) this.#recordFailure(wanted, error, isCurrent);
        throw error;
      },
    );
    this.#underWay.set(key, fetching);
    return fetching;
  }

  /** @returns whether nobody cleared the cache since `fetching` began. */
  #settle(key: string, fetching: Promise<Known>): boolean {
    if (this.#underWay.get(key) !== fetching) return false;
    this.#underWay.delete(key);
    return true;
  }

  #recordFailure({ key, tenantId, uri }: Wanted, refusal: TrustListRefusal, isCurrent: boolean): void {
    const { clock, log } = this.#ports;
    const until = clock.now().getTime() + FAILURE_MS;
    if (isCurrent) this.#failures.set(key, { refusal, until });
    // The query may carry a secret of the operator's.
    const { origin, pathname } = new URL(uri);
    log.warn('trust list not used', { tenantId, list: origin + pathname, reason: refusal.message });
  }

  async #fetch(wanted: Wanted): Promise<Known> {
    const { key, uri, signers } = wanted;
    if (signers.anchors.length === 0) {
      throw new TrustListRefusal('untrusted_signer', 'no certificate is configured for trust lists');
    }
    const text = await this.#download(uri);
    const now = this.#ports.clock.now();
    const { list, contentHash } = verifyTrustList(this.#ports, text, signers, now);
    const release = { sequenceNumber: list.sequenceNumber, contentHash };
    checkSuccession(this.#releases.get(key), release);
    this.#releases.set(key, release);
    const before = this.#lists.get(key);
    const isSame = before?.contentHash === contentHash;
    const lifetime = listLifetime(list, now);
    return {
      uri,
      list: isSame ? before.list : list,
      contentHash,
      size: text.length,
      fetchedAt: now,
      lifetime,
    };
  }

  async #download(uri: string): Promise<string> {
    const options = {
      method: 'GET',
      headers: { accept: 'application/jwt, application/jose, */*;q=0.1' },
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_LIST_BYTES,
    } as const;
    const answer = await this.#ports.remote.request(uri, options).catch((error: unknown) => {
      if (error instanceof RemoteError) throw new TrustListRefusal('unavailable', error.fault);
      throw error;
    });
    if (answer.status !== 200) throw new TrustListRefusal('unavailable', `HTTP status ${answer.status}`);
    return answer.body.toString('latin1').trim();
  }
}
