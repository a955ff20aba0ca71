import { hash } from 'node:crypto';
import { type KeyChain, trustedLeaves } from '../../domain/keys/key-chain.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import {
  assertNoSequenceJump,
  assertSequenceIncreases,
  INTERNAL_LIST_SECONDS,
  type ListLifetime,
  listLifetime,
  type SeenListVersion,
} from '../../domain/trust-lists/freshness.ts';
import { type InternalTrustList, parseInternalTrustListAddress } from '../../domain/trust-lists/internal-address.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { needs } from '../needs.ts';
import type { TrustAnchor } from '../ports/certificates.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { Remote } from '../ports/remote.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { TrustListReader } from '../ports/trust-list-reader.ts';
import { sizeOfDocument } from '../tenant-cache/size-of.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { type FetchedListStats, FetchedLists, keyOf, MAX_LISTS_IN_MEMORY } from './fetched-lists.ts';
import { copyIdOf, type FollowedTrustList, fallbackCopy, keepCopy } from './list-copies.ts';
import { downloadTrustList, releaseDocument } from './open-list.ts';
import { TenantSlots } from './tenant-slots.ts';
import type { PinnedSigners } from './verify-trust-list.ts';

const ENTRY_OVERHEAD = 8_192;
const FAILURE_MS = 15_000;
/** Maximum time for which a fallback copy is used; the list is tried again after half of it. */
const FALLBACK_MS = 10 * 60 * 1000;

type ListRequest = {
  readonly key: string;
  readonly tenantId: TenantId;
  readonly uri: string;
  readonly signers: PinnedSigners;
  readonly via: string | undefined;
};

type CachedTrustList = {
  readonly uri: string;
  readonly list: TrustList;
  readonly documentHash: string;
  readonly contentHash: string;
  readonly size: number;
  readonly fetchedAt: Date;
  readonly lifetime: ListLifetime;
  /** The reason for which the copy is used in place of the received list. */
  readonly fault?: { readonly reason: string; readonly at: Date };
};

