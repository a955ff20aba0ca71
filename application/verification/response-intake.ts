import { LRUCache } from 'lru-cache';
import { isoMdocTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { keepingAttempts } from '../../domain/sessions/refused-attempt.ts';
import { OPEN_STATUSES, type Session, type SessionOutcome, statusAt } from '../../domain/sessions/session.ts';
import { answered, awaiting, delivering, type SessionChange } from '../../domain/sessions/session-change.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { SessionFailureCode } from '../../domain/shared/session-failure.ts';
import { bindingOf, isoMdocBinding } from '../../domain/verification/binding.ts';
import { type Envelope, isUndecrypted, type OpenedForm, parseDeviceResponses } from '../../domain/verification/envelope.ts';
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
import { StoreUnavailable } from '../ports/store.ts';
import { boundedBytes } from '../tenant-cache/bounded.ts';
import { attempt, record } from '../transactions/attempt.ts';
import { type Known, WORLD } from '../transactions/known.ts';
import { lost } from '../webhooks/deliveries.ts';
import { PresentationVerifier } from './presentation-verifier.ts';
import { ResultDelivery } from './result-delivery.ts';
import { type ResponseReply, returnTo } from './return-to.ts';
import { SessionOutcomes } from './session-outcomes.ts';

const BROKEN = { code: 'internal_error', message: 'the response could not be processed' } as const;

type Presented = Extract<Envelope, { kind: 'presentations' }>;
type WalletError = Extract<Envelope, { kind: 'wallet_error' }>;

/** Whether the result waits for the response code, which the browser of another device never gets. */
function awaitsBrowser({ awaitsResponseCode }: VerificationRequest, isCrossDevice: boolean): boolean {
  return awaitsResponseCode === true && !isCrossDevice;
}

/** Takes in answers to presentation requests, by whichever way they come: exactly one per request. */
export class ResponseIntake extends needs({
  ...WORLD,
  random: Random,
  settings: ServiceSettings,
  encryption: Encryption,
  presentationVerifier: PresentationVerifier,
  resultDelivery: ResultDelivery,
  sessionOutcomes: SessionOutcomes,
  log: Log,
}) {
  readonly #undecrypted = new UndecryptedTries();

  /**
   * @throws Failure `not_found`, `gone` after expiry, and `invalid_request` for everything else: with the session
   *   as it was while the poster has not shown that it knows the request, failed afterwards. The wallet learns no
   *   reason; the session's report has it.
   */
  take(tenantId: TenantId, publicId: PublicId, opening: Opening): Promise<ResponseReply> {
    return attempt(this.ports, tenantId, async (known) => {
      const found = answerable(await known.session(publicId), known.now);
      const envelope = await openResponse(this.ports.encryption, opening, found.request);
      if (isUndecrypted(envelope) && this.#undecrypted.leaveOpen(found.session.id, opening)) throw refusedResponse(envelope.detail);
      switch (envelope.kind) {
        case 'presentations':
          return this.#answer(known, found, envelope);
        case 'refused':
          return this.#record(known, found.session, faulty(envelope.code, envelope.detail));
        case 'wallet_error':
          return this.#noteWalletError(known, found, envelope);
      }
    });
  }

  /**
   * OpenID4VP 1.0 section 14.1: one response per request. It is judged first; taking it in and saying what came of it is then
   * one step, so that a process that dies leaves an open session behind, or one that somebody else can bring to its end.
   */
  async #answer(known: Known, found: Answerable, presented: Presented): Promise<ResponseReply> {
    const { session } = found;
    let verdict: Verdict | Refusal;
    try {
      verdict = await this.#judge(known, found, presented);
    } catch (error) {
      // Nobody else can make more of it, so the session must not stay open; but a database that goes away comes back.
      const isOurs = !(error instanceof Failure || error instanceof StoreUnavailable);
      if (known.isStored && isOurs) await this.#failUnanswered(session);
      throw error;
    }
    // OpenID4VP 1.0 section 8.1: a vp_token without its form refuses the response.
    if (verdict instanceof Refusal) return this.#record(known, session, faulty('malformed', verdict.message));
    const { webhook } = found.request;
    const { isCrossDevice = false } = presented;
    if (!verdict.good)
      return webhook === undefined ? this.#record(known, session, refusedOutcome(verdict)) : this.#reject(known, session, webhook, verdict);
    // A backend hears of a good response now, unless it has to wait until the browser comes.
    return webhook === undefined || awaitsBrowser(found.request, isCrossDevice)
      ? this.#keep(known, found, verdict, isCrossDevice)
      : this.#accept(known, found, webhook, verdict, isCrossDevice);
  }

  async #record(known: Known, session: Session, outcome: SessionOutcome): Promise<never> {
    const failed = keepingAttempts(session.outcome, outcome);
    await known.commit({ session: answered(session, 'fail', failed) }, { session: alreadyAnswered });
    throw refusedResponse(outcome.failure?.message ?? 'refused');
  }

  /** OpenID4VP 1.0 section 14.3: where the browser has to come, what was verified waits for it. */
  async #keep(known: Known, { session, request }: Answerable, verdict: Verdict, isCrossDevice: boolean): Promise<ResponseReply> {
    const { credentials, report } = verdict;
    const verified = { credentials, report };
    const waits = awaitsBrowser(request, isCrossDevice);
    const kept = waits ? { awaiting: verified } : verified;
    const result = keepingAttempts(session.outcome, kept);
    const { reply, outcome } = returnTo(this.ports, request.redirectUri, session, result, isCrossDevice);
    const endsAt = new Date(this.ports.clock.now().getTime() + RESPONSE_CODE_SECONDS * 1000);
    const change = waits ? awaiting(session, outcome, endsAt) : answered(session, 'complete', outcome);
    await known.commit({ session: change }, { session: alreadyAnswered });
    return reply;
  }

  /** Of a session whose response was taken in. */
  #failFor(session: Session, outcome: SessionOutcome): Promise<void> {
    return this.#ending(session, () => this.ports.sessionOutcomes.record(session, 'fail', { failure: BROKEN, ...outcome }));
  }

  /** Another response may have been taken in meanwhile, of which this fault says nothing. */
  #failUnanswered(session: Session): Promise<void> {
    const change = answered(session, 'fail', keepingAttempts(session.outcome, { failure: BROKEN }));
    return this.#ending(session, () => record(this.ports, session.tenantId, { session: change }));
  }

  /** The caller hears of the first fault; that the session now waits for its expiry is for the operator. */
  async #ending(session: Session, end: () => Promise<unknown>): Promise<void> {
    const { log } = this.ports;
    try {
      await end();
    } catch (second) {
      log.error('a session with a response could not be failed', { sessionId: session.id }, second);
    }
  }

  async #judge({ configured, now }: Known, { session, request }: Answerable, { vpToken, isoMdoc }: Presented): Promise<Verdict | Refusal> {
    const [configurationId] = session.configurationIds;
    try {
      const binding = isoMdoc === undefined ? bindingOf(request) : isoMdocBinding(isoMdoc);
      const requestedAt = session.createdAt;
      const task = { configured, request, binding, requestedAt, configurationId, vpToken, now };
      return await this.ports.presentationVerifier.verify(task);
    } catch (error) {
      if (error instanceof Refusal) return error;
      throw error;
    }
  }

  /** The intent to call the backend is stored with the response, then it is called once, then the outcome is stored. */
  async #accept(
    known: Known,
    { session, request }: Answerable,
    webhook: WebhookConfig,
    { credentials, report }: Verdict,
    isCrossDevice: boolean,
  ): Promise<ResponseReply> {
    const { resultDelivery, sessionOutcomes } = this.ports;
    const verified = { credentials, report };
    const intent = resultDelivery.intend();
    const pending = keepingAttempts(session.outcome, { ...verified, deliveries: [intent] });
    const taken = await this.#take(known, session, delivering(session, pending), pending);
    const about = { configured: known.configured, session };
    const called = resultDelivery.call(webhook, intent, about, credentials);
    const { delivery, redirectUri } = await this.#whole(called, taken, { ...pending, deliveries: [lost(intent)] });
    const delivered = { ...verified, deliveries: [delivery] };
    if (delivery.result !== 'delivered') {
      const failure = { code: 'webhook_failed', message: delivery.detail ?? 'the webhook failed' } as const;
      await sessionOutcomes.record(taken, 'fail', { ...delivered, failure });
      // Not a 5xx: a wallet would send again what nobody can take any more.
      throw refusedResponse(failure.message);
    }
    const template = redirectUri ?? request.redirectUri;
    const { reply, outcome } = returnTo(this.ports, template, session, delivered, isCrossDevice);
    if ((await sessionOutcomes.record(taken, 'complete', outcome)) === undefined) throw ended();
    return reply;
  }

  /** The backend hears of the failure once it is recorded, without any value. */
  async #reject(known: Known, session: Session, webhook: WebhookConfig, verdict: Verdict): Promise<never> {
    const { resultDelivery, sessionOutcomes } = this.ports;
    const outcome = keepingAttempts(session.outcome, refusedOutcome(verdict));
    const intent = resultDelivery.intend(verdict.credentials);
    const pending = { ...outcome, deliveries: [intent] };
    const failed = await this.#take(known, session, answered(session, 'fail', pending), pending);
    const about = { configured: known.configured, session };
    const called = resultDelivery.call(webhook, intent, about, verdict.credentials);
    const { delivery } = await this.#whole(called, failed, { ...outcome, deliveries: [lost(intent)] });
    await sessionOutcomes.record(failed, undefined, { ...outcome, deliveries: [delivery] });
    throw refusedResponse(verdict.reasons.join('; '));
  }

  /** What the backend does is part of the delivery; anything else is a fault of ours, which ends the session. */
  async #whole<T>(called: Promise<T>, session: Session, outcome: SessionOutcome): Promise<T> {
    try {
      return await called;
    } catch (error) {
      await this.#failFor(session, outcome);
      throw error;
    }
  }

  /** @returns the session as it is to be recorded next. */
  async #take(known: Known, session: Session, change: SessionChange, outcome: SessionOutcome): Promise<Session> {
    const committed = await known.claim({ session: change }, { session: alreadyAnswered });
    return { ...session, ...committed.session, outcome };
  }

  /** OpenID4VP 1.0 section 8.5: a processed error is answered like a success. */
  async #noteWalletError(known: Known, { session, request }: Answerable, { error, isCrossDevice }: WalletError): Promise<ResponseReply> {
    const failed = keepingAttempts(session.outcome, { failure: error });
    const { reply, outcome } = returnTo(this.ports, request.redirectUri, session, failed, isCrossDevice);
    await known.commit({ session: answered(session, 'fail', outcome) }, { session: alreadyAnswered });
    return reply;
  }
}

