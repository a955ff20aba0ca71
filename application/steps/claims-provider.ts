import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import {
  type Delivery,
  type Session,
  type SessionOutcome,
  transition,
} from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../../domain/shared/json.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Random } from '../ports/random.ts';
import type { SchemaValidator } from '../ports/schema-validator.ts';
import type { Store } from '../ports/store.ts';
import { WebhookError, type Webhooks } from '../ports/webhooks.ts';
import { assertIssuable, claimsFaults, claimsSource, denied, hasFreeNames } from './collect-claims.ts';
import type { TenantView } from './tenant-views.ts';

type Ports = {
  readonly store: Store;
  readonly webhooks: Webhooks;
  readonly schemaValidator: SchemaValidator;
  readonly eventBus: EventBus;
  readonly clock: Clock;
  readonly random: Random;
};

/** Claims to issue, or how long the wallet shall wait before it asks again. */
export type Provided = { readonly claims: JsonObject } | { readonly intervalSeconds: number };

/** Gets the claims of a credential from where they are, and makes sure that they may be issued. */
export class ClaimsProvider {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** Claims that need no backend and may be issued; undefined otherwise, and then `provide` finds out what is wrong. */
  atHand(view: TenantView, session: Session, configuration: CredentialConfiguration): JsonObject | undefined {
    if (session.request?.kind !== 'issuance') return undefined;
    const source = claimsSource(session.request, configuration);
    if (source.type !== 'inline') return undefined;
    const faults = claimsFaults(this.#ports.schemaValidator, view, configuration, source.claims);
    return faults.length === 0 && hasFreeNames(source.claims) ? source.claims : undefined;
  }

  /** @throws Failure `credential_request_denied`; the session is failed then, with a reason for the operator. */
  async provide(
    view: TenantView,
    session: Session,
    configuration: CredentialConfiguration,
    _token: WalletTokenClaims,
  ): Promise<Provided> {
    if (session.request?.kind !== 'issuance') throw denied('the session holds no offer any more');
    const source = claimsSource(session.request, configuration);
    if (source.type === 'webhook') {
      const claims = await this.#fromWebhook(view, session, configuration, source.webhook as WebhookConfig);
      return { claims };
    }
    try {
      assertIssuable(this.#ports.schemaValidator, view, configuration, source.claims);
    } catch (error) {
      await this.#record(session, 'fail', undefined, reasonOf(error));
      throw error;
    }
    return { claims: source.claims };
  }

  /** One attempt: the intent is stored before the call, the outcome after it. */
  async #fromWebhook(
    view: TenantView,
    session: Session,
    configuration: CredentialConfiguration,
    webhook: WebhookConfig,
  ): Promise<JsonObject> {
    const { webhooks, clock, random, schemaValidator } = this.#ports;
    const delivery: Delivery = {
      id: random.token(),
      webhook: 'claims',
      at: clock.now().toISOString(),
      result: 'pending',
    };
    const pending = await this.#record(session, undefined, delivery);
    const body = {
      session: session.id,
      credential_configuration_id: configuration.id,
      identity: {},
      credentials: [],
    };
    try {
      const answer = await webhooks.post(webhook, body, { deliveryId: delivery.id });
      const claims = claimsOf(answer.body, configuration.id);
      assertIssuable(schemaValidator, view, configuration, claims);
      await this.#record(pending, undefined, { ...delivery, result: 'delivered' });
      return claims;
    } catch (error) {
      const reason = reasonOf(error);
      await this.#record(pending, 'fail', { ...delivery, result: 'failed', detail: reason }, reason);
      throw error instanceof Failure ? error : denied(reason);
    }
  }

  /**
   * Writes one delivery and, with a failure, the end of the session. A completed session keeps its status. Requests
   * for other credentials of the same session may write in between: then it is read again.
   * @throws Failure `credential_request_denied` when the session ended meanwhile.
   */
  async #record(
    session: Session,
    event: 'fail' | undefined,
    delivery?: Delivery,
    failure?: string,
  ): Promise<Session> {
    const { store, clock, eventBus } = this.#ports;
    const beats = store.beats(session.tenantId);
    let current: Session | undefined = session;
    for (let attempt = 0; attempt < MAX_ATTEMPTS && current !== undefined; attempt++) {
      const outcome = withDelivery(current.outcome, delivery, failure);
      const possible =
        event !== undefined && transition(event).from.includes(current.status) ? event : undefined;
      const version = await beats.recordOutcome(current, possible, outcome, clock.now());
      if (version !== undefined) {
        if (possible !== undefined) {
          eventBus.publish({ type: 'session', tenantId: session.tenantId, sessionId: session.id });
        }
        return { ...current, outcome, version };
      }
      current = await beats.findSession(session.id);
      if (current?.status === 'failed' || current?.status === 'expired') break;
    }
    throw denied('the session ended while its claims were fetched');
  }
}

const MAX_ATTEMPTS = 20;
/** Deliveries that a session remembers. */
const MAX_DELIVERIES = 50;

function withDelivery(outcome: SessionOutcome | null, delivery?: Delivery, failure?: string): SessionOutcome {
  const others = (outcome?.deliveries ?? []).filter((entry) => entry.id !== delivery?.id);
  return {
    ...outcome,
    ...(delivery === undefined ? {} : { deliveries: [...others, delivery].slice(-MAX_DELIVERIES) }),
    ...(failure === undefined ? {} : { failure: { code: 'claims_unavailable', message: failure } }),
  };
}

/** The backend answers with an object keyed by configuration id. */
function claimsOf(answer: Json | undefined, configurationId: string): JsonObject {
  if (!isJsonObject(answer)) throw denied('the claims webhook did not answer with an object');
  if (answer['deferred'] === true)
    throw denied('the claims webhook deferred, which this release does not support');
  const claims = Object.hasOwn(answer, configurationId) ? answer[configurationId] : undefined;
  if (!isJsonObject(claims)) throw denied(`the claims webhook has no object for ${configurationId}`);
  return claims;
}

function reasonOf(error: unknown): string {
  if (error instanceof WebhookError) return `claims webhook: ${error.message}`;
  const cause = error instanceof Failure ? error.cause : error;
  return cause instanceof Error ? cause.message : 'unknown reason';
}
