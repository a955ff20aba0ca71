import { hash } from 'node:crypto';
import { type Certificate, parseCertificate } from '../../domain/formats/der/certificate.ts';
import { makeOcspRequest, type OcspResponse, type OcspSubject, parseOcspResponse } from '../../domain/formats/der/ocsp.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { answerEnds, findAnswerProblem, freshUntil, mayAnswer, RETRY_MS } from '../../domain/verification/certificate-revocation.ts';
import { needs } from '../needs.ts';
import { Certificates } from '../ports/certificates.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Remote } from '../ports/remote.ts';
import { download, FetchedLists, keyOf } from '../trust-lists/fetched-lists.ts';
import { parseDer, unavailable } from './unavailable.ts';

const MAX_ANSWER_BYTES = 32 * 1024;
const ENTRY_BYTES = 1_024;

/** What was said of one certificate, by who may say so. */
export type OcspAnswer = Pick<OcspResponse, 'status' | 'revokedAt' | 'thisUpdate'> & {
  readonly nextUpdate: Date;
  readonly uri: string;
  readonly fetchedAt: Date;
};

/** The certificate that is asked about, and the certificate of its issuer, DER in standard base64. */
type Subject = OcspSubject & { readonly issuer: string };

/** Responders (RFC 6960): asked once for all who wait, verified, their answers kept for an hour at most, per tenant. */
export class OcspResponders extends needs({ remote: Remote, certificates: Certificates, clock: Clock, eventBus: EventBus }) {
  readonly #answers = new FetchedLists<OcspAnswer>({
    clock: this.ports.clock,
    eventBus: this.ports.eventBus,
    kind: 'revocation-lists',
    sizeOf: () => ENTRY_BYTES,
    freshUntil: (answer) => freshUntil(answer, answer.fetchedAt),
    isRefusal: (error) => error instanceof Refusal,
    failureMs: RETRY_MS,
  });

  /** @throws Refusal `revocation_unavailable` when no answer that counts can be had. */
  async ask(tenantId: string, uri: string, subject: Subject): Promise<OcspAnswer> {
    const id = hash('sha256', `${subject.issuer} ${subject.serial.toString('hex')}`, 'base64url');
    const key = keyOf(tenantId, id, uri);
    const known = this.#answers.peek(key);
    if (known !== undefined && this.ports.clock.now() < freshUntil(known, known.fetchedAt)) {
      this.#answers.count(tenantId, 'hits');
      return known;
    }
    this.#answers.count(tenantId, 'misses');
    try {
      return await this.#answers.fetch(key, () => this.#load(tenantId, uri, subject));
    } catch (error) {
      // A certificate that was revoked stays revoked until a newer answer says otherwise.
      if (error instanceof Refusal && known?.status === 'revoked') return known;
      throw error;
    }
  }

  async #load(tenantId: string, uri: string, subject: Subject): Promise<OcspAnswer> {
    const { issuer } = subject;
    const authority = parseCertificate(Buffer.from(issuer, 'base64'));
    if (authority === undefined) throw unavailable('issuer');
    // RFC 6960 appendix A.1: by GET, as short requests are; such answers may be kept by caches on the way.
    const request = encodeURIComponent(makeOcspRequest(authority, subject).toString('base64'));
    const address = `${uri.replace(/\/$/, '')}/${request}`;
    const wanted = {
      tenantId,
      accept: 'application/ocsp-response',
      maxBytes: MAX_ANSWER_BYTES,
      isSigned: true,
      // The address names the certificate that is asked about; nobody else needs to hear of it.
      followsRedirects: false,
    };
    const { body } = await download(this.ports.remote, address, wanted, unavailable);
    const answer = parseDer('the answer', () => parseOcspResponse(body, authority, subject));
    if (answer === undefined) throw unusable('it is about other certificates');
    const now = this.ports.clock.now();
    if (!this.#isSigned(answer, issuer, authority, now))
      throw unusable('its signer may not answer for the issuer, or its signature is invalid');
    const fault = findAnswerProblem(answer, now);
    // A certificate that was revoked stays revoked, however old the answer is.
    if (fault !== undefined && answer.status !== 'revoked') throw unusable(fault);
    const { status, revokedAt, thisUpdate } = answer;
    const said = { status, thisUpdate, nextUpdate: answerEnds(answer), uri, fetchedAt: now };
    return revokedAt === undefined ? said : { ...said, revokedAt };
  }

  /** RFC 6960 section 4.2.2.2: the issuer itself, or whom it certified for just this. */
  #isSigned(answer: OcspResponse, issuer: string, authority: Certificate, now: Date): boolean {
    const { certificates } = this.ports;
    if (certificates.hasSigned(issuer, answer)) return true;
    return answer.certificates.some((responder) => {
      const certificate = parseCertificate(Buffer.from(responder, 'base64'));
      if (certificate === undefined || !mayAnswer(certificate, authority)) return false;
      return certificates.isResponder(responder, issuer, now) && certificates.hasSigned(responder, answer);
    });
  }
}

/** An answer came, and tells nothing of the certificate: for the report, in contrast to no answer. */
function unusable(why: string): Refusal {
  return unavailable(`unusable answer: ${why}`);
}