/** A session that waits for a response, with what it asked for. */
type Answerable = { readonly session: Session; readonly request: VerificationRequest };

function refusedOutcome({ reasons, report }: Verdict): SessionOutcome {
  return { failure: { code: 'presentation_refused', message: reasons.join('; ') }, report };
}

function faulty(code: SessionFailureCode, message: string): SessionOutcome {
  return {
    failure: { code, message },
    report: [responseFault('response', message, 'OpenID4VP 1.0 section 8')],
  };
}

/** @throws Failure `not_found`, `gone` after expiry, `invalid_request` when it was answered already. */
function answerable(session: Session | undefined, now: Date): Answerable {
  if (session?.kind !== 'verification') throw new Failure('not_found', 'unknown address');
  const status = statusAt(session, now);
  if (status === 'expired') throw new Failure('gone', 'the request has expired');
  const { request } = session;
  const isOpen = OPEN_STATUSES.includes(status);
  if (!isOpen || session.claimedAt !== null || request?.kind !== 'verification') throw alreadyAnswered();
  return { session, request };
}

function alreadyAnswered(): Failure {
  return new Failure('invalid_request', 'this request was answered already, or was cancelled');
}

function ended(): Failure {
  return new Failure('gone', 'the request has ended');
}

/** @param reason for the log; the wallet learns none. Names and numbers, never a claim's value. */
function refusedResponse(reason: string): Failure {
  return new Failure('invalid_request', 'the response was not accepted', { cause: new OperatorReason(reason) });
}

