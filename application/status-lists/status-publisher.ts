import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { pickKeyChain } from '../../domain/keys/key-chain.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { packEntries, readStatus, writeStatus } from '../../domain/status-lists/bits.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import { STATUS_LIST_JWT_TYPE, statusListClaims } from '../../domain/status-lists/token.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Kms } from '../ports/kms.ts';
import { OwnStatusLists } from '../ports/own-status-lists.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { signJwt } from '../steps/sign-jwt.ts';
import type { TenantViews } from '../steps/tenant-views.ts';
import { statusListUri } from './status-allocator.ts';

type Ports = {
  readonly store: Store;
  readonly tenantViews: TenantViews;
  readonly kms: Kms;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
  readonly eventBus: EventBus;
};

export type PublishedStatusList = {
  readonly jwt: Buffer;
  readonly etag: string;
  readonly expiresAt: Date;
};

/** Bytes of all lists held in memory; the least recently used go first. */
const MAX_BYTES = 64 * 1024 * 1024;
/**
 * A change on another instance is seen after this at the latest; one of this instance at once. Consumers cache a
 * token for its whole `ttl`, so half a second more changes nothing for them and saves a query per request.
 */
const CHECK_EVERY_MS = 500;

const compress = promisify(deflate);

type Entry = {
  readonly list: StatusList;
  readonly bytes: Buffer;
  /** Version of the list that `bytes` shows. */
  version: number;
  published: (PublishedStatusList & { readonly version: number }) | undefined;
  /** 0 forces a look at the database. */
  checkedAt: number;
  /** Only one caller at a time brings an entry up to date. */
  refreshing: Promise<void> | undefined;
};

