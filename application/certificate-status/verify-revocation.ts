import type { OcspSubject } from '../../domain/formats/der/ocsp.ts';
import { DerError } from '../../domain/formats/der/reader.ts';
import { type RevocationSources, revocationSourcesOf } from '../../domain/formats/der/revocation-sources.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import {
  type CertificateRevocation,
  coversCertificate,
  isExemptFromRevocationCheck,
  isRevokedBy,
} from '../../domain/verification/certificate-revocation.ts';
import { needs } from '../needs.ts';
import type { ChainVerdict } from '../ports/certificates.ts';
import { OcspResponders } from './ocsp-responders.ts';
import { RevocationLists } from './revocation-lists.ts';
import { detailOf } from './unavailable.ts';

export type RevocationQuery = {
  readonly tenantId: string;
  readonly mode: CertificateRevocation;
  /** The chain of the credential, DER in standard base64, leaf first, and its validation result. */
  readonly chain: readonly string[];
  readonly issuer: Extract<ChainVerdict, { trusted: true }>;
  /** Name of the leaf in the report. */
  readonly signer?: string;
};

type Link = {
  /** Name in the report: the signer, or the n-th authority above it. */
  readonly name: string;
  readonly certificate: string;
  readonly issuer: string;
  readonly isAuthority: boolean;
};

/** Limit of addresses per certificate; each may take as long as a call. */
const MAX_TRIED = 3;

/** Checks the revocation of the certificates of a valid path (RFC 5280 section 6.3). */
export class RevocationVerifier extends needs({ revocationLists: RevocationLists, ocspResponders: OcspResponders }) {
  /**
   * @returns the checked addresses and times for the report; undefined when the check is off.
   * @throws Refusal `certificate_revoked`; in mode `required` also `revocation_unavailable`.
   */
  async verify(question: RevocationQuery): Promise<string | undefined> {
    const { mode } = question;
    if (mode === 'off') return undefined;
    const results = await Promise.allSettled(linksOf(question).map((link) => this.#checkLink(question.tenantId, link)));
    const refusals = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    for (const refusal of refusals) {
      // A revoked certificate takes precedence over an unavailable status.
      if (!(refusal instanceof Refusal) || refusal.reason === 'certificate_revoked') throw refusal;
    }
    if (mode === 'required' && refusals.length > 0) throw refusals[0];
    const notes = results.map((result) => (result.status === 'fulfilled' ? result.value : (result.reason as Refusal).message));
    return `${mode}: ${notes.length === 0 ? 'the certificate itself is trusted' : notes.join('; ')}`;
  }

  async #checkLink(tenantId: string, link: Link): Promise<string> {
    const { name, isAuthority } = link;
    const sources = sourcesOf(link);
    if (isExemptFromRevocationCheck(sources, isAuthority)) return `${name}: short-lived or never revoked`;
    const tries = sources.points.flatMap((point) => point.map((address) => ({ point, address }))).slice(0, MAX_TRIED);
    const faults: string[] = [];
    for (const { point, address } of tries) {
      const copy = await this.#readList(tenantId, address, link);
      if (typeof copy === 'string') {
        faults.push(`${withoutQuery(address)} (${copy})`);
        continue;
      }
      const { list, fault } = copy;
      if (!coversCertificate(list.scope, { point, isAuthority })) {
        faults.push(`${withoutQuery(address)} (the list is about other certificates)`);
        continue;
      }
      const entry = list.revoked.find(sources.serial);
      if (entry !== undefined && isRevokedBy(entry, fault)) {
        const sinceText = entry.since === undefined ? '' : ` since ${entry.since.toISOString()}`;
        throw new Refusal('certificate_revoked', `${name}: ${entry.reason}${sinceText}, ${withoutQuery(address)}`);
      }
      if (fault === undefined) return `${name}: not on ${withoutQuery(address)} of ${list.thisUpdate.toISOString()}`;
      faults.push(`${withoutQuery(address)} (${fault})`);
    }
    // A list does not reveal the checked certificate, so a responder is only queried if there is no list.
    const responders = sources.points.length > 0 ? [] : sources.responders.slice(0, MAX_TRIED);
    for (const address of responders) {
      const answer = await this.#queryResponder(tenantId, address, { ...sources, issuer: link.issuer });
      if (typeof answer === 'string') faults.push(`${withoutQuery(address)} (${answer})`);
      else if (answer.status === 'good') return `${name}: good, by ${withoutQuery(address)} at ${answer.thisUpdate.toISOString()}`;
      else {
        const sinceText = answer.revokedAt?.toISOString() ?? '';
        throw new Refusal('certificate_revoked', `${name}: since ${sinceText}, ${withoutQuery(address)}`);
      }
    }
    const reason = faults.length === 0 ? missingSourceReason(sources) : faults.join(', ');
    throw new Refusal('revocation_unavailable', `${name}: ${reason}`);
  }

  async #queryResponder(tenantId: string, address: string, subject: OcspSubject & { issuer: string }) {
    try {
      return await this.ports.ocspResponders.query(tenantId, address, subject);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return detailOf(error);
    }
  }

  async #readList(tenantId: string, address: string, { issuer }: Link) {
    try {
      return await this.ports.revocationLists.get(tenantId, address, issuer);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return detailOf(error);
    }
  }
}

/** A leaf that is itself an anchor is trusted by configuration and not checked. */
function linksOf({ chain, issuer, signer = 'signer' }: RevocationQuery): readonly Link[] {
  const path = [...chain.slice(0, issuer.below), issuer.anchorCertificate];
  return path
    .slice(0, -1)
    .map((certificate, position) => ({
      name: position === 0 ? signer : `authority ${position} above the ${signer}`,
      certificate,
      issuer: path[position + 1] ?? '',
      isAuthority: position > 0,
    }));
}

function sourcesOf({ name, certificate }: Link): RevocationSources {
  try {
    return revocationSourcesOf(certificate);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw new Refusal('revocation_unavailable', `${name}: its revocation sources cannot be parsed`);
  }
}

function missingSourceReason({ hasSources: isNamed }: RevocationSources): string {
  return isNamed ? 'it names no list with a usable address' : 'it names no list';
}

/** Removes the query, which may contain a secret. */
function withoutQuery(address: string): string {
  const { origin, pathname } = new URL(address);
  return origin + pathname;
}
