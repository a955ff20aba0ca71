import type { GrantChange } from '../../domain/oauth/grant.ts';
import { type Delivery, OPEN_STATUSES, type Session, type SessionOutcome, statusAt } from '../../domain/sessions/session.ts';
import { failSession } from '../../domain/sessions/session-change.ts';
import type { PublicId } from '../../domain/shared/ids.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { createIntent, deliver, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfOutcome } from '../webhooks/outcome-webhook.ts';

/** Reasons for which an offer failed, for its operator. */
export const OFFER_FAILURES = {
  tx_code_attempts: 'the transaction code was wrong five times',
  refresh_token_replayed: 'a refresh token was replayed, so its tokens were revoked',
  code_replayed: 'the authorization code was replayed, so its tokens were revoked',
} as const;
type OfferFailureReason = keyof typeof OFFER_FAILURES;

/** Limit of retries after concurrent writes to the session. */
const MAX_ATTEMPTS = 10;

/** A pending call of a backend. */
type PendingNotification = { readonly webhook: WebhookConfig; readonly configurationId: string; readonly intent: Delivery };

/** True for a wallet-initiated session: no other wallet can use its offer. */
export function isWithoutOffer({ request }: Session): boolean {
  return request?.kind === 'issuance' && request.offerUrl === '';
}

/** Fails the sessions of offers after misuse of their codes or tokens. */
export class FailedOffers extends needs({
  ...TRANSACTION_PORTS,
  sessionNotes: SessionNotes,
  webhooks: Webhooks,
  random: Random,
  log: Log,
}) {
  /**
   * Applies the change of the grant and fails its session (unless that is over) in one commit, then notifies the backends.
   * @param canFail true if the session cannot produce anything any more.
   * @returns false if the grant was not as expected, so that it was not changed.
   */
  async fail(
    transaction: TenantTransaction,
    grant: GrantChange,
    publicId: PublicId,
    reason: OfferFailureReason,
    canFail: (session: Session) => boolean = () => true,
  ): Promise<boolean> {
    const { store, tenantConfigurations, clock } = this.ports;
    // Prevents a second attempt of the request.
    transaction.hasCommitted = true;
    for (let remainingAttempts = MAX_ATTEMPTS; remainingAttempts > 0; remainingAttempts--) {
      const session = (await transaction.reads.sessionByPublicId(publicId))?.session;
      const now = clock.now();
      const isOpen = session !== undefined && OPEN_STATUSES.includes(statusAt(session, now));
      if (!isOpen || !canFail(session)) break;
      const notifications = await this.#notificationsFor(transaction, session);
      const failure = { code: reason, message: OFFER_FAILURES[reason] };
      const intents = notifications.map(({ intent }) => intent);
      const outcome = withDeliveries({ ...session.outcome, failure }, intents);
      const change = { grant, session: failSession(session, outcome) };
      const committed = await store.commit(transaction.tenantId, change, now);
      if (committed.done) {
        tenantConfigurations.onCommitted(transaction.tenantId, change, committed);
        tenantConfigurations.sessionCache.forgetGrant(transaction.tenantId, grant.id);
        await this.#notify(transaction, { ...session, outcome, ...committed.session }, notifications, OFFER_FAILURES[reason]);
        return true;
      }
      if (committed.part !== 'session') return false;
    }
    const { done } = await store.commit(transaction.tenantId, { grant }, clock.now());
    tenantConfigurations.sessionCache.forgetGrant(transaction.tenantId, grant.id);
    return done;
  }

  /** The calls for each credential of the offer that has a webhook. */
  async #notificationsFor({ tenant }: TenantTransaction, session: Session): Promise<readonly PendingNotification[]> {
    const notifications = await Promise.all(
      session.configurationIds.map(async (configurationId) => {
        const webhook = await webhookOfOutcome(tenant, session, configurationId);
        if (webhook === undefined) return [];
        return [{ webhook, configurationId, intent: createIntent(this.ports, 'notification') }];
      }),
    );
    return notifications.flat();
  }

  async #notify(
    { tenant }: TenantTransaction,
    session: Session,
    notifications: readonly PendingNotification[],
    eventDescription: string,
  ): Promise<void> {
    const context = { tenant, session };
    const deliveries = await Promise.all(
      notifications.map(async ({ webhook, configurationId: credentialConfigurationId, intent }) => {
        // Nothing was issued, so there is no notification id: the delivery id takes its place.
        const { id } = intent;
        const notification = { id, event: 'credential_failure', credentialConfigurationId, eventDescription };
        return (await deliver(this.ports, webhook, intent, { notification }, context)).delivery;
      }),
    );
    if (deliveries.length === 0) return;
    await this.ports.sessionNotes.note(session, (outcome) => withDeliveries(outcome, deliveries));
  }
}

function withDeliveries(outcome: SessionOutcome | null, deliveries: readonly Delivery[]): SessionOutcome {
  return deliveries.reduce<SessionOutcome>((nextOutcome, delivery) => withDelivery(nextOutcome, delivery), outcome ?? {});
}
