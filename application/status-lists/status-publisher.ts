import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import { type KeyChain, leavesOf, signingChain } from '../../domain/keys/key-chain.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { packEntries, readStatus, writeStatus } from '../../domain/status-lists/bits.ts';
import { signerOfList } from '../../domain/status-lists/list-signer.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import { STATUS_LIST_JWT_TYPE, statusListClaims } from '../../domain/status-lists/token.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import { needs, type PortsOf } from '../needs.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Kms } from '../ports/kms.ts';
import { issuerIdentifier, ServiceSettings } from '../ports/settings.ts';
import { boundedBytes, registerCache } from '../tenant-cache/cache-memory.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { statusListUri } from './status-allocator.ts';

export type PublishedStatusList = { readonly jwt: Buffer; readonly etag: string; readonly expiresAt: Date };

/** Size of the cache of lists. */
const MAX_BYTES = 64 * 1024 * 1024;
/**
 * Maximum delay of changes by other processes; those of this process are visible at once. Consumers cache a token for its whole
 * `ttl`, so half a second makes no difference to them and saves a query per request.
 */
const CHECK_EVERY_MS = 500;
/** Size of the record of the last changes. */
const MAX_CHANGED_BYTES = 8 * 1024 * 1024;

const compress = promisify(deflate);

type Publication = PublishedStatusList & { readonly version: number };

type Entry = {
  /** A change of the signer raises the version. */
  list: StatusList;
  readonly bytes: Buffer;
  /** Version of the list that `bytes` shows. */
  version: number;
  /** Term of the database at the time of the full read. */
  readonly term: number;
  published: Publication | undefined;
  /** Begin of the last check of the stored version, in milliseconds of this process. */
  checkedAt: number;
  /** Number of the last change of this process that is contained in `bytes`. */
  appliedChange: number;
  checking: Promise<void> | undefined;
  /** The running signature, if any; one per version. */
  signing: { readonly version: number; readonly token: Promise<PublishedStatusList> } | undefined;
};

