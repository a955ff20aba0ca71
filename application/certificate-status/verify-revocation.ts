import type { OcspSubject } from '../../domain/formats/der/ocsp.ts';
import { DerError } from '../../domain/formats/der/reader.ts';
import { type RevocationSources, revocationSourcesOf } from '../../domain/formats/der/revocation-sources.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { type CertificateRevocation, isAbout, isRevokedBy, needsNoList } from '../../domain/verification/certificate-revocation.ts';
import { needs } from '../needs.ts';
import type { ChainVerdict } from '../ports/certificates.ts';
import { OcspResponders } from './ocsp-responders.ts';
import { RevocationLists } from './revocation-lists.ts';
import { detailOf } from './unavailable.ts';

export type RevocationQuestion = {
  /** The verifying tenant. */
  readonly tenantId: string;
  readonly mode: CertificateRevocation;
  /** The chain of the credential, DER in standard base64, leaf first, and what validated it. */
  readonly chain: readonly string[];
  readonly issuer: Extract<ChainVerdict, { trusted: true }>;
  /** What the leaf is called in the report. */
  readonly signer?: string;
};

type Link = {
  /** For the report: the signer, or the n-th authority above it. */
  readonly name: string;
  readonly certificate: string;
  readonly issuer: string;
  readonly isAuthority: boolean;
};

/** Addresses that are tried for one certificate; each may take as long as a call takes. */
const MAX_TRIED = 3;

/** Asks whether the certificates of a path that holds were revoked (RFC 5280 section 6.3). */
export class RevocationVerifier extends needs({ revocationLists: RevocationLists, ocspResponders: OcspResponders }) {
  /**
   * @returns what was asked, for the report: addresses and times; undefined when nothing is asked.
   * @throws Refusal `certificate_revoked`; where it is required, `revocation_unavailable` for what cannot be told.
   */
  async verify(question: RevocationQuestion): Promise<string | undefined> {
    const { mode } = question;
    if (mode === 'off') return undefined;
    const asked = await Promise.allSettled(linksOf(question).map((link) => this.#ask(question.tenantId, link)));
    const refusals = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    for (const refusal of refusals) {
      // That one is revoked weighs more than that another cannot be told.
      if (!(refusal instanceof Refusal) || refusal.reason === 'certificate_revoked') throw refusal;
    }
    if (mode === 'required' && refusals.length > 0) throw refusals[0];
    const notes = asked.map((one) => (one.status === 'fulfilled' ? one.value : (one.reason as Refusal).message));
    return `${mode}: ${notes.length === 0 ? 'the certificate itself is trusted' : notes.join('; ')}`;
  }

  async #ask(tenantId: string, link: Link): Promise<string> {
    const { name, isAuthority } = link;
    const sources = sourcesOf(link);
    if (needsNoList(sources, isAuthority)) return `${name}: short-lived or never revoked`;
    const tries = sources.points.flatMap((point) => point.map((address) => ({ point, address }))).slice(0, MAX_TRIED);
    const faults: string[] = [];
    for (const { point, address } of tries) {
      const copy = await this.#list(tenantId, address, link);
      if (typeof copy === 'string') {
        faults.push(`${named(address)} (${copy})`);
        continue;
      }
      const { list, fault } = copy;
      if (!isAbout(list.scope, { point, isAuthority })) {
        faults.push(`${named(address)} (the list is about other certificates)`);
        continue;
      }
      const entry = list.revoked.find(sources.serial);
      if (entry !== undefined && isRevokedBy(entry, fault)) {
        const since = entry.since === undefined ? '' : ` since ${entry.since.toISOString()}`;
        throw new Refusal('certificate_revoked', `${name}: ${entry.reason}${since}, ${named(address)}`);
      }
      if (fault === undefined) return `${name}: not on ${named(address)} of ${list.thisUpdate.toISOString()}`;
      faults.push(`${named(address)} (${fault})`);
    }
    // Lists tell nobody which certificate is looked at, so a responder is asked where no list is named.
    const responders = sources.points.length > 0 ? [] : sources.responders.slice(0, MAX_TRIED);
    for (const address of responders) {
      const answer = await this.#answer(tenantId, address, { ...sources, issuer: link.issuer });
      if (typeof answer === 'string') faults.push(`${named(address)} (${answer})`);
      else if (answer.status === 'good') return `${name}: good, says ${named(address)} at ${answer.thisUpdate.toISOString()}`;
      else {
        const since = answer.revokedAt?.toISOString() ?? '';
        throw new Refusal('certificate_revoked', `${name}: since ${since}, ${named(address)}`);
      }
    }
    const why = faults.length === 0 ? lackOf(sources) : faults.join(', ');
    throw new Refusal('revocation_unavailable', `${name}: ${why}`);
  }

  async #answer(tenantId: string, address: string, subject: OcspSubject & { issuer: string }) {
    try {
      return await this.ports.ocspResponders.ask(tenantId, address, subject);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return detailOf(error);
    }
  }

  async #list(tenantId: string, address: string, { issuer }: Link) {
    try {
      return await this.ports.revocationLists.get(tenantId, address, issuer);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return detailOf(error);
    }
  }
}

/** A certificate that is itself an anchor is trusted by being configured, as anchors are. */
function linksOf({ chain, issuer, signer = 'signer' }: RevocationQuestion): readonly Link[] {
  const path = [...chain.slice(0, issuer.below), issuer.anchorCertificate];
  return path.slice(0, -1).map((certificate, position) => ({
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
    throw new Refusal('revocation_unavailable', `${name}: what it names cannot be read`);
  }
}

function lackOf({ isNamed }: RevocationSources): string {
  return isNamed ? 'it names no list that can be fetched' : 'it names no list';
}

/** A query may carry a secret. */
function named(address: string): string {
  const { origin, pathname } = new URL(address);
  return origin + pathname;
}
