import { hash } from 'node:crypto';
import {
  type Session,
  type SessionOutcome,
  statusAt,
  type VerificationRequest,
} from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { Json } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { bindingOf } from '../../domain/verification/binding.ts';
import type { Envelope, OpenedForm, WalletError } from '../../domain/verification/envelope.ts';
import { returnAddress, withResponseCode } from '../../domain/verification/redirect.ts';
import { responseFault } from '../../domain/verification/report.ts';
import type { Verdict } from '../../domain/verification/verdict.ts';
import type { Clock } from '../ports/clock.ts';
import type { Encryption, EncryptionKeyPair } from '../ports/encryption.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Log } from '../ports/log.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration, TenantConfigurations } from '../tenant-configuration.ts';
import type { PresentationVerifier } from './presentation-verifier.ts';
import type { ResultDelivery } from './result-delivery.ts';
import type { SessionOutcomes } from './session-outcomes.ts';

type Ports = {
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly clock: Clock;
  readonly random: Random;
  readonly encryption: Encryption;
  readonly presentationVerifier: PresentationVerifier;
  readonly resultDelivery: ResultDelivery;
  readonly sessionOutcomes: SessionOutcomes;
  readonly eventBus: EventBus;
  readonly log: Log;
};

/** OpenID4VP 1.0 section 8.2. */
export type ResponseReply = { readonly redirect_uri?: string };

type Found = {
  readonly configured: TenantConfiguration;
  readonly session: Session;
  readonly request: VerificationRequest;
};
type Return = { readonly reply: ResponseReply; readonly outcome: SessionOutcome };

/** How an answer comes in. */
export type Opening = {
  /**
   * What arrived, held against the request before anything is decrypted.
   * @throws Failure for what must leave the session as it is.
   */
  readonly open: (request: VerificationRequest) => OpenedForm;
  /** @param plaintext undefined when it could not be decrypted. @throws Failure like `open`. */
  readonly openPlaintext: (plaintext: string | undefined, request: VerificationRequest) => Envelope;
};

/** Takes in answers to presentation requests, by whichever way they come: exactly one per request. */
export class ResponseIntake {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @throws Failure `not_found`, `gone` after expiry, and `invalid_request` for everything else: with the session
   *   as it was while the poster has not shown that it knows the request, failed afterwards. The wallet learns no
   *   reason; the session's report has it.
   */
  async take(tenantId: TenantId, publicId: PublicId, opening: Opening): Promise<ResponseReply> {
    const atOnce = await this.#answerAtOnce(tenantId, publicId, opening);
    if (atOnce !== undefined) return atOnce;
    const { store, clock, sessionOutcomes, log } = this.#ports;
    const found = await this.#find(tenantId, publicId);
    const envelope = await this.#open(opening, found.request);
    const { session, request } = found;
    // OpenID4VP 1.0 section 14.1: one response per request. Whoever calls a backend claims the request first, so that
    // of several at once exactly one goes on; without a backend the record itself is the claim.
    const claims = envelope.kind !== 'presentations' || request.webhook !== undefined;
    if (claims && !(await store.beats(tenantId).claimResponse(session.id, clock.now())))
      throw alreadyAnswered();
    try {
      if (envelope.kind === 'refused') return await this.#refuse(session, envelope.code, envelope.detail);
      if (envelope.kind === 'wallet_error') return await this.#noteWalletError(found, envelope.error);
      return await this.#verify(found, envelope.vpToken);
    } catch (error) {
      // Nobody else can answer any more, so the session must not stay open.
      if (!(error instanceof Failure)) {
        const failure = { code: 'internal_error', message: 'the response could not be processed' };
        // The caller hears of the first fault; that the session now waits for its expiry is for the operator.
        await sessionOutcomes.record(session, 'fail', { failure }).catch((second: unknown) => {
          log.error(
            'a session with a claimed response could not be failed',
            { sessionId: session.id },
            second,
          );
        });
      }
      throw error;
    }
  }