/** Caches bit arrays of status lists and their signed tokens, both derived from the stored entries. */
export class StatusPublisher extends needs({ ...TRANSACTION_PORTS, kms: Kms, settings: ServiceSettings, eventBus: EventBus }) {
  readonly #entries = registerCache(
    'status-lists',
    new LRUCache<string, Entry>({ maxSize: MAX_BYTES, sizeCalculation: (entry) => entry.bytes.length * 2 + 4096 }),
  );
  readonly #loading = new SingleFlight<Entry>();
  /** Number of the last change of each list that the event bus reported. */
  readonly #changes = new LRUCache<string, number>(boundedBytes<number>(MAX_CHANGED_BYTES));
  #change = 0;

  constructor(ports: PortsOf<typeof StatusPublisher.needs>) {
    super(ports);
    ports.eventBus.subscribe((wakeUp) => {
      if (wakeUp.type !== 'status-list') return;
      this.#change++;
      this.#changes.set(`${wakeUp.tenantId} ${wakeUp.listId}`, this.#change);
    });
    ports.store.onRewind(() => this.#entries.clear());
  }

  /**
   * The signed token of a list (Token Status List section 8.1). Suspended tenants' lists stay published.
   * @throws Failure `not_found`.
   */
  async publish(tenantId: TenantId, listId: string): Promise<PublishedStatusList> {
    const entry = await this.#getCurrent(tenantId, listId);
    const now = this.ports.clock.now();
    const { published, list, version } = entry;
    if (published !== undefined && published.expiresAt > now) {
      if (published.version >= version || !list.immediateUpdate) return published;
    }
    if (entry.signing?.version !== version) {
      const token = this.#sign(tenantId, entry, now).finally(() => {
        if (entry.signing?.token === token) entry.signing = undefined;
      });
      entry.signing = { version, token };
    }
    return entry.signing.token;
  }

  /** @returns undefined for a list or an index that does not exist. */
  async statusAt(tenantId: TenantId, listId: string, index: number): Promise<number | undefined> {
    const { list, bytes } = (await this.entriesOf(tenantId, listId)) ?? {};
    if (list === undefined || bytes === undefined) return undefined;
    return index >= 0 && index < list.capacity ? readStatus(bytes, list.bits, index) : undefined;
  }

  /** The entries of a list, only for immediate reading; undefined for an unknown list. */
  async entriesOf(tenantId: TenantId, listId: string): Promise<{ readonly list: StatusList; readonly bytes: Buffer } | undefined> {
    try {
      return await this.#getCurrent(tenantId, listId);
    } catch (error) {
      if (error instanceof Failure && error.code === 'not_found') return undefined;
      throw error;
    }
  }

  /**
   * The certificates in the published token of a list.
   * @returns DER in standard base64, leaf first; undefined for a list that does not exist or cannot be signed now.
   */
  async signerOf(tenantId: TenantId, listId: string): Promise<readonly string[] | undefined> {
    try {
      const { list } = await this.#getCurrent(tenantId, listId);
      return signingChain(await this.#signerOf(tenantId, list, this.ports.clock.now()));
    } catch (error) {
      if (error instanceof Failure) return undefined;
      throw error;
    }
  }

  /** The entry with every change before this call in this process, and all others up to `CHECK_EVERY_MS` ago. */
  async #getCurrent(tenantId: TenantId, listId: string): Promise<Entry> {
    const key = `${tenantId} ${listId}`;
    const change = this.#changes.get(key) ?? 0;
    const notBefore = performance.now() - CHECK_EVERY_MS;
    let entry = this.#entries.get(key) ?? (await this.#load(tenantId, listId, key));
    // A check that began earlier may have missed a change, so another one follows.
    while (entry.appliedChange < change || entry.checkedAt < notBefore) {
      entry.checking ??= this.#check(tenantId, entry).finally(() => {
        entry.checking = undefined;
      });
      await entry.checking;
      // The check removes an entry that the database has lost in a rollback.
      if (this.#entries.peek(key) !== entry) entry = await this.#load(tenantId, listId, key);
    }
    return entry;
  }

  #load(tenantId: TenantId, listId: string, key: string): Promise<Entry> {
    return this.#loading.run(key, async () => {
      const entry = await this.#read(tenantId, listId);
      this.#entries.set(key, entry);
      return entry;
    });
  }

  async #read(tenantId: TenantId, listId: string): Promise<Entry> {
    const reads = this.ports.store.read(tenantId);
    const checkStart = { checkedAt: performance.now(), appliedChange: this.#change };
    const [state] = await reads.statusListVersions([listId]);
    const list = await reads.statusList(listId);
    if (list === undefined || state === undefined) throw new Failure('not_found', 'unknown status list');
    // Entries are read after the version, so `bytes` can only be newer than the version.
    const bytes = packEntries(list.bits, list.capacity, await reads.statusEntries(listId, 0));
    const { token, version, term } = { ...list, term: state.term };
    // A token that is older than the term may lack published changes. A term is named by the second of its begin.
    const isOfTerm = token !== null && token.issuedAt.getTime() >= term * 1000;
    const published = isOfTerm ? { ...publication(token.jwt, token.expiresAt), version: token.version } : undefined;
    const entry = { list, bytes, version, term, published, ...checkStart, checking: undefined, signing: undefined };
    await this.#dropCompromised(tenantId, entry);
    return entry;
  }

  async #check(tenantId: TenantId, entry: Entry): Promise<void> {
    const reads = this.ports.store.read(tenantId);
    const checkStart = { checkedAt: performance.now(), appliedChange: this.#change };
    const [storedVersion] = await reads.statusListVersions([entry.list.id]);
    if (storedVersion === undefined) {
      this.#entries.delete(`${tenantId} ${entry.list.id}`);
      throw new Failure('not_found', 'unknown status list');
    }
    // The database was rolled back: `bytes` contains changes that it lost.
    if (storedVersion.term !== entry.term || storedVersion.version < entry.version) {
      this.#entries.delete(`${tenantId} ${entry.list.id}`);
      return;
    }
    if (storedVersion.version !== entry.version) {
      for (const { index, status } of await reads.statusEntries(entry.list.id, entry.version)) {
        writeStatus(entry.bytes, entry.list.bits, index, status);
      }
      entry.version = storedVersion.version;
      entry.list = { ...entry.list, keyChainId: storedVersion.keyChainId };
      await this.#dropCompromised(tenantId, entry);
    }
    Object.assign(entry, checkStart);
  }

  /** Drops a token that a compromised key signed; marking the key raised the version of the list. */
  async #dropCompromised(tenantId: TenantId, entry: Pick<Entry, 'published'>): Promise<void> {
    if (entry.published === undefined) return;
    const [leaf] = certificatesIn(entry.published.jwt);
    const chains = (await (await this.ports.tenantConfigurations.readStored(tenantId))?.keyChains()) ?? [];
    const compromised = chains.flatMap(leavesOf).filter(({ revokedAt }) => revokedAt !== undefined);
    if (compromised.some(({ certificates }) => certificates[0] === leaf)) entry.published = undefined;
  }

  async #signerOf(tenantId: TenantId, list: StatusList, now: Date): Promise<KeyChain> {
    const tenant = await this.ports.tenantConfigurations.readStored(tenantId);
    if (tenant === undefined) throw new Failure('not_found', 'unknown status list');
    return signerOfList(await tenant.keyChains(), list, now);
  }

  async #sign(tenantId: TenantId, entry: Entry, now: Date): Promise<PublishedStatusList> {
    const { store, kms, settings } = this.ports;
    const { list, version, term } = entry;
    const chain = await this.#signerOf(tenantId, list, now);
    const lst = (await compress(entry.bytes, { level: 9 })).toString('base64url');
    const payload = statusListClaims({
      uri: statusListUri(settings, tenantId, list.id),
      bits: list.bits,
      lst,
      issuedAt: now,
      ttlSeconds: list.ttlSeconds,
      ...(list.enableAggregation ? { aggregationUri: aggregationUri(settings, tenantId) } : {}),
    });
    // HAIP 1.0 section 6.1 requires `x5c`; other wallets use `jwk`.
    const jwt = await signJwt(kms, { chain, typ: STATUS_LIST_JWT_TYPE, payload, withJwk: true });
    const issuedAt = new Date(Math.floor(now.getTime() / 1000) * 1000);
    const expiresAt = new Date(issuedAt.getTime() + list.ttlSeconds * 1000);
    const published = { ...publication(jwt, expiresAt), version };
    if (entry.published === undefined || entry.published.version <= version) entry.published = published;
    // A token that the next change replaces is not worth storing; a lasting one also serves other processes.
    const storedToken = list.immediateUpdate ? null : jwt;
    await store.lists(tenantId).saveStatusToken(list.id, storedToken, { version, term }, issuedAt, expiresAt);
    return published;
  }
}

function certificatesIn(jwt: Buffer): readonly unknown[] {
  const x5c = parseCompactJws(jwt.toString())?.header['x5c'];
  return Array.isArray(x5c) ? x5c : [];
}

function publication(jwt: string, expiresAt: Date): PublishedStatusList {
  return { jwt: Buffer.from(jwt), etag: etagOf(jwt), expiresAt };
}

export function etagOf(token: string | Buffer): string {
  return `"${createHash('sha256').update(token).digest('base64url').slice(0, 22)}"`;
}

export function aggregationUri(settings: ServiceSettings, tenantId: string): string {
  return `${issuerIdentifier(settings, tenantId)}/status-lists`;
}
