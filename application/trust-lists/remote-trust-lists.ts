import { hash } from 'node:crypto';
import { type KeyChain, trustedLeaves } from '../../domain/keys/key-chain.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import {
  assertNoJump,
  assertSuccession,
  type ListLifetime,
  listLifetime,
  OWN_LIST_SECONDS,
  type SeenRelease,
} from '../../domain/trust-lists/freshness.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { type OwnTrustList, ownTrustListOf } from '../../domain/trust-lists/own-address.ts';
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
import { type FetchedListStats, FetchedLists, keyOf, LISTS_IN_MEMORY } from './fetched-lists.ts';
import { copyIdOf, type FollowedTrustList, goodCopyInstead, keepCopy } from './list-copies.ts';
import { downloadTrustList, releaseDocument } from './open-list.ts';
import { TenantSlots } from './tenant-slots.ts';
import type { PinnedSigners } from './verify-trust-list.ts';

/** What an entry costs besides its list. */
const ENTRY_OVERHEAD = 8_192;
const FAILURE_MS = 15_000;
/** A list that could not be used is looked for again after half of it. */
const STAND_IN_MS = 10 * 60 * 1000;

type Wanted = {
  readonly key: string;
  readonly tenantId: TenantId;
  readonly uri: string;
  readonly signers: PinnedSigners;
  readonly via: string | undefined;
};

type Known = {
  readonly uri: string;
  readonly list: TrustList;
  /** Of the very document. */
  readonly documentHash: string;
  readonly contentHash: string;
  readonly size: number;
  readonly fetchedAt: Date;
  readonly lifetime: ListLifetime;
  /** Why it stands in for what came, or did not. */
  readonly fault?: { readonly reason: string; readonly at: Date };
};

