import { keepingAttempts } from '../../domain/sessions/refused-attempt.ts';
import type {
  Session,
  SessionOutcome,
  VerificationRequest,
  WebhookConfigValue,
} from '../../domain/sessions/session.ts';
import { answered, awaiting, delivering, type SessionChange } from '../../domain/sessions/session-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { bindingOf, isoMdocBinding } from '../../domain/verification/binding.ts';
import { type Envelope, isUndecrypted } from '../../domain/verification/envelope.ts';
import { RESPONSE_CODE_SECONDS } from '../../domain/verification/redirect.ts';
import type { Verdict } from '../../domain/verification/verdict.ts';
import { attempt, record } from '../attempt.ts';
import { type Known, WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { Encryption } from '../ports/encryption.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { StoreUnavailable } from '../ports/store.ts';
import { lost } from '../webhooks/deliveries.ts';
import {
  type Answerable,
  alreadyAnswered,
  answerable,
  ended,
  faulty,
  refusedOutcome,
  refusedResponse,
} from './answers.ts';
import { type Opening, openResponse } from './open-response.ts';
import { PresentationVerifier } from './presentation-verifier.ts';
import { ResultDelivery } from './result-delivery.ts';
import { type ResponseReply, returnTo } from './return-to.ts';
import { SessionOutcomes } from './session-outcomes.ts';
import { UndecryptedTries } from './undecrypted-tries.ts';

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
      if (isUndecrypted(envelope) && this.#undecrypted.leaveOpen(found.session.id, opening)) {
        throw refusedResponse(envelope.detail);
      }
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
      return webhook === undefined
        ? this.#record(known, session, refusedOutcome(verdict))
        : this.#reject(known, session, webhook, verdict);
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
  async #keep(
    known: Known,
    { session, request }: Answerable,
    verdict: Verdict,
    isCrossDevice: boolean,
  ): Promise<ResponseReply> {
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
    return this.#ending(session, () =>
      this.ports.sessionOutcomes.record(session, 'fail', { failure: BROKEN, ...outcome }),
    );
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

  async #judge(
    { configured, now }: Known,
    { session, request }: Answerable,
    { vpToken, isoMdoc }: Presented,
  ): Promise<Verdict | Refusal> {
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
    webhook: WebhookConfigValue,
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
    const { delivery, redirectUri } = await this.#whole(called, taken, {
      ...pending,
      deliveries: [lost(intent)],
    });
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
  async #reject(
    known: Known,
    session: Session,
    webhook: WebhookConfigValue,
    verdict: Verdict,
  ): Promise<never> {
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
  async #take(
    known: Known,
    session: Session,
    change: SessionChange,
    outcome: SessionOutcome,
  ): Promise<Session> {
    const committed = await known.claim({ session: change }, { session: alreadyAnswered });
    return { ...session, ...committed.session, outcome };
  }

  /** OpenID4VP 1.0 section 8.5: a processed error is answered like a success. */
  async #noteWalletError(
    known: Known,
    { session, request }: Answerable,
    { error, isCrossDevice }: WalletError,
  ): Promise<ResponseReply> {
    const failed = keepingAttempts(session.outcome, { failure: error });
    const { reply, outcome } = returnTo(this.ports, request.redirectUri, session, failed, isCrossDevice);
    await known.commit({ session: answered(session, 'fail', outcome) }, { session: alreadyAnswered });
    return reply;
  }
}
