import { LRUCache } from 'lru-cache';
import { isoMdocTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { retainAttempts } from '../../domain/sessions/refused-attempt.ts';
import { OPEN_STATUSES, type Session, type SessionOutcome, statusAt } from '../../domain/sessions/session.ts';
import { acceptAndAwaitCode, acceptAndEnd, acceptForDelivery, type SessionChange } from '../../domain/sessions/session-change.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { SessionFailureCode } from '../../domain/shared/session-failure.ts';
import { bindingOf, isoMdocBinding } from '../../domain/verification/binding.ts';
import { type Envelope, isUndecrypted, type ParsedForm, parseDeviceResponses } from '../../domain/verification/envelope.ts';
import { RESPONSE_CODE_SECONDS } from '../../domain/verification/redirect.ts';
import { responseFault } from '../../domain/verification/report.ts';
import { undecryptableReason } from '../../domain/verification/undecryptable.ts';
import type { Verdict } from '../../domain/verification/verdict.ts';
import type { VerificationRequest } from '../../domain/verification/verification-request.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { Encryption, type EncryptionKeyPair } from '../ports/encryption.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { StoreUnavailableError } from '../ports/store.ts';
import { boundedBytes } from '../tenant-cache/cache-memory.ts';
import { attempt, record } from '../transactions/attempt.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { lostDelivery } from '../webhooks/deliveries.ts';
import { PresentationVerifier } from './presentation-verifier.ts';
import { type ResponseReply, redirectAfterResponse } from './redirect-after-response.ts';
import { ResultDelivery } from './result-delivery.ts';
import { SessionOutcomes } from './session-outcomes.ts';

const PROCESSING_FAILURE = { code: 'internal_error', message: 'the response could not be processed' } as const;

type PresentationsEnvelope = Extract<Envelope, { kind: 'presentations' }>;
type WalletError = Extract<Envelope, { kind: 'wallet_error' }>;

/** True if the result waits for the response code, which the browser of another device never gets. */
function awaitsBrowser({ awaitsResponseCode }: VerificationRequest, isCrossDevice: boolean): boolean {
  return awaitsResponseCode === true && !isCrossDevice;
}

/** Accepts responses to presentation requests over all transports: exactly one per request. */
export class ResponseIntake extends needs({
  ...TRANSACTION_PORTS,
  random: Random,
  settings: ServiceSettings,
  encryption: Encryption,
  presentationVerifier: PresentationVerifier,
  resultDelivery: ResultDelivery,
  sessionOutcomes: SessionOutcomes,
  log: Log,
}) {
  readonly #undecryptedAttempts = new UndecryptedAttempts();

  /**
   * @throws Failure `not_found`, `gone` after expiry, and `invalid_request` for everything else: the session is unchanged if the
   *   sender has not shown that it knows the request, and failed otherwise. The reason is in the session's report, not in the
   *   response.
   */
  accept(tenantId: TenantId, publicId: PublicId, transport: ResponseTransport): Promise<ResponseReply> {
    return attempt(this.ports, tenantId, async (transaction) => {
      const openRequest = assertOpen(await transaction.session(publicId), transaction.now);
      const envelope = await openResponse(this.ports.encryption, transport, openRequest.request);
      if (isUndecrypted(envelope) && this.#undecryptedAttempts.leaveOpen(openRequest.session.id, transport))
        throw responseRejectedError(envelope.detail);
      switch (envelope.kind) {
        case 'presentations':
          return this.#processPresentations(transaction, openRequest, envelope);
        case 'refused':
          return this.#recordFailure(transaction, openRequest.session, failedOutcome(envelope.code, envelope.detail));
        case 'wallet_error':
          return this.#noteWalletError(transaction, openRequest, envelope);
      }
    });
  }

  /**
   * OpenID4VP 1.0 section 14.1: one response per request. It is verified first; accepting it and recording the outcome is then one
   * commit, so that a process that ends leaves an open session, or one that another process can complete.
   */
  async #processPresentations(
    transaction: TenantTransaction,
    openRequest: OpenVerification,
    envelope: PresentationsEnvelope,
  ): Promise<ResponseReply> {
    const { session } = openRequest;
    let verdict: Verdict | Refusal;
    try {
      verdict = await this.#verify(transaction, openRequest, envelope);
    } catch (error) {
      // An internal error would repeat itself, so the session must not stay open; but a database that is down becomes available again.
      const isInternal = !(error instanceof Failure || error instanceof StoreUnavailableError);
      if (transaction.isStored && isInternal) await this.#failUnanswered(session);
      throw error;
    }
    // OpenID4VP 1.0 section 8.1: a malformed vp_token rejects the response.
    if (verdict instanceof Refusal) return this.#recordFailure(transaction, session, failedOutcome('malformed', verdict.message));
    const { webhook } = openRequest.request;
    const { isCrossDevice = false } = envelope;
    if (!verdict.good)
      return webhook === undefined
        ? this.#recordFailure(transaction, session, refusedOutcome(verdict))
        : this.#reject(transaction, session, webhook, verdict);
    // A backend is notified of a valid response now, unless the result waits for the browser.
    return webhook === undefined || awaitsBrowser(openRequest.request, isCrossDevice)
      ? this.#storeResult(transaction, openRequest, verdict, isCrossDevice)
      : this.#acceptAndDeliver(transaction, openRequest, webhook, verdict, isCrossDevice);
  }

  async #recordFailure(transaction: TenantTransaction, session: Session, outcome: SessionOutcome): Promise<never> {
    const outcomeWithAttempts = retainAttempts(session.outcome, outcome);
    await transaction.commit({ session: acceptAndEnd(session, 'fail', outcomeWithAttempts) }, { session: alreadyAnsweredError });
    throw responseRejectedError(outcome.failure?.message ?? 'refused');
  }

  /** OpenID4VP 1.0 section 14.3: the verified result waits for the browser if that is required. */
  async #storeResult(
    transaction: TenantTransaction,
    { session, request }: OpenVerification,
    verdict: Verdict,
    isCrossDevice: boolean,
  ): Promise<ResponseReply> {
    const { credentials, report } = verdict;
    const verified = { credentials, report };
    const waitsForBrowser = awaitsBrowser(request, isCrossDevice);
    const storedResult = waitsForBrowser ? { awaiting: verified } : verified;
    const result = retainAttempts(session.outcome, storedResult);
    const { reply, outcome } = redirectAfterResponse(this.ports, request.redirectUri, session, result, isCrossDevice);
    const endsAt = new Date(this.ports.clock.now().getTime() + RESPONSE_CODE_SECONDS * 1000);
    const change = waitsForBrowser ? acceptAndAwaitCode(session, outcome, endsAt) : acceptAndEnd(session, 'complete', outcome);
    await transaction.commit({ session: change }, { session: alreadyAnsweredError });
    return reply;
  }

  /** Fails a session whose response was accepted. */
  #failFor(session: Session, outcome: SessionOutcome): Promise<void> {
    return this.#endLoggingErrors(session, () =>
      this.ports.sessionOutcomes.record(session, 'fail', { failure: PROCESSING_FAILURE, ...outcome }),
    );
  }

  /** Fails a session without an accepted response; another response may have been accepted meanwhile, which stays valid. */
  #failUnanswered(session: Session): Promise<void> {
    const change = acceptAndEnd(session, 'fail', retainAttempts(session.outcome, { failure: PROCESSING_FAILURE }));
    return this.#endLoggingErrors(session, () => record(this.ports, session.tenantId, { session: change }));
  }

  /** A failure to end the session is logged, since the caller gets the first error. */
  async #endLoggingErrors(session: Session, end: () => Promise<unknown>): Promise<void> {
    const { log } = this.ports;
    try {
      await end();
    } catch (secondError) {
      log.error('a session with a response could not be failed', { sessionId: session.id }, secondError);
    }
  }

  async #verify(
    { tenant, now }: TenantTransaction,
    { session, request }: OpenVerification,
    { vpToken, isoMdoc }: PresentationsEnvelope,
  ): Promise<Verdict | Refusal> {
    const [configurationId] = session.configurationIds;
    try {
      const binding = isoMdoc === undefined ? bindingOf(request) : isoMdocBinding(isoMdoc);
      const requestedAt = session.createdAt;
      const task = { tenant, request, binding, requestedAt, configurationId, vpToken, now };
      return await this.ports.presentationVerifier.verify(task);
    } catch (error) {
      if (error instanceof Refusal) return error;
      throw error;
    }
  }

  /** Stores the intent to call the backend with the response, calls it once, then stores the outcome. */
  async #acceptAndDeliver(
    transaction: TenantTransaction,
    { session, request }: OpenVerification,
    webhook: WebhookConfig,
    { credentials, report }: Verdict,
    isCrossDevice: boolean,
  ): Promise<ResponseReply> {
    const { resultDelivery, sessionOutcomes } = this.ports;
    const verified = { credentials, report };
    const intent = resultDelivery.intend();
    const pending = retainAttempts(session.outcome, { ...verified, deliveries: [intent] });
    const acceptedSession = await this.#claim(transaction, session, acceptForDelivery(session, pending), pending);
    const context = { tenant: transaction.tenant, session };
    const call = resultDelivery.call(webhook, intent, context, credentials);
    const { delivery, redirectUri } = await this.#failOnError(call, acceptedSession, { ...pending, deliveries: [lostDelivery(intent)] });
    const delivered = { ...verified, deliveries: [delivery] };
    if (delivery.result !== 'delivered') {
      const failure = { code: 'webhook_failed', message: delivery.detail ?? 'the webhook failed' } as const;
      await sessionOutcomes.record(acceptedSession, 'fail', { ...delivered, failure });
      // The status is not 5xx, because a wallet would then repeat a response that cannot be accepted any more.
      throw responseRejectedError(failure.message);
    }
    const template = redirectUri ?? request.redirectUri;
    const { reply, outcome } = redirectAfterResponse(this.ports, template, session, delivered, isCrossDevice);
    if ((await sessionOutcomes.record(acceptedSession, 'complete', outcome)) === undefined) throw requestEndedError();
    return reply;
  }

  /** Notifies the backend of a rejection after it was recorded, without claim values. */
  async #reject(transaction: TenantTransaction, session: Session, webhook: WebhookConfig, verdict: Verdict): Promise<never> {
    const { resultDelivery, sessionOutcomes } = this.ports;
    const outcome = retainAttempts(session.outcome, refusedOutcome(verdict));
    const intent = resultDelivery.intend(verdict.credentials);
    const pending = { ...outcome, deliveries: [intent] };
    const failedSession = await this.#claim(transaction, session, acceptAndEnd(session, 'fail', pending), pending);
    const context = { tenant: transaction.tenant, session };
    const call = resultDelivery.call(webhook, intent, context, verdict.credentials);
    const { delivery } = await this.#failOnError(call, failedSession, { ...outcome, deliveries: [lostDelivery(intent)] });
    await sessionOutcomes.record(failedSession, undefined, { ...outcome, deliveries: [delivery] });
    throw responseRejectedError(verdict.reasons.join('; '));
  }

  /** Failures of the backend are part of the delivery; any other error is internal and ends the session. */
  async #failOnError<T>(call: Promise<T>, session: Session, outcome: SessionOutcome): Promise<T> {
    try {
      return await call;
    } catch (error) {
      await this.#failFor(session, outcome);
      throw error;
    }
  }

  /** @returns the session after the commit. */
  async #claim(transaction: TenantTransaction, session: Session, change: SessionChange, outcome: SessionOutcome): Promise<Session> {
    const committed = await transaction.claim({ session: change }, { session: alreadyAnsweredError });
    return { ...session, ...committed.session, outcome };
  }

  /** OpenID4VP 1.0 section 8.5: a processed error response is answered like a success. */
  async #noteWalletError(
    transaction: TenantTransaction,
    { session, request }: OpenVerification,
    { error, isCrossDevice }: WalletError,
  ): Promise<ResponseReply> {
    const failure = retainAttempts(session.outcome, { failure: error });
    const { reply, outcome } = redirectAfterResponse(this.ports, request.redirectUri, session, failure, isCrossDevice);
    await transaction.commit({ session: acceptAndEnd(session, 'fail', outcome) }, { session: alreadyAnsweredError });
    return reply;
  }
}