/** Trust lists of others: fetched once for all who wait, verified before they are kept, per tenant. */
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
  readonly #lists = new FetchedLists<Known>({
    clock: this.ports.clock,
    eventBus: this.ports.eventBus,
    kind: 'trust-lists',
    sizeOf: ({ size }) => size + ENTRY_OVERHEAD,
    freshUntil: ({ lifetime }) => lifetime.expiresAt,
    isRefusal: (error) => error instanceof TrustListRefusal,
    faultOf: ({ fault, lifetime }) => fault && { ...fault, retriedAt: lifetime.refreshAt },
    failureMs: FAILURE_MS,
  });
  readonly #slots = new TenantSlots(LISTS_IN_MEMORY);

  /**
   * @returns the list as it counts now: the same object until its content changes.
   * @param via the list of lists that names it, and who signs it.
   * @throws TrustListRefusal when no list can be had that one of `signers` vouches for.
   */
  async get(tenantId: TenantId, uri: string, signers: PinnedSigners, via?: string): Promise<TrustList> {
    const wanted = { key: keyOf(tenantId, signers.id, uri), tenantId, uri, signers, via };
    const now = this.ports.clock.now();
    const known = this.#lists.peek(wanted.key);
    if (known === undefined || now >= known.lifetime.expiresAt) {
      this.#lists.count(tenantId, 'misses');
      return (await this.#fetchOnce(wanted)).list;
    }
    this.#lists.count(tenantId, 'hits');
    if (now >= known.lifetime.refreshAt) this.#refresh(wanted);
    return known.list;
  }

  /** One list that nobody foresaw does not keep the others from counting. @returns why it vouches for nobody. */
  failed(tenantId: TenantId, uri: string, error: unknown): TrustListRefusal {
    const { origin, pathname } = new URL(uri);
    this.ports.log.error('trust list not read', { tenantId, list: origin + pathname }, error);
    return new TrustListRefusal('unavailable', 'it cannot be read here');
  }

  stats(tenantId: string): FetchedListStats {
    return this.#lists.stats(tenantId);
  }

  /** The next check fetches; so does one that follows a fetch under way. */
  clear(tenantId: string): void {
    this.#lists.clear(tenantId);
  }

  /** Nobody waits for this copy. */
  #refresh(wanted: Wanted): void {
    this.#fetchOnce(wanted).catch((error: unknown) => {
      // Refusals are in the log already.
      if (error instanceof TrustListRefusal) return;
      this.ports.log.error('trust list not refreshed', { tenantId: wanted.tenantId }, error);
    });
  }

  #fetchOnce(wanted: Wanted): Promise<Known> {
    return this.#lists.fetch(wanted.key, () => this.#slots.run(wanted.tenantId, () => this.#fetch(wanted)));
  }

  async #fetch(wanted: Wanted): Promise<Known> {
    const own = ownTrustListOf(wanted.uri, this.ports.settings.publicUrl);
    let bytes: Buffer | undefined;
    try {
      if (own !== undefined) {
        const read = await readOwnList(this.ports, own, wanted.signers);
        return await this.#take(wanted, read.bytes, read.signers, OWN_LIST_SECONDS);
      }
      bytes = await this.#download(wanted);
      const known = await this.#take(wanted, bytes, wanted.signers);
      await keepCopy(this.ports, followedOf(wanted), { ...known, checkedAt: known.fetchedAt }, known.size);
      return known;
    } catch (error) {
      if (!(error instanceof TrustListRefusal)) throw error;
      this.#warn(wanted, error);
      if (own !== undefined) throw error;
      return await this.#goodCopyInstead(wanted, error, bytes);
    } finally {
      if (bytes !== undefined) releaseDocument(bytes);
    }
  }

  /** @throws TrustListRefusal when a list does not hold, or may not follow on what was seen of it. */
  async #take(wanted: Wanted, bytes: Buffer, signers: PinnedSigners, maxSeconds?: number): Promise<Known> {
    const { key, uri, tenantId } = wanted;
    const { list, contentHash, documentHash, size } = await this.ports.trustListReader.open(bytes, {
      signers: signers.anchors,
      now: this.ports.clock.now(),
      tenantId,
    });
    const now = this.ports.clock.now();
    // A large list waits for its turn to be read, and may end meanwhile.
    if (list.nextUpdate !== null && list.nextUpdate <= now) throw new TrustListRefusal('outdated', 'NextUpdate has passed');
    const before = this.#lists.peek(key);
    const kept = before ?? (await this.ports.store.lists(tenantId).goodCopy(copyIdOf(uri, wanted.signers)));
    assertSameTerritory(kept?.list.territory, list.territory);
    const release = { sequenceNumber: list.sequenceNumber, contentHash };
    // The database remembers, so that nobody brings an older release back, whatever is cleared or started anew.
    const id = hash('sha256', uri, 'base64url');
    const releases = this.ports.store.lists(tenantId);
    assertNoJump(await releases.release(id), release, now);
    assertSuccession(await releases.noteRelease(id, release, now), { ...release, documentHash });
    const isSame = before?.documentHash === documentHash;
    if (!isSame && before?.list.sequenceNumber === list.sequenceNumber) this.#warnOfDates(wanted, release);
    return {
      uri,
      list: isSame ? before.list : list,
      documentHash,
      contentHash,
      size,
      fetchedAt: now,
      lifetime: listLifetime(list, now, maxSeconds),
    };
  }

  /** @throws TrustListRefusal `refusal`, where nothing stands in. */
  async #goodCopyInstead(wanted: Wanted, refusal: TrustListRefusal, bytes: Buffer | undefined): Promise<Known> {
    const now = this.ports.clock.now();
    const isAsked = refusal.fault === 'untrusted_signer' && bytes !== undefined;
    const shown = isAsked ? await this.#shownSigner(wanted, bytes) : undefined;
    const found = await goodCopyInstead(this.ports, followedOf(wanted), refusal, { now, shown });
    if (found === undefined) throw refusal;
    const { copy, until } = found;
    const before = this.#lists.peek(wanted.key);
    const { list, documentHash, contentHash } = before?.documentHash === copy.documentHash ? before : copy;
    const expiresAt = new Date(Math.min(until.getTime(), now.getTime() + STAND_IN_MS));
    return {
      ...{
        uri: wanted.uri,
        list,
        documentHash,
        contentHash,
        size: sizeOfDocument(list),
        fetchedAt: copy.checkedAt,
      },
      lifetime: { refreshAt: new Date(now.getTime() + STAND_IN_MS / 2), expiresAt },
      fault: { reason: refusal.message, at: now },
    };
  }

  /**
   * The signer of a list that no pinned certificate vouches for, so that a person can decide about them.
   * @returns the certificate, DER in standard base64; undefined where the list is not valid under it either.
   */
  async #shownSigner({ tenantId }: Wanted, bytes: Buffer): Promise<string | undefined> {
    const { trustListReader, clock } = this.ports;
    try {
      return (await trustListReader.open(bytes, { signers: 'shown', now: clock.now(), tenantId })).signer;
    } catch (error) {
      if (error instanceof TrustListRefusal) return undefined;
      throw error;
    }
  }

  /** TS 119 602 section 6.3.2: each release has a number of its own. */
  #warnOfDates({ tenantId, uri }: Wanted, { sequenceNumber }: SeenRelease): void {
    const { origin, pathname } = new URL(uri);
    const about = { tenantId, list: origin + pathname, sequenceNumber };
    this.ports.log.warn('trust list with other dates under the same number', about);
  }

  async #download({ tenantId, uri, signers }: Wanted): Promise<Buffer> {
    if (signers.anchors.length === 0) throw new TrustListRefusal('untrusted_signer', 'no certificate is configured for trust lists');
    return downloadTrustList(this.ports.remote, tenantId, uri);
  }

  #warn({ tenantId, uri }: Wanted, { message: reason }: TrustListRefusal): void {
    // The query may carry a secret of the operator's.
    const { origin, pathname } = new URL(uri);
    this.ports.log.warn('trust list not used', { tenantId, list: origin + pathname, reason });
  }
}

