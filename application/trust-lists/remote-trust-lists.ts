import { hash } from 'node:crypto';
import { type KeyChain, leavesOf } from '../../domain/keys/key-chain.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import {
  checkJump,
  checkSuccession,
  type ListLifetime,
  listLifetime,
  OWN_LIST_SECONDS,
  type SeenRelease,
} from '../../domain/trust-lists/freshness.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { type OwnTrustList, ownTrustListOf } from '../../domain/trust-lists/own-address.ts';
import { MAX_LIST_BYTES } from '../../domain/trust-lists/signed-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { readTrustedList, TRUSTED_LIST_ROOT } from '../../domain/trust-lists/trusted-list.ts';
import { needs } from '../needs.ts';
import { Certificates, type TrustAnchor } from '../ports/certificates.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { Remote } from '../ports/remote.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Signatures } from '../ports/signatures.ts';
import { SignedXmlDocuments } from '../ports/signed-xml.ts';
import { Store } from '../ports/store.ts';
import { TenantConfigurations } from '../tenant-configurations.ts';
import { download, type FetchedListStats, FetchedLists, keyOf } from './fetched-lists.ts';
import { type PinnedSigners, verifyTrustList } from './verify-trust-list.ts';

/** What an entry costs besides its text, which grows when it is parsed. */
const ENTRY_OVERHEAD = 8_192;
const FAILURE_MS = 15_000;

type Wanted = {
  readonly key: string;
  readonly tenantId: TenantId;
  readonly uri: string;
  readonly signers: PinnedSigners;
};

type Known = {
  readonly uri: string;
  readonly list: TrustList;
  /** Of the very document. */
  readonly documentHash: string;
  readonly size: number;
  readonly fetchedAt: Date;
  readonly lifetime: ListLifetime;
};

/** Trust lists of others: fetched once for all who wait, verified before they are kept, per tenant. */
export class TrustLists extends needs({
  store: Store,
  tenantConfigurations: TenantConfigurations,
  settings: ServiceSettings,
  remote: Remote,
  signatures: Signatures,
  certificates: Certificates,
  signedXmlDocuments: SignedXmlDocuments,
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
    failureMs: FAILURE_MS,
  });

  /**
   * @returns the list as it counts now: the same object until its content changes.
   * @throws TrustListRefusal when no list can be had that one of `signers` vouches for.
   */
  async get(tenantId: TenantId, uri: string, signers: PinnedSigners): Promise<TrustList> {
    const wanted = { key: keyOf(tenantId, signers.id, uri), tenantId, uri, signers };
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
    return this.#lists.fetch(wanted.key, async () => {
      try {
        return await this.#fetch(wanted);
      } catch (error) {
        if (!(error instanceof TrustListRefusal)) throw error;
        // The query may carry a secret of the operator's.
        const { origin, pathname } = new URL(wanted.uri);
        const about = { tenantId: wanted.tenantId, list: origin + pathname, reason: error.message };
        this.ports.log.warn('trust list not used', about);
        throw error;
      }
    });
  }

  async #fetch(wanted: Wanted): Promise<Known> {
    const { key, uri } = wanted;
    const own = ownTrustListOf(uri, this.ports.settings.publicUrl);
    const { text, signers } =
      own === undefined ? await this.#download(wanted) : await this.#read(own, wanted);
    const now = this.ports.clock.now();
    const { list, contentHash, documentHash } = isXml(text)
      ? await this.#openXml(text, signers, now)
      : verifyTrustList(this.ports, text, signers, now);
    const release = { sequenceNumber: list.sequenceNumber, contentHash };
    // The database remembers, so that nobody brings an older release back, whatever is cleared or started anew.
    const id = hash('sha256', uri, 'base64url');
    const releases = this.ports.store.lists(wanted.tenantId);
    checkJump(await releases.release(id), release, now);
    checkSuccession(await releases.noteRelease(id, release, now), { ...release, documentHash });
    const before = this.#lists.peek(key);
    const isSame = before?.documentHash === documentHash;
    if (!isSame && before?.list.sequenceNumber === list.sequenceNumber) this.#warnOfDates(wanted, release);
    const lifetime = listLifetime(list, now, own === undefined ? undefined : OWN_LIST_SECONDS);
    return {
      uri,
      list: isSame ? before.list : list,
      documentHash,
      size: text.length,
      fetchedAt: now,
      lifetime,
    };
  }

  /** Who signs such a list is named by its own certificate, as lists of lists do; a CA says nothing here. */
  async #openXml(text: string, { anchors }: PinnedSigners, now: Date) {
    const signers = anchors.map(({ certificate }) => certificate);
    const bytes = Buffer.from(text, 'latin1');
    const opened = await this.ports.signedXmlDocuments.open(bytes, TRUSTED_LIST_ROOT, signers, now);
    const { document, contentHash } = opened;
    // Its dates are part of it: one with others under the same number is another.
    return { list: readTrustedList(document, now), contentHash, documentHash: contentHash };
  }

  /** TS 119 602 section 6.3.2: each release has a number of its own. */
  #warnOfDates({ tenantId, uri }: Wanted, { sequenceNumber }: SeenRelease): void {
    const { origin, pathname } = new URL(uri);
    const about = { tenantId, list: origin + pathname, sequenceNumber };
    this.ports.log.warn('trust list with other dates under the same number', about);
  }

  /** A list of this service, from its own database; unless told otherwise its tenant's keys sign it. */
  async #read({ tenantId, listId }: OwnTrustList, { signers }: Wanted): Promise<Signed> {
    const { store, tenantConfigurations } = this.ports;
    const published = await store.read(tenantId).trustList(listId);
    const configured = published && (await tenantConfigurations.stored(tenantId));
    if (published === undefined || configured === undefined) {
      throw new TrustListRefusal('unavailable', 'this service publishes no such list');
    }
    const isPinned = signers.anchors.length > 0;
    const anchors = isPinned ? signers.anchors : signersOf(await configured.keyChains());
    return { text: published.jwt, signers: { ...signers, anchors } };
  }

  async #download({ tenantId, uri, signers }: Wanted): Promise<Signed> {
    if (signers.anchors.length === 0) {
      throw new TrustListRefusal('untrusted_signer', 'no certificate is configured for trust lists');
    }
    return { text: await downloadTrustList(this.ports.remote, tenantId, uri), signers };
  }
}

/** @throws TrustListRefusal `unavailable`. */
export async function downloadTrustList(remote: Remote, tenantId: TenantId, uri: string): Promise<string> {
  const accept = 'application/jwt, application/jose, application/vnd.etsi.tsl+xml;q=0.9, */*;q=0.1';
  const wanted = { tenantId, accept, maxBytes: MAX_LIST_BYTES };
  const refusal = (why: string) => new TrustListRefusal('unavailable', why);
  const { body } = await download(remote, uri, wanted, refusal);
  return body.toString('latin1').trim();
}

/** @param text of bytes. */
export function isXml(text: string): boolean {
  return /^(?:\xEF\xBB\xBF)?\s*</.test(text);
}

type Signed = { readonly text: string; readonly signers: PinnedSigners };

function signersOf(chains: readonly KeyChain[]): readonly TrustAnchor[] {
  return chains
    .filter(({ usages }) => usages.includes('trustList'))
    .flatMap(leavesOf)
    .flatMap(({ certificates }) => certificates.slice(0, 1))
    .map((certificate) => ({ certificate }));
}