/** External trust lists, cached per tenant: concurrent callers share a fetch, and lists are verified before they are cached. */
export class TrustLists extends needs({
  store: Store,
  tenantConfigurations: TenantConfigurations,
  settings: ServiceSettings,
  remote: Remote,
  trustListReader: TrustListReader,
  clock: Clock,
  eventBus: EventBus,
  log: Log,
}) {
  readonly #lists = new FetchedLists<CachedTrustList>({
    clock: this.ports.clock,
    eventBus: this.ports.eventBus,
    kind: 'trust-lists',
    sizeOf: ({ size }) => size + ENTRY_OVERHEAD,
    freshUntil: ({ lifetime }) => lifetime.expiresAt,
    isRefusal: (error) => error instanceof TrustListRefusal,
    faultOf: ({ fault, lifetime }) => fault && { ...fault, retriedAt: lifetime.refreshAt },
    failureMs: FAILURE_MS,
  });
  readonly #slots = new TenantSlots(MAX_LISTS_IN_MEMORY);

  /**
   * @returns the current list: the same object until its content changes.
   * @param via the list of lists that points to it, and determines its signers.
   * @throws TrustListRefusal when no list is available that one of `signers` vouches for.
   */
  async get(tenantId: TenantId, uri: string, signers: PinnedSigners, via?: string): Promise<TrustList> {
    const request = { key: keyOf(tenantId, signers.id, uri), tenantId, uri, signers, via };
    const now = this.ports.clock.now();
    const cached = this.#lists.peek(request.key);
    if (cached === undefined || now >= cached.lifetime.expiresAt) {
      this.#lists.count(tenantId, 'misses');
      return (await this.#fetchOnce(request)).list;
    }
    this.#lists.count(tenantId, 'hits');
    if (now >= cached.lifetime.refreshAt) this.#refresh(request);
    return cached.list;
  }

  /** Handles an unexpected error of one list, which does not affect the others. @returns the reason for which the list is not used. */
  failed(tenantId: TenantId, uri: string, error: unknown): TrustListRefusal {
    const { origin, pathname } = new URL(uri);
    this.ports.log.error('trust list not read', { tenantId, list: origin + pathname }, error);
    return new TrustListRefusal('unavailable', 'it cannot be parsed');
  }

  stats(tenantId: string): FetchedListStats {
    return this.#lists.stats(tenantId);
  }

  /** The next verification fetches the list, even if an earlier fetch is in progress. */
  clear(tenantId: string): void {
    this.#lists.clear(tenantId);
  }

  /** Refreshes the copy in the background. */
  #refresh(request: ListRequest): void {
    this.#fetchOnce(request).catch((error: unknown) => {
      // Refusals were logged already.
      if (error instanceof TrustListRefusal) return;
      this.ports.log.error('trust list not refreshed', { tenantId: request.tenantId }, error);
    });
  }

  #fetchOnce(request: ListRequest): Promise<CachedTrustList> {
    return this.#lists.fetch(request.key, () => this.#slots.run(request.tenantId, () => this.#fetch(request)));
  }

  async #fetch(request: ListRequest): Promise<CachedTrustList> {
    const ownList = parseInternalTrustListAddress(request.uri, this.ports.settings.publicUrl);
    let bytes: Buffer | undefined;
    try {
      if (ownList !== undefined) {
        const ownDocument = await readOwnList(this.ports, ownList, request.signers);
        return await this.#accept(request, ownDocument.bytes, ownDocument.signers, INTERNAL_LIST_SECONDS);
      }
      bytes = await this.#download(request);
      const accepted = await this.#accept(request, bytes, request.signers);
      await keepCopy(this.ports, followedOf(request), { ...accepted, checkedAt: accepted.fetchedAt }, accepted.size);
      return accepted;
    } catch (error) {
      if (!(error instanceof TrustListRefusal)) throw error;
      this.#warn(request, error);
      if (ownList !== undefined) throw error;
      return await this.#fallBack(request, error, bytes);
    } finally {
      if (bytes !== undefined) releaseDocument(bytes);
    }
  }

  /** @throws TrustListRefusal for an invalid list, or one that may not succeed the recorded version. */
  async #accept(request: ListRequest, bytes: Buffer, signers: PinnedSigners, maxSeconds?: number): Promise<CachedTrustList> {
    const { key, uri, tenantId } = request;
    const { list, contentHash, documentHash, size } = await this.ports.trustListReader.open(bytes, {
      signers: signers.anchors,
      now: this.ports.clock.now(),
      tenantId,
    });
    const now = this.ports.clock.now();
    // A large list may expire while it waits to be read.
    if (list.nextUpdate !== null && list.nextUpdate <= now) throw new TrustListRefusal('outdated', 'NextUpdate has passed');
    const cached = this.#lists.peek(key);
    const previousCopy = cached ?? (await this.ports.store.lists(tenantId).goodCopy(copyIdOf(uri, request.signers)));
    assertSameTerritory(previousCopy?.list.territory, list.territory);
    const listVersion = { sequenceNumber: list.sequenceNumber, contentHash };
    // The highest version is stored in the database, so that an older one is rejected also after a restart or a cleared cache.
    const id = hash('sha256', uri, 'base64url');
    const tenantLists = this.ports.store.lists(tenantId);
    assertNoSequenceJump(await tenantLists.newestListVersion(id), listVersion, now);
    assertSequenceIncreases(await tenantLists.recordListVersion(id, listVersion, now), { ...listVersion, documentHash });
    const isSame = cached?.documentHash === documentHash;
    if (!isSame && cached?.list.sequenceNumber === list.sequenceNumber) this.#warnOfDates(request, listVersion);
    return {
      uri,
      list: isSame ? cached.list : list,
      documentHash,
      contentHash,
      size,
      fetchedAt: now,
      lifetime: listLifetime(list, now, maxSeconds),
    };
  }

  /** @throws TrustListRefusal `refusal` if there is no fallback copy. */
  async #fallBack(request: ListRequest, refusal: TrustListRefusal, bytes: Buffer | undefined): Promise<CachedTrustList> {
    const now = this.ports.clock.now();
    const hasUnknownSigner = refusal.fault === 'untrusted_signer' && bytes !== undefined;
    const unknownSigner = hasUnknownSigner ? await this.#shownSigner(request, bytes) : undefined;
    const fallback = await fallbackCopy(this.ports, followedOf(request), refusal, { now, shown: unknownSigner });
    if (fallback === undefined) throw refusal;
    const { copy, until } = fallback;
    const cached = this.#lists.peek(request.key);
    const { list, documentHash, contentHash } = cached?.documentHash === copy.documentHash ? cached : copy;
    const expiresAt = new Date(Math.min(until.getTime(), now.getTime() + FALLBACK_MS));
    return {
      uri: request.uri,
      list,
      documentHash,
      contentHash,
      size: sizeOfDocument(list),
      fetchedAt: copy.checkedAt,
      lifetime: { refreshAt: new Date(now.getTime() + FALLBACK_MS / 2), expiresAt },
      fault: { reason: refusal.message, at: now },
    };
  }

  /**
   * The signer of a list that no pinned certificate vouches for, so that an operator can confirm it.
   * @returns the certificate, DER in standard base64; undefined if the list is not valid under it either.
   */
  async #shownSigner({ tenantId }: ListRequest, bytes: Buffer): Promise<string | undefined> {
    const { trustListReader, clock } = this.ports;
    try {
      return (await trustListReader.open(bytes, { signers: 'shown', now: clock.now(), tenantId })).signer;
    } catch (error) {
      if (error instanceof TrustListRefusal) return undefined;
      throw error;
    }
  }

  /** TS 119 602 section 6.3.2: each version has its own number. */
  #warnOfDates({ tenantId, uri }: ListRequest, { sequenceNumber }: SeenListVersion): void {
    const { origin, pathname } = new URL(uri);
    const logFields = { tenantId, list: origin + pathname, sequenceNumber };
    this.ports.log.warn('trust list with other dates and the same sequence number', logFields);
  }

  async #download({ tenantId, uri, signers }: ListRequest): Promise<Buffer> {
    if (signers.anchors.length === 0) throw new TrustListRefusal('untrusted_signer', 'no certificate is configured for trust lists');
    return downloadTrustList(this.ports.remote, tenantId, uri);
  }

  #warn({ tenantId, uri }: ListRequest, { message: reason }: TrustListRefusal): void {
    // The query may contain a secret.
    const { origin, pathname } = new URL(uri);
    this.ports.log.warn('trust list not used', { tenantId, list: origin + pathname, reason });
  }
}

