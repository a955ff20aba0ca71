import { hash } from 'node:crypto';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { type CertificateList, parseCrl } from '../../domain/formats/der/crl.ts';
import { RevokedEntries } from '../../domain/formats/der/crl-entries.ts';
import { ownRevocationListOf } from '../../domain/keys/authority-address.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { findListProblem, findTimeProblem, freshUntil, isFromFuture, RETRY_MS } from '../../domain/verification/certificate-revocation.ts';
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
/** What an entry costs besides its bytes. */
const ENTRY_OVERHEAD = 4_096;

/** A list whose signature was verified with the key of the issuer that it was asked for. */
export type RevocationList = Pick<CertificateList, 'scope' | 'thisUpdate' | 'nextUpdate'> & {
  readonly revoked: RevokedEntries;
  readonly uri: string;
  readonly fetchedAt: Date;
  readonly size: number;
};

/** The newest list that can be had. */
export type RevocationListCopy = {
  readonly list: RevocationList;
  /** Why it does not count at this time: it then shows only what was revoked for good. */
  readonly fault?: string;
};

/** Certificate revocation lists: fetched once for all who wait, verified, kept for an hour at most, per tenant. */
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
    freshUntil: (list) => freshUntil(list, list.fetchedAt),
    isRefusal: (error) => error instanceof Refusal,
    faultOf: (list) => {
      const fault = findTimeProblem(list, list.fetchedAt);
      if (fault === undefined) return undefined;
      const retriedAt = freshUntil(list, list.fetchedAt);
      return { reason: unavailable(fault).message, at: list.fetchedAt, retriedAt };
    },
    failureMs: RETRY_MS,
  });

  /**
   * @param issuer the certificate of a path that holds, whose key the list has to be signed with: DER, standard base64.
   * @throws Refusal `revocation_unavailable` when no list can be had whose signature is valid.
   */
  async get(tenantId: string, uri: string, issuer: string): Promise<RevocationListCopy> {
    const { clock, log } = this.ports;
    const key = keyOf(tenantId, hash('sha256', issuer, 'base64url'), uri);
    const known = this.#lists.peek(key);
    if (known !== undefined && clock.now() < freshUntil(known, known.fetchedAt)) {
      this.#lists.count(tenantId, 'hits');
      return { list: known, ...defined({ fault: findTimeProblem(known, clock.now()) }) };
    }
    this.#lists.count(tenantId, 'misses');
    try {
      const list = await this.#lists.fetch(key, () => this.#load(tenantId, uri, issuer, known));
      return { list, ...defined({ fault: findTimeProblem(list, clock.now()) }) };
    } catch (error) {
      if (!(error instanceof Refusal) || known === undefined) throw error;
      // A certificate that was revoked stays revoked, also when the copy that says so has gone out of date.
      if (findTimeProblem(known, clock.now()) !== undefined) return { list: known, fault: detailOf(error) };
      // The older list was announced to count until the next one.
      log.warn('revocation list not refreshed, the older copy is used', { tenantId, reason: error.reason });
      return { list: known };
    }
  }

  stats(tenantId: string): FetchedListStats {
    return this.#lists.stats(tenantId);
  }

  /** Lists of this service are read without a call, which need not be able to reach its public address. */
  async #bytesOf(tenantId: string, uri: string): Promise<Buffer> {
    const { remote, settings, authorityPublisher } = this.ports;
    const own = ownRevocationListOf(uri, settings.publicUrl);
    if (own === undefined) {
      const wanted = { tenantId, accept: 'application/pkix-crl', maxBytes: MAX_LIST_BYTES, isSigned: true };
      return (await download(remote, uri, wanted, unavailable)).body;
    }
    try {
      return (await authorityPublisher.revocationList(own.tenantId, own.authorityId)).der;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw unavailable('this service publishes no such list');
    }
  }

  async #load(tenantId: string, uri: string, issuer: string, known: RevocationList | undefined): Promise<RevocationList> {
    const body = await this.#bytesOf(tenantId, uri);
    const now = this.ports.clock.now();
    const list = parseDer('the list', () => parseCrl(body));
    if (!this.ports.certificates.hasSigned(issuer, list)) throw unavailable('signature');
    const certificate = parseCertificate(Buffer.from(issuer, 'base64'));
    const fault = certificate === undefined ? 'issuer' : findListProblem(list, certificate);
    if (fault !== undefined) throw unavailable(fault);
    // An attacker between the two could send yesterday's list, which does not name what was revoked today. A list from
    // the future is a mistake of the issuer, which a correct list may replace.
    if (known !== undefined && !isFromFuture(known, now) && list.thisUpdate < known.thisUpdate)
      throw unavailable('older than the list before');
    const revoked = parseDer('the list', () => new RevokedEntries(list.entries));
    const { thisUpdate, nextUpdate, scope } = list;
    return { uri, fetchedAt: now, size: body.length, thisUpdate, nextUpdate, revoked, ...defined({ scope }) };
  }
}
