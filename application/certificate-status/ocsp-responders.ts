import { hash } from 'node:crypto';
import { type Certificate, parseCertificate } from '../../domain/formats/der/certificate.ts';
import { buildOcspRequest, type OcspResponse, type OcspSubject, parseOcspResponse } from '../../domain/formats/der/ocsp.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import {
  answerExpiresAt,
  cacheExpiresAt,
  findAnswerProblem,
  isAuthorizedResponder,
  RETRY_MS,
} from '../../domain/verification/certificate-revocation.ts';
import { needs } from '../needs.ts';
import { Certificates } from '../ports/certificates.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Remote } from '../ports/remote.ts';
import { download, FetchedLists, keyOf } from '../trust-lists/fetched-lists.ts';
import { parseDer, unavailable } from './unavailable.ts';

const MAX_ANSWER_BYTES = 32 * 1024;
const ENTRY_BYTES = 1_024;

/** A verified OCSP response about one certificate. */
export type OcspAnswer = Pick<OcspResponse, 'status' | 'revokedAt' | 'thisUpdate'> & {
  readonly nextUpdate: Date;
  readonly uri: string;
  readonly fetchedAt: Date;
};

/** The certificate to check, and that of its issuer, DER in standard base64. */
type Subject = OcspSubject & { readonly issuer: string };

/** OCSP responders (RFC 6960): verified responses are cached per tenant for an hour at most; concurrent callers share a request. */
export class OcspResponders extends needs({ remote: Remote, certificates: Certificates, clock: Clock, eventBus: EventBus }) {
  readonly #answers = new FetchedLists<OcspAnswer>({
    clock: this.ports.clock,
    eventBus: this.ports.eventBus,
    kind: 'revocation-lists',
    sizeOf: () => ENTRY_BYTES,
    freshUntil: (answer) => cacheExpiresAt(answer, answer.fetchedAt),
    isRefusal: (error) => error instanceof Refusal,
    failureMs: RETRY_MS,
  });

  /** @throws Refusal `revocation_unavailable` when no valid response is available. */
  async query(tenantId: string, uri: string, subject: Subject): Promise<OcspAnswer> {
    const id = hash('sha256', `${subject.issuer} ${subject.serial.toString('hex')}`, 'base64url');
    const key = keyOf(tenantId, id, uri);
    const cached = this.#answers.peek(key);
    if (cached !== undefined && this.ports.clock.now() < cacheExpiresAt(cached, cached.fetchedAt)) {
      this.#answers.count(tenantId, 'hits');
      return cached;
    }
    this.#answers.count(tenantId, 'misses');
    try {
      return await this.#answers.fetch(key, () => this.#load(tenantId, uri, subject));
    } catch (error) {
      // A revoked certificate stays revoked until a newer response says otherwise.
      if (error instanceof Refusal && cached?.status === 'revoked') return cached;
      throw error;
    }
  }

  async #load(tenantId: string, uri: string, subject: Subject): Promise<OcspAnswer> {
    const { issuer } = subject;
    const authority = parseCertificate(Buffer.from(issuer, 'base64'));
    if (authority === undefined) throw unavailable('issuer');
    // RFC 6960 appendix A.1: GET, as for short requests; intermediate caches may store such responses.
    const request = encodeURIComponent(buildOcspRequest(authority, subject).toString('base64'));
    const address = `${uri.replace(/\/$/, '')}/${request}`;
    const options = {
      tenantId,
      accept: 'application/ocsp-response',
      maxBytes: MAX_ANSWER_BYTES,
      isSigned: true,
      // The address identifies the certificate, so it is not disclosed to a redirect target.
      followsRedirects: false,
    };
    const { body } = await download(this.ports.remote, address, options, unavailable);
    const answer = parseDer('the answer', () => parseOcspResponse(body, authority, subject));
    if (answer === undefined) throw unusable('it is about other certificates');
    const now = this.ports.clock.now();
    if (!this.#isSigned(answer, issuer, authority, now))
      throw unusable('its signer is not authorized by the issuer, or its signature is invalid');
    const fault = findAnswerProblem(answer, now);
    // A revoked certificate stays revoked, however old the response is.
    if (fault !== undefined && answer.status !== 'revoked') throw unusable(fault);
    const { status, revokedAt, thisUpdate } = answer;
    const response = { status, thisUpdate, nextUpdate: answerExpiresAt(answer), uri, fetchedAt: now };
    return revokedAt === undefined ? response : { ...response, revokedAt };
  }

  /** RFC 6960 section 4.2.2.2: the issuer itself, or a responder that it certified for this purpose. */
  #isSigned(answer: OcspResponse, issuer: string, authority: Certificate, now: Date): boolean {
    const { certificates } = this.ports;
    if (certificates.hasSigned(issuer, answer)) return true;
    return answer.certificates.some((responder) => {
      const certificate = parseCertificate(Buffer.from(responder, 'base64'));
      if (certificate === undefined || !isAuthorizedResponder(certificate, authority)) return false;
      return certificates.isResponder(responder, issuer, now) && certificates.hasSigned(responder, answer);
    });
  }
}

/** A response that does not answer the question, as opposed to no response. */
function unusable(reason: string): Refusal {
  return unavailable(`unusable answer: ${reason}`);
}