function followedOf({ tenantId, uri, signers, via }: Wanted): FollowedTrustList {
  return { tenantId, place: { uri, ...defined({ via }) }, signers };
}

/** Lists of two schemes may well be signed by one CA's certificates: what stands at the address stays that of one scheme. */
function assertSameTerritory(before: string | undefined, now: string | undefined): void {
  if (before === undefined || before === now) return;
  throw new TrustListRefusal('another_list', `of ${now ?? 'no territory'} instead of ${before}`);
}

type Ports = { readonly store: Store; readonly tenantConfigurations: TenantConfigurations };

/**
 * A list of this service, from its own database; unless told otherwise its tenant's keys sign it.
 * @throws TrustListRefusal `unavailable`.
 */
async function readOwnList(
  { store, tenantConfigurations }: Ports,
  { tenantId, listId }: OwnTrustList,
  signers: PinnedSigners,
): Promise<{ readonly bytes: Buffer; readonly signers: PinnedSigners }> {
  const published = await store.read(tenantId).trustList(listId);
  const configured = published && (await tenantConfigurations.stored(tenantId));
  if (published === undefined || configured === undefined) throw new TrustListRefusal('unavailable', 'this service publishes no such list');
  const isPinned = signers.anchors.length > 0;
  const anchors = isPinned ? signers.anchors : signersOf(await configured.keyChains());
  return { bytes: Buffer.from(published.jwt, 'latin1'), signers: { ...signers, anchors } };
}

function signersOf(chains: readonly KeyChain[]): readonly TrustAnchor[] {
  return chains
    .filter(({ usages }) => usages.includes('trustList'))
    .flatMap(trustedLeaves)
    .flatMap(({ certificates }) => certificates.slice(0, 1))
    .map((certificate) => ({ certificate }));
}
