import { hash } from 'node:crypto';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { type CertificateList, parseCrl } from '../../domain/formats/der/crl.ts';
import { RevokedEntries } from '../../domain/formats/der/crl-entries.ts';
import { parseInternalRevocationList } from '../../domain/keys/authority-address.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import {
  cacheExpiresAt,
  findListProblem,
  findTimeProblem,
  isFromFuture,
  RETRY_MS,
} from '../../domain/verification/certificate-revocation.ts';
import { AuthorityPublisher } from '../keys/publish-authorities.ts';
import { needs } from '../needs.ts';
import { Certificates } from '../ports/certificates.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Log } from '../ports/log.ts';
import { Remote } from '../ports/remote.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { download, type FetchedListStats, FetchedLists, keyOf } from '../trust-lists/fetched-lists.ts';
import { detailOf, parseDer, unavailable } from './unavailable.ts';

const MAX_LIST_BYTES = 2 * 1024 * 1024;
const ENTRY_OVERHEAD = 4_096;

/** A list whose signature was verified with the key of the queried issuer. */
export type RevocationList = Pick<CertificateList, 'scope' | 'thisUpdate' | 'nextUpdate'> & {
  readonly revoked: RevokedEntries;
  readonly uri: string;
  readonly fetchedAt: Date;
  readonly size: number;
};

/** The newest available list. */
export type RevocationListCopy = {
  readonly list: RevocationList;
  /** The reason for which it is out of date: then it is only used for final revocations. */
  readonly fault?: string;
};

/** Certificate revocation lists: verified and cached per tenant for an hour at most; concurrent callers share a fetch. */
export class RevocationLists extends needs({
  remote: Remote,
  certificates: Certificates,
  clock: Clock,
  eventBus: EventBus,
  log: Log,
  settings: ServiceSettings,
  authorityPublisher: AuthorityPublisher,
}) {
  readonly #lists = new FetchedLists<RevocationList>({
    clock: this.ports.clock,
    eventBus: this.ports.eventBus,
    kind: 'revocation-lists',
    sizeOf: ({ size }) => size + ENTRY_OVERHEAD,
    freshUntil: (list) => cacheExpiresAt(list, list.fetchedAt),
    isRefusal: (error) => error instanceof Refusal,
    faultOf: (list) => {
      const fault = findTimeProblem(list, list.fetchedAt);
      if (fault === undefined) return undefined;
      const retriedAt = cacheExpiresAt(list, list.fetchedAt);
      return { reason: unavailable(fault).message, at: list.fetchedAt, retriedAt };
    },
    failureMs: RETRY_MS,
  });

  /**
   * @param issuer certificate of a valid path, whose key has to have signed the list: DER, standard base64.
   * @throws Refusal `revocation_unavailable` when no list with a valid signature is available.
   */
  async get(tenantId: string, uri: string, issuer: string): Promise<RevocationListCopy> {
    const { clock, log } = this.ports;
    const key = keyOf(tenantId, hash('sha256', issuer, 'base64url'), uri);
    const cached = this.#lists.peek(key);
    if (cached !== undefined && clock.now() < cacheExpiresAt(cached, cached.fetchedAt)) {
      this.#lists.count(tenantId, 'hits');
      return { list: cached, ...defined({ fault: findTimeProblem(cached, clock.now()) }) };
    }
    this.#lists.count(tenantId, 'misses');
    try {
      const list = await this.#lists.fetch(key, () => this.#load(tenantId, uri, issuer, cached));
      return { list, ...defined({ fault: findTimeProblem(list, clock.now()) }) };
    } catch (error) {
      if (!(error instanceof Refusal) || cached === undefined) throw error;
      // A revoked certificate stays revoked, also if the copy that lists it is out of date.
      if (findTimeProblem(cached, clock.now()) !== undefined) return { list: cached, fault: detailOf(error) };
      // The older list is valid until its announced next update.
      log.warn('revocation list not refreshed; the older copy is used', { tenantId, reason: error.reason });
      return { list: cached };
    }
  }

  stats(tenantId: string): FetchedListStats {
    return this.#lists.stats(tenantId);
  }

  /** Lists of this service are read without a call, since its public address may be unreachable from here. */
  async #bytesOf(tenantId: string, uri: string): Promise<Buffer> {
    const { remote, settings, authorityPublisher } = this.ports;
    const internalList = parseInternalRevocationList(uri, settings.publicUrl);
    if (internalList === undefined) {
      const options = { tenantId, accept: 'application/pkix-crl', maxBytes: MAX_LIST_BYTES, isSigned: true };
      return (await download(remote, uri, options, unavailable)).body;
    }
    try {
      return (await authorityPublisher.revocationList(internalList.tenantId, internalList.authorityId)).der;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw unavailable('this service publishes no such list');
    }
  }

  async #load(tenantId: string, uri: string, issuer: string, cached: RevocationList | undefined): Promise<RevocationList> {
    const body = await this.#bytesOf(tenantId, uri);
    const now = this.ports.clock.now();
    const list = parseDer('the list', () => parseCrl(body));
    if (!this.ports.certificates.hasSigned(issuer, list)) throw unavailable('signature');
    const certificate = parseCertificate(Buffer.from(issuer, 'base64'));
    const fault = certificate === undefined ? 'issuer' : findListProblem(list, certificate);
    if (fault !== undefined) throw unavailable(fault);
    // An attacker between the two could send an older list, which lacks later revocations. A list from the future is a mistake of the
    // issuer, which a correct list may replace.
    if (cached !== undefined && !isFromFuture(cached, now) && list.thisUpdate < cached.thisUpdate)
      throw unavailable('older than the previous list');
    const revoked = parseDer('the list', () => new RevokedEntries(list.entries));
    const { thisUpdate, nextUpdate, scope } = list;
    return { uri, fetchedAt: now, size: body.length, thisUpdate, nextUpdate, revoked, ...defined({ scope }) };
  }
}