  /**
   * When this process made the request and no backend is to be called, the response is judged first; taking it in and
   * ending the session is then one step of the database.
   * @returns undefined when nothing happened and the steps have to decide.
   */
  async #answerAtOnce(
    tenantId: TenantId,
    publicId: PublicId,
    opening: Opening,
  ): Promise<ResponseReply | undefined> {
    const { store, tenantConfigurations, clock, eventBus, log } = this.#ports;
    const beats = store.beats(tenantId);
    const session = beats.recallSession(publicId);
    const configured = tenantConfigurations.latest(tenantId);
    const request = session?.request;
    if (session === undefined || configured === undefined || request?.kind !== 'verification')
      return undefined;
    if (request.webhook !== undefined) return undefined;
    const envelope = await this.#open(opening, request);
    if (envelope.kind !== 'presentations') return undefined;
    const found = { configured, session, request };
    // What cannot be judged is judged once more by the steps, which end the session if that fails again.
    const verdict = await this.#judge(found, envelope.vpToken).catch((error: unknown) => {
      log.error('a response could not be judged; it is tried once more', { sessionId: session.id }, error);
      return undefined;
    });
    if (verdict === undefined || verdict instanceof Refusal) return undefined;
    const { reply, outcome } = verdict.good
      ? this.#returnTo(request.redirectUri, session, {
          credentials: verdict.credentials,
          report: verdict.report,
        })
      : { reply: undefined, outcome: refusedOutcome(verdict) };
    const event = verdict.good ? 'complete' : 'fail';
    const answer = {
      sessionId: session.id,
      publicId,
      revision: configured.head.revision,
      event,
      outcome,
    } as const;
    if (!(await beats.answerAtOnce(answer, clock.now()))) return undefined;
    eventBus.publish({ type: 'session', tenantId, sessionId: session.id });
    if (reply === undefined) throw refusedResponse();
    return reply;
  }

  async #find(tenantId: TenantId, publicId: PublicId): Promise<Found> {
    const { store, tenantConfigurations, clock } = this.#ports;
    const row = await store.beats(tenantId).findByPublicId(publicId);
    const configured = tenantConfigurations.ofWallet(row?.head);
    const session = row?.session;
    if (session?.kind !== 'verification') throw new Failure('not_found', 'unknown address');
    const status = statusAt(session, clock.now());
    if (status === 'expired') throw new Failure('gone', 'the request has expired');
    const { request } = session;
    const isOpen = status === 'active' || status === 'fetched';
    if (!isOpen || session.claimedAt !== null || request?.kind !== 'verification') throw alreadyAnswered();
    return { configured, session, request };
  }

  async #open({ open, openPlaintext }: Opening, request: VerificationRequest): Promise<Envelope> {
    const opened = open(request);
    if (opened.kind !== 'encrypted') return opened;
    const { encryption } = request;
    // OpenID4VP 1.0 section 8.3: with the key of this very request
    const plaintext =
      encryption === undefined
        ? undefined
        : await this.#ports.encryption.decrypt(opened.jwe, encryption as unknown as EncryptionKeyPair);
    return openPlaintext(plaintext, request);
  }

  async #verify(found: Found, vpToken: Json): Promise<ResponseReply> {
    const verdict = await this.#judge(found, vpToken);
    // OpenID4VP 1.0 section 8.1: a vp_token without its form refuses the response.
    if (verdict instanceof Refusal) return this.#refuse(found.session, verdict.reason, verdict.message);
    return verdict.good ? this.#accept(found, verdict) : this.#reject(found, verdict);
  }

  async #judge({ configured, session, request }: Found, vpToken: Json): Promise<Verdict | Refusal> {
    const [configurationId] = session.configurationIds;
    const now = this.#ports.clock.now();
    try {
      const binding = bindingOf(request);
      const requestedAt = session.createdAt;
      const task = { configured, request, binding, requestedAt, configurationId, vpToken, now };
      return await this.#ports.presentationVerifier.verify(task);
    } catch (error) {
      if (error instanceof Refusal) return error;
      throw error;
    }
  }

  /** The intent to call the backend is stored first, then it is called once, then the outcome is stored. */
  async #accept({ session, request }: Found, verdict: Verdict): Promise<ResponseReply> {
    const { resultDelivery, sessionOutcomes } = this.#ports;
    const verified = { credentials: verdict.credentials, report: verdict.report };
    const { webhook } = request;
    if (webhook === undefined) {
      const { reply, outcome } = this.#returnTo(request.redirectUri, session, verified);
      if ((await sessionOutcomes.record(session, 'complete', outcome)) === undefined) throw alreadyAnswered();
      return reply;
    }
    const intent = resultDelivery.intend();
    const noted = await sessionOutcomes.record(session, undefined, { ...verified, deliveries: [intent] });
    if (noted === undefined) throw ended();
    const { delivery, redirectUri } = await resultDelivery.call(
      webhook,
      intent,
      session.id,
      verdict.credentials,
    );
    const delivered = { ...verified, deliveries: [delivery] };
    if (delivery.result !== 'delivered') {
      const failure = { code: 'webhook_failed', message: delivery.detail ?? 'the webhook failed' };
      await sessionOutcomes.record(noted, 'fail', { ...delivered, failure });
      // Not a 5xx: a wallet would send again what nobody can take any more.
      throw refusedResponse();
    }
    const { reply, outcome } = this.#returnTo(redirectUri ?? request.redirectUri, session, delivered);
    if ((await sessionOutcomes.record(noted, 'complete', outcome)) === undefined) throw ended();
    return reply;
  }

  /** The backend hears of the failure once it is recorded, without any value. */
  async #reject({ session, request }: Found, verdict: Verdict): Promise<never> {
    const { resultDelivery, sessionOutcomes } = this.#ports;
    const outcome = refusedOutcome(verdict);
    const { webhook } = request;
    if (webhook === undefined) {
      await sessionOutcomes.record(session, 'fail', outcome);
      throw refusedResponse();
    }
    const intent = resultDelivery.intend();
    const failed = await sessionOutcomes.record(session, 'fail', { ...outcome, deliveries: [intent] });
    if (failed !== undefined) {
      const { delivery } = await resultDelivery.call(webhook, intent, session.id, verdict.credentials);
      await sessionOutcomes.record(failed, undefined, { ...outcome, deliveries: [delivery] });
    }
    throw refusedResponse();
  }

  async #refuse(session: Session, code: string, detail: string): Promise<never> {
    const report = [responseFault('response', detail, 'OpenID4VP 1.0 section 8')];
    await this.#ports.sessionOutcomes.record(session, 'fail', { failure: { code, message: detail }, report });
    throw refusedResponse();
  }

  /** OpenID4VP 1.0 section 8.5: a processed error is answered like a success. */
  async #noteWalletError({ session, request }: Found, error: WalletError): Promise<ResponseReply> {
    const { reply, outcome } = this.#returnTo(request.redirectUri, session, { failure: error });
    if ((await this.#ports.sessionOutcomes.record(session, 'fail', outcome)) === undefined) throw ended();
    return reply;
  }

  /** OpenID4VP 1.0 section 13.3: the code goes through the wallet to the browser; we keep its hash. */
  #returnTo(template: string | undefined, session: Session, outcome: SessionOutcome): Return {
    if (template === undefined) return { reply: {}, outcome };
    const redirectUri = returnAddress(template, session.id);
    const code = this.#ports.random.token();
    const responseCodeHash = hash('sha256', code, 'base64url');
    return {
      reply: { redirect_uri: withResponseCode(redirectUri, code) },
      outcome: {
        ...outcome,
        redirectUri,
        responseCodeHash,
        responseCodeAt: this.#ports.clock.now().toISOString(),
      },
    };
  }
}

function refusedOutcome({ reasons, report }: Verdict): SessionOutcome {
  return { failure: { code: 'presentation_refused', message: reasons.join('; ') }, report };
}

function alreadyAnswered(): Failure {
  return new Failure('invalid_request', 'this request was answered already');
}

function ended(): Failure {
  return new Failure('gone', 'the request has ended');
}

function refusedResponse(): Failure {
  return new Failure('invalid_request', 'the response was not accepted');
}