/** How an answer comes in. */
type Opening = {
  /**
   * What arrived, held against the request before anything is decrypted.
   * @throws Failure for what must leave the session as it is.
   */
  readonly open: (request: VerificationRequest) => OpenedForm;
  /**
   * @param plaintext undefined when it could not be decrypted.
   * @param outerState the `state` that stood beside the encrypted response.
   * @throws Failure like `open`.
   */
  readonly openPlaintext: (plaintext: string | undefined, request: VerificationRequest, outerState: string | undefined) => Envelope;
};

/** Decrypts what is encrypted, with the key of this very request. @throws Failure like `Opening`. */
async function openResponse(encryption: Encryption, { open, openPlaintext }: Opening, request: VerificationRequest): Promise<Envelope> {
  const opened = open(request);
  if (opened.kind === 'sealed') {
    const { message, asked } = opened;
    // ISO/IEC TS 18013-7 section C.4: sealed for this very transcript
    const info = isoMdocTranscript(asked);
    const key = asked.encryption as unknown as EncryptionKeyPair;
    return parseDeviceResponses(await encryption.openHpke(message, key, info), asked);
  }
  if (opened.kind !== 'encrypted') return opened;
  // OpenID4VP 1.0 section 8.3
  const key = request.encryption as unknown as EncryptionKeyPair | undefined;
  const plaintext = key === undefined ? undefined : await encryption.decrypt(opened.jwe, key);
  const envelope = openPlaintext(plaintext, request, opened.outerState);
  const kid = key?.publicJwk.kid;
  if (!isUndecrypted(envelope) || kid === undefined) return envelope;
  return { ...envelope, detail: `the response does not decrypt: ${undecryptableReason(opened.jwe, kid)}` };
}

/** Bodies that nobody can open say nothing of who sent them; whoever saw the address can send some. */
export const UNDECRYPTED_TRIES = 5;
const MAX_BYTES = 1024 * 1024;

/**
 * Counts, in each process, what was sent to a request and does not decrypt: the first few leave it open for the wallet
 * that was asked, so that a stranger's noise does not end a presentation, and the last one says why it ended.
 */
export class UndecryptedTries {
  readonly #tries = new LRUCache<SessionId, number>(boundedBytes(MAX_BYTES, () => 8));
  readonly #counted = new WeakSet<object>();

  /** @param message the same one may be judged twice, and counts once. @returns whether the request stays open. */
  leaveOpen(id: SessionId, message: object): boolean {
    const known = this.#tries.get(id) ?? 0;
    const tries = this.#counted.has(message) ? known : known + 1;
    this.#counted.add(message);
    this.#tries.set(id, tries);
    return tries < UNDECRYPTED_TRIES;
  }
}
