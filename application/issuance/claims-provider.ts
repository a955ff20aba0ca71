import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { DEFAULT_INTERVAL_SECONDS } from '../../domain/issuance/deferred.ts';
import { accessTokenPayload, type WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { Identity } from '../../domain/oauth/grant.ts';
import type { ClaimsSource, Delivery, Session } from '../../domain/sessions/session.ts';
import { sessionFields } from '../../domain/sessions/session-fields.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { isJsonObject, type Json, type JsonObject } from '../../domain/shared/json.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { SchemaValidator } from '../ports/schema-validator.ts';
import { Store } from '../ports/store.ts';
import { WebhookError, Webhooks } from '../ports/webhooks.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { beginCall, intend, withDelivery } from '../webhooks/deliveries.ts';
import { assertIssuable, claimsSource, denied, findClaimProblems, ownSource } from './collect-claims.ts';

/** Claims to issue, or how long the wallet shall wait before it asks again. */
export type Provided = { readonly claims: JsonObject } | { readonly intervalSeconds: number };

/** Gets the claims of a credential from where they are, and makes sure that they may be issued. */
export class ClaimsProvider extends needs({
  store: Store,
  sessionNotes: SessionNotes,
  webhooks: Webhooks,
  schemaValidator: SchemaValidator,
  clock: Clock,
  random: Random,
  log: Log,
}) {
  /** Claims that need no backend and may be issued; undefined otherwise, and then `provide` finds out what is wrong. */
  async atHand(configured: TenantConfiguration, session: Session, configuration: CredentialConfiguration): Promise<JsonObject | undefined> {
    const source = sourceOf(session, configuration);
    if (source === undefined) return undefined;
    if (source.type !== 'inline') return undefined;
    const { claims } = source;
    const faults = await findClaimProblems(this.ports, { configured, configuration, claims });
    return faults.length === 0 ? claims : undefined;
  }

  /** @throws Failure `credential_request_denied`; the session is failed then, with a reason for the operator. */
  async provide(
    configured: TenantConfiguration,
    session: Session,
    configuration: CredentialConfiguration,
    token: WalletTokenClaims,
  ): Promise<Provided> {
    const source = sourceOf(session, configuration);
    if (source === undefined) throw denied('the session holds no offer any more');
    if (source.type === 'webhook') return this.#fromWebhook(configured, session, configuration, source.webhook, token);
    const { claims } = source;
    try {
      await assertIssuable(this.ports, { configured, configuration, claims });
    } catch (error) {
      await this.#record(session, 'fail', undefined, reasonOf(error));
      throw error;
    }
    return { claims };
  }

  /** One attempt: the intent is stored before the call, the outcome after it. */
  async #fromWebhook(
    configured: TenantConfiguration,
    session: Session,
    configuration: CredentialConfiguration,
    webhook: WebhookConfig,
    token: WalletTokenClaims,
  ): Promise<Provided> {
    const { store, webhooks } = this.ports;
    const delivery = intend(this.ports, 'claims');
    const user = await userOf(store, configured.tenantId, token);
    const secret = await configured.webhookSecret();
    const pending = await this.#record(session, undefined, delivery);
    const body = {
      ...sessionFields(session),
      credential_configuration_id: configuration.id,
      identity: user.identity ?? {},
      credentials: user.presented,
    };
    const ended = beginCall();
    let made: ReturnType<typeof ended> | undefined;
    try {
      const answer = await webhooks.post(webhook, body, { deliveryId: delivery.id, tenantId: configured.tenantId, secret });
      made = ended(answer.status);
      const provided = parseAnswer(answer.body, configuration.id);
      if ('claims' in provided) await assertIssuable(this.ports, { configured, configuration, ...provided });
      await this.#record(pending, undefined, { ...delivery, result: 'delivered', ...made });
      return provided;
    } catch (error) {
      const reason = reasonOf(error);
      if (error instanceof WebhookError) this.#warn(session, delivery, error);
      made ??= ended(error instanceof WebhookError ? error.status : undefined);
      await this.#record(pending, 'fail', { ...delivery, result: 'failed', detail: reason, ...made }, reason);
      if (error instanceof Failure) throw error;
      throw denied(reason, error instanceof WebhookError ? reason : 'the claims could not be fetched');
    }
  }

  #warn({ tenantId, id }: Session, delivery: Delivery, { reason }: WebhookError): void {
    this.ports.log.warn('claims webhook failed', { tenantId, sessionId: id, delivery: delivery.id, reason });
  }

  /** @throws Failure `credential_request_denied` when the session ended meanwhile. */
  async #record(session: Session, event: 'fail' | undefined, delivery?: Delivery, failure?: string): Promise<Session> {
    const noted = await this.ports.sessionNotes.note(session, (outcome) => withDelivery(outcome, delivery, failure), event);
    if (noted === undefined) throw denied('the session ended while its claims were fetched');
    return noted;
  }
}