function followedOf({ tenantId, uri, signers, via }: ListRequest): FollowedTrustList {
  return { tenantId, place: { uri, ...defined({ via }) }, signers };
}

/** Lists of two schemes may be signed by the same CA: an address stays bound to one scheme. */
function assertSameTerritory(previousTerritory: string | undefined, territory: string | undefined): void {
  if (previousTerritory === undefined || previousTerritory === territory) return;
  throw new TrustListRefusal('another_list', `its territory is ${territory ?? 'missing'}, not ${previousTerritory}`);
}

type Ports = { readonly store: Store; readonly tenantConfigurations: TenantConfigurations };

/**
 * A list of this service, read from its own database; signed by keys of its tenant unless signers are configured.
 * @throws TrustListRefusal `unavailable`.
 */
async function readOwnList(
  { store, tenantConfigurations }: Ports,
  { tenantId, listId }: InternalTrustList,
  signers: PinnedSigners,
): Promise<{ readonly bytes: Buffer; readonly signers: PinnedSigners }> {
  const published = await store.read(tenantId).trustList(listId);
  const tenant = published && (await tenantConfigurations.readStored(tenantId));
  if (published === undefined || tenant === undefined) throw new TrustListRefusal('unavailable', 'this service publishes no such list');
  const isPinned = signers.anchors.length > 0;
  const anchors = isPinned ? signers.anchors : signersOf(await tenant.keyChains());
  return { bytes: Buffer.from(published.jwt, 'latin1'), signers: { ...signers, anchors } };
}

function signersOf(chains: readonly KeyChain[]): readonly TrustAnchor[] {
  return chains
    .filter(({ usages }) => usages.includes('trustList'))
    .flatMap(trustedLeaves)
    .flatMap(({ certificates }) => certificates.slice(0, 1))
    .map((certificate) => ({ certificate }));
}