type OpenVerification = { readonly session: Session; readonly request: VerificationRequest };

function refusedOutcome({ reasons, report }: Verdict): SessionOutcome {
  return { failure: { code: 'presentation_refused', message: reasons.join('; ') }, report };
}

function failedOutcome(code: SessionFailureCode, message: string): SessionOutcome {
  return { failure: { code, message }, report: [responseFault('response', message, 'OpenID4VP 1.0 section 8')] };
}

/** @throws Failure `not_found`, `gone` after expiry, `invalid_request` when it was answered already. */
function assertOpen(session: Session | undefined, now: Date): OpenVerification {
  if (session?.kind !== 'verification') throw new Failure('not_found', 'unknown address');
  const status = statusAt(session, now);
  if (status === 'expired') throw new Failure('gone', 'the request has expired');
  const { request } = session;
  const isOpen = OPEN_STATUSES.includes(status);
  if (!isOpen || session.claimedAt !== null || request?.kind !== 'verification') throw alreadyAnsweredError();
  return { session, request };
}

function alreadyAnsweredError(): Failure {
  return new Failure('invalid_request', 'this request was already answered or cancelled');
}

function requestEndedError(): Failure {
  return new Failure('gone', 'the request has ended');
}

/** @param reason for the log, not for the wallet. Names and numbers, never a claim value. */
function responseRejectedError(reason: string): Failure {
  return new Failure('invalid_request', 'the response was not accepted', { cause: new OperatorReason(reason) });
}