/** Of an offer that was removed only that is renewed whose claims it did not bring. */
function sourceOf({ request }: Session, configuration: CredentialConfiguration): ClaimsSource | undefined {
  if (request === null) return ownSource(configuration);
  return request.kind === 'issuance' ? claimsSource(request, configuration) : undefined;
}

const MAX_INTERVAL_SECONDS = 86_400;

/** The backend answers with an object keyed by configuration id, or that it cannot say yet. */
function parseAnswer(answer: Json | undefined, configurationId: string): Provided {
  if (!isJsonObject(answer)) throw denied('the claims webhook did not answer with an object');
  if (answer['deferred'] === true) return { intervalSeconds: parseInterval(answer['interval']) };
  const claims = Object.hasOwn(answer, configurationId) ? answer[configurationId] : undefined;
  if (!isJsonObject(claims)) throw denied(`the claims webhook has no object for ${configurationId}`);
  return { claims };
}

/** OpenID4VCI 1.0 section 8.3: a positive number of seconds. */
function parseInterval(interval: Json | undefined): number {
  if (interval === undefined || interval === null) return DEFAULT_INTERVAL_SECONDS;
  const isUsable = typeof interval === 'number' && interval >= 1 && interval <= MAX_INTERVAL_SECONDS;
  if (!isUsable) throw denied(`the interval of a deferral is a number from 1 to ${MAX_INTERVAL_SECONDS}`);
  return Math.ceil(interval);
}

function reasonOf(error: unknown): string {
  if (error instanceof WebhookError) return `claims webhook: ${error.message}`;
  const cause = error instanceof Failure ? error.cause : error;
  const exact = cause instanceof OperatorReason ? cause.cause : cause;
  return exact instanceof Error ? exact.message : 'unknown reason';
}

type User = {
  /** Absent where nobody was asked: a pre-authorized code is all that the issuer knows. */
  readonly identity?: Identity;
  /** What was presented in an interactive authorization. */
  readonly presented: readonly JsonObject[];
};

/** Who stands behind an access token, for the claims webhook. */
async function userOf(store: Store, tenantId: TenantId, token: WalletTokenClaims): Promise<User> {
  if (token.foreignClaims !== undefined) {
    const { issuer: iss, subject: sub, foreignClaims } = token;
    return { identity: { iss, sub, token_claims: foreignClaims }, presented: [] };
  }
  const found = token.grantId === undefined ? undefined : await store.read(tenantId).grant(token.grantId);
  const authorization = found?.grant?.authorization ?? null;
  if (authorization === null) return { presented: [] };
  // Where a wallet would be revoked tells it apart from all others, and is nothing for a backend.
  const { walletStatuses: _statuses, ...told } = token;
  const own = { iss: token.issuer, sub: token.subject, token_claims: accessTokenPayload(told) };
  return { identity: authorization.identity ?? own, presented: authorization.presented ?? [] };
}