/** Keeps bit arrays of status lists and the tokens made of them; both are derived from the stored entries. */
export class StatusPublisher extends OwnStatusLists {
  readonly #ports: Ports;
  readonly #entries = new LRUCache<string, Entry>({
    maxSize: MAX_BYTES,
    sizeCalculation: (entry) => entry.bytes.length * 2 + 4096,
  });
  readonly #loading = new Map<string, Promise<Entry>>();

  constructor(ports: Ports) {
    super();
    this.#ports = ports;
    ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type !== 'status-list') return;
      const entry = this.#entries.get(`${wakeUp.tenantId} ${wakeUp.listId}`);
      if (entry !== undefined) entry.checkedAt = 0;
    });
  }

  /**
   * The signed token of a list (Token Status List section 8.1). Suspended tenants' lists stay published.
   * @throws Failure `not_found`.
   */
  async publish(tenantId: TenantId, listId: string): Promise<PublishedStatusList> {
    const entry = await this.#upToDate(tenantId, listId);
    const now = this.#ports.clock.now();
    const { published } = entry;
    if (published !== undefined && published.expiresAt > now) {
      if (published.version === entry.version || !entry.list.immediateUpdate) return published;
    }
    return this.#sign(tenantId, entry, now);
  }

  override async statusAt(tenantId: TenantId, listId: string, index: number): Promise<number | undefined> {
    try {
      const { list, bytes } = await this.#upToDate(tenantId, listId);
      return index >= 0 && index < list.capacity ? readStatus(bytes, list.bits, index) : undefined;
    } catch (error) {
      if (error instanceof Failure && error.code === 'not_found') return undefined;
      throw error;
    }
  }

  async #upToDate(tenantId: TenantId, listId: string): Promise<Entry> {
    const key = `${tenantId} ${listId}`;
    const entry = this.#entries.get(key) ?? (await this.#load(tenantId, listId, key));
    if (performance.now() - entry.checkedAt < CHECK_EVERY_MS && entry.checkedAt > 0) return entry;
    // A refresh that began before this request may miss what this caller must see; the one after it will not.
    if (entry.refreshing !== undefined) await entry.refreshing;
    if (entry.checkedAt === 0 || performance.now() - entry.checkedAt >= CHECK_EVERY_MS) {
      entry.refreshing ??= this.#refresh(tenantId, entry).finally(() => {
        entry.refreshing = undefined;
      });
      await entry.refreshing;
    }
    return entry;
  }

  #load(tenantId: TenantId, listId: string, key: string): Promise<Entry> {
    const underWay = this.#loading.get(key);
    if (underWay !== undefined) return underWay;
    const loading = this.#read(tenantId, listId)
      .then((entry) => {
        this.#entries.set(key, entry);
        return entry;
      })
      .finally(() => this.#loading.delete(key));
    this.#loading.set(key, loading);
    return loading;
  }

  async #read(tenantId: TenantId, listId: string): Promise<Entry> {
    const beats = this.#ports.store.beats(tenantId);
    const list = await beats.findStatusList(listId);
    if (list === undefined) throw new Failure('not_found', 'unknown status list');
    const bytes = packEntries(list.bits, list.capacity, await beats.statusEntries(listId, 0));
    const { token, version } = list;
    const published =
      token === null ? undefined : { ...publication(token.jwt, token.expiresAt), version: token.version };
    return { list, bytes, version, published, checkedAt: performance.now(), refreshing: undefined };
  }

  async #refresh(tenantId: TenantId, entry: Entry): Promise<void> {
    const beats = this.#ports.store.beats(tenantId);
    const began = performance.now();
    // Marked before the read: a change that comes meanwhile sets it back to 0 and is not lost.
    entry.checkedAt = began;
    const [head] = await beats.statusListHeads([entry.list.id]);
    if (head === undefined) {
      this.#entries.delete(`${tenantId} ${entry.list.id}`);
      throw new Failure('not_found', 'unknown status list');
    }
    if (head.version === entry.version) return;
    for (const { index, status } of await beats.statusEntries(entry.list.id, entry.version)) {
      writeStatus(entry.bytes, entry.list.bits, index, status);
    }
    entry.version = head.version;
  }

  async #sign(tenantId: TenantId, entry: Entry, now: Date): Promise<PublishedStatusList> {
    const { store, tenantViews, kms, settings } = this.#ports;
    const { list, version } = entry;
    const beats = store.beats(tenantId);
    const head = await beats.head();
    if (head === undefined) throw new Failure('not_found', 'unknown status list');
    const chains = await tenantViews.of(head).keyChains();
    const chain = pickKeyChain(chains, 'statusList', now, list.keyChainId ?? undefined);
    const lst = (await compress(entry.bytes, { level: 9 })).toString('base64url');
    const payload = statusListClaims({
      uri: statusListUri(settings, tenantId, list.id),
      bits: list.bits,
      lst,
      issuedAt: now,
      ttlSeconds: list.ttlSeconds,
      ...(list.enableAggregation ? { aggregationUri: aggregationUri(settings, tenantId) } : {}),
    });
    // HAIP 1.0 section 6.1 wants `x5c`; wallets outside it look for `jwk`.
    const jwt = await signJwt(kms, { chain, typ: STATUS_LIST_JWT_TYPE, payload, withJwk: true });
    const issuedAt = new Date(Math.floor(now.getTime() / 1000) * 1000);
    const expiresAt = new Date(issuedAt.getTime() + list.ttlSeconds * 1000);
    const published = { ...publication(jwt, expiresAt), version };
    if (entry.published === undefined || entry.published.version <= version) entry.published = published;
    await beats.saveStatusToken(list.id, jwt, version, issuedAt, expiresAt);
    return published;
  }
}

function publication(jwt: string, expiresAt: Date): PublishedStatusList {
  const etag = `"${createHash('sha256').update(jwt).digest('base64url').slice(0, 22)}"`;
  return { jwt: Buffer.from(jwt), etag, expiresAt };
}

/** One aggregation per tenant (Token Status List section 9). */
export function aggregationUri(settings: ServiceSettings, tenantId: string): string {
  return `${issuerIdentifier(settings, tenantId)}/status-lists`;
}