type ResponseTransport = {
  /**
   * Checks the message against the request before anything is decrypted.
   * @throws Failure for a message that must leave the session unchanged.
   */
  readonly open: (request: VerificationRequest) => ParsedForm;
  /**
   * @param plaintext undefined when it could not be decrypted.
   * @param outerState the `state` next to the encrypted response.
   * @throws Failure like `open`.
   */
  readonly openPlaintext: (plaintext: string | undefined, request: VerificationRequest, outerState: string | undefined) => Envelope;
};

/** Decrypts a response with the key of its request. @throws Failure like `Opening`. */
async function openResponse(
  encryption: Encryption,
  { open, openPlaintext }: ResponseTransport,
  request: VerificationRequest,
): Promise<Envelope> {
  const parsedForm = open(request);
  if (parsedForm.kind === 'sealed') {
    const { message, isoMdoc: isoMdocRequest } = parsedForm;
    // ISO/IEC TS 18013-7 section C.4: encrypted for this transcript
    const info = isoMdocTranscript(isoMdocRequest);
    const key = isoMdocRequest.encryption as unknown as EncryptionKeyPair;
    return parseDeviceResponses(await encryption.openHpke(message, key, info), isoMdocRequest);
  }
  if (parsedForm.kind !== 'encrypted') return parsedForm;
  // OpenID4VP 1.0 section 8.3
  const key = request.encryption as unknown as EncryptionKeyPair | undefined;
  const plaintext = key === undefined ? undefined : await encryption.decrypt(parsedForm.jwe, key);
  const envelope = openPlaintext(plaintext, request, parsedForm.outerState);
  const kid = key?.publicJwk.kid;
  if (!isUndecrypted(envelope) || kid === undefined) return envelope;
  return { ...envelope, detail: `the response does not decrypt: ${undecryptableReason(parsedForm.jwe, kid)}` };
}

/** Bodies that cannot be decrypted do not identify the sender; an attacker who saw the address can send some. */
export const MAX_UNDECRYPTED_ATTEMPTS = 5;
const MAX_BYTES = 1024 * 1024;

/**
 * Counts, in each process, the bodies that do not decrypt per request: the first few leave it open for the intended wallet, so that an
 * attacker cannot end a presentation with one message, and the last one records the reason.
 */
export class UndecryptedAttempts {
  readonly #attempts = new LRUCache<SessionId, number>(boundedBytes(MAX_BYTES, () => 8));
  readonly #counted = new WeakSet<object>();

  /** @param message counted once even if it is processed twice. @returns true if the request stays open. */
  leaveOpen(id: SessionId, message: object): boolean {
    const previousAttempts = this.#attempts.get(id) ?? 0;
    const attempts = this.#counted.has(message) ? previousAttempts : previousAttempts + 1;
    this.#counted.add(message);
    this.#attempts.set(id, attempts);
    return attempts < MAX_UNDECRYPTED_ATTEMPTS;
  }
}
