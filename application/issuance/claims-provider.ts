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
import { beginCall, createIntent, withDelivery } from '../webhooks/deliveries.ts';
import { assertIssuable, claimsSourceOf, configuredSource, findClaimProblems, issuanceDeniedError } from './collect-claims.ts';

/** Claims to issue, or the interval after which the wallet may ask again. */
export type ProvidedClaims = { readonly claims: JsonObject } | { readonly intervalSeconds: number };

/** Collects the claims of a credential, and checks that they may be issued. */
export class ClaimsProvider extends needs({
  store: Store,
  sessionNotes: SessionNotes,
  webhooks: Webhooks,
  schemaValidator: SchemaValidator,
  clock: Clock,
  random: Random,
  log: Log,
}) {
  /** Inline claims that may be issued; undefined otherwise, and `provide` then reports the problem. */
  async inlineClaims(
    tenant: TenantConfiguration,
    session: Session,
    configuration: CredentialConfiguration,
  ): Promise<JsonObject | undefined> {
    const source = sourceOf(session, configuration);
    if (source === undefined) return undefined;
    if (source.type !== 'inline') return undefined;
    const { claims } = source;
    const faults = await findClaimProblems(this.ports, { tenant, configuration, claims });
    return faults.length === 0 ? claims : undefined;
  }

  /** @throws Failure `credential_request_denied` after the session was failed with a reason for the operator. */
  async provide(
    tenant: TenantConfiguration,
    session: Session,
    configuration: CredentialConfiguration,
    token: WalletTokenClaims,
  ): Promise<ProvidedClaims> {
    const source = sourceOf(session, configuration);
    if (source === undefined) throw issuanceDeniedError('the session no longer contains an offer');
    if (source.type === 'webhook') return this.#fromWebhook(tenant, session, configuration, source.webhook, token);
    const { claims } = source;
    try {
      await assertIssuable(this.ports, { tenant, configuration, claims });
    } catch (error) {
      await this.#record(session, 'fail', undefined, reasonOf(error));
      throw error;
    }
    return { claims };
  }

  /** Makes one attempt: the intent is stored before the call, the outcome after it. */
  async #fromWebhook(
    tenant: TenantConfiguration,
    session: Session,
    configuration: CredentialConfiguration,
    webhook: WebhookConfig,
    token: WalletTokenClaims,
  ): Promise<ProvidedClaims> {
    const { store, webhooks } = this.ports;
    const delivery = createIntent(this.ports, 'claims');
    const user = await userOf(store, tenant.tenantId, token);
    const secret = await tenant.webhookSecret();
    const pending = await this.#record(session, undefined, delivery);
    const body = {
      ...sessionFields(session),
      credential_configuration_id: configuration.id,
      identity: user.identity ?? {},
      credentials: user.presented,
    };
    const endCall = beginCall();
    let callResult: ReturnType<typeof endCall> | undefined;
    try {
      const answer = await webhooks.post(webhook, body, { deliveryId: delivery.id, tenantId: tenant.tenantId, secret });
      callResult = endCall(answer.status);
      const provided = parseAnswer(answer.body, configuration.id);
      if ('claims' in provided) await assertIssuable(this.ports, { tenant, configuration, ...provided });
      await this.#record(pending, undefined, { ...delivery, result: 'delivered', ...callResult });
      return provided;
    } catch (error) {
      const reason = reasonOf(error);
      if (error instanceof WebhookError) this.#warn(session, delivery, error);
      callResult ??= endCall(error instanceof WebhookError ? error.status : undefined);
      await this.#record(pending, 'fail', { ...delivery, result: 'failed', detail: reason, ...callResult }, reason);
      if (error instanceof Failure) throw error;
      throw issuanceDeniedError(reason, error instanceof WebhookError ? reason : 'the claims could not be fetched');
    }
  }

  #warn({ tenantId, id }: Session, delivery: Delivery, { reason }: WebhookError): void {
    this.ports.log.warn('claims webhook failed', { tenantId, sessionId: id, delivery: delivery.id, reason });
  }

  /** @throws Failure `credential_request_denied` when the session ended meanwhile. */
  async #record(session: Session, event: 'fail' | undefined, delivery?: Delivery, failure?: string): Promise<Session> {
    const notedSession = await this.ports.sessionNotes.note(session, (outcome) => withDelivery(outcome, delivery, failure), event);
    if (notedSession === undefined) throw issuanceDeniedError('the session ended while its claims were fetched');
    return notedSession;
  }
}

/** After an offer was removed only credentials can be refreshed whose claims did not come from it. */
function sourceOf({ request }: Session, configuration: CredentialConfiguration): ClaimsSource | undefined {
  if (request === null) return configuredSource(configuration);
  return request.kind === 'issuance' ? claimsSourceOf(request, configuration) : undefined;
}

const MAX_INTERVAL_SECONDS = 86_400;

/** Parses the answer: an object keyed by configuration id, or a deferral. */
function parseAnswer(answer: Json | undefined, configurationId: string): ProvidedClaims {
  if (!isJsonObject(answer)) throw issuanceDeniedError('the claims webhook did not answer with an object');
  if (answer['deferred'] === true) return { intervalSeconds: parseInterval(answer['interval']) };
  const claims = Object.hasOwn(answer, configurationId) ? answer[configurationId] : undefined;
  if (!isJsonObject(claims)) throw issuanceDeniedError(`the claims webhook has no object for ${configurationId}`);
  return { claims };
}

/** OpenID4VCI 1.0 section 8.3: a positive number of seconds. */
function parseInterval(interval: Json | undefined): number {
  if (interval === undefined || interval === null) return DEFAULT_INTERVAL_SECONDS;
  const isUsable = typeof interval === 'number' && interval >= 1 && interval <= MAX_INTERVAL_SECONDS;
  if (!isUsable) throw issuanceDeniedError(`the interval of a deferral is a number from 1 to ${MAX_INTERVAL_SECONDS}`);
  return Math.ceil(interval);
}

function reasonOf(error: unknown): string {
  if (error instanceof WebhookError) return `claims webhook: ${error.message}`;
  const cause = error instanceof Failure ? error.cause : error;
  const exact = cause instanceof OperatorReason ? cause.cause : cause;
  return exact instanceof Error ? exact.message : 'unknown reason';
}

type User = {
  /** Absent for a pre-authorized code, where no user is authenticated. */
  readonly identity?: Identity;
  readonly presented: readonly JsonObject[];
};

/** The user of an access token, for the claims webhook. */
async function userOf(store: Store, tenantId: TenantId, token: WalletTokenClaims): Promise<User> {
  if (token.foreignClaims !== undefined) {
    const { issuer: iss, subject: sub, foreignClaims } = token;
    return { identity: { iss, sub, token_claims: foreignClaims }, presented: [] };
  }
  const storedGrant = token.grantId === undefined ? undefined : await store.read(tenantId).grant(token.grantId);
  const authorization = storedGrant?.grant?.authorization ?? null;
  if (authorization === null) return { presented: [] };
  // The status of the wallet would identify it, and does not concern the backend.
  const { walletStatuses: _statuses, ...tokenClaims } = token;
  const tokenIdentity = { iss: token.issuer, sub: token.subject, token_claims: accessTokenPayload(tokenClaims) };
  return { identity: authorization.identity ?? tokenIdentity, presented: authorization.presented ?? [] };
}
