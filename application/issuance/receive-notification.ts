import { requestConsumption } from '../../domain/issuance/issuing.ts';
import { appendNotification, type Notification, parseNotification } from '../../domain/issuance/notification.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { withChallengeSchemes } from '../oauth/challenge-schemes.ts';
import { replayError } from '../oauth/oauth-callers.ts';
import { consumedByWallet, WalletAuthenticator } from '../oauth/wallet-authenticator.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { attempt } from '../transactions/attempt.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { createIntent, deliver, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfOutcome } from '../webhooks/outcome-webhook.ts';
import { tokenRevokedError, type WalletRequest } from './issue-credential.ts';

/** The notification endpoint (OpenID4VCI 1.0 section 11). */
export class ReceiveNotification extends needs({
  ...TRANSACTION_PORTS,
  walletAuthenticator: WalletAuthenticator,
  sessionNotes: SessionNotes,
  webhooks: Webhooks,
  random: Random,
  log: Log,
}) {
  /**
   * Idempotent for a repeated notification.
   * @throws Failure `invalid_notification_request`, `invalid_notification_id`, and the failures of authentication.
   */
  execute(tenantId: TenantId, request: WalletRequest): Promise<void> {
    return attempt(this.ports, tenantId, (transaction) =>
      withChallengeSchemes(transaction.tenant, () => this.#receive(transaction, request)),
    );
  }

  async #receive(transaction: TenantTransaction, request: WalletRequest): Promise<void> {
    const { tenant, now } = transaction;
    const wallet = await this.ports.walletAuthenticator.authenticate(tenant, request.wallet, {
      method: 'POST',
      url: `${tenant.issuer}/notification`,
      now,
    });
    const walletNotification = parseNotification(request.contentType, request.body);
    const { publicId, grantId } = wallet.token;
    await transaction.claim(requestConsumption(consumedByWallet(wallet), grantId), { unrevoked: tokenRevokedError, uses: replayError });
    const session = (await transaction.reads.sessionByPublicId(publicId))?.session;
    const { batches = [] } = (session && (await transaction.reads.issued(session.id))) ?? {};
    const batch = batches.find(({ id }) => id === walletNotification.id);
    if (session === undefined || batch === undefined) {
      throw new Failure('invalid_notification_id', 'no credential was issued with this notification_id');
    }
    const configurationId = batch.credentialConfigurationId;
    const notification = { ...walletNotification, credentialConfigurationId: configurationId, at: now.toISOString() };
    const webhook = await webhookOfOutcome(tenant, session, configurationId);
    await this.#note(tenant, session, notification, webhook);
  }

  /** Stores the intent to call the backend with the notification, and the outcome after the call. */
  async #note(
    tenant: TenantConfiguration,
    session: Session,
    notification: Notification,
    webhook: WebhookConfig | undefined,
  ): Promise<void> {
    const { sessionNotes } = this.ports;
    const { id, event, credentialConfigurationId, eventDescription } = notification;
    const body = { notification: { id, event, credentialConfigurationId, ...defined({ eventDescription }) } };
    const intent = createIntent(this.ports, 'notification', body);
    const notedSession = await sessionNotes.note(session, (outcome) => {
      const notifications = appendNotification(outcome?.notifications ?? [], notification);
      if (notifications === undefined) return undefined;
      const nextOutcome = { ...outcome, notifications };
      return webhook === undefined ? nextOutcome : withDelivery(nextOutcome, intent);
    });
    if (notedSession === undefined || webhook === undefined) return;
    // The wallet is not affected by a backend that fails.
    const context = { tenant, session };
    const { delivery } = await deliver(this.ports, webhook, intent, body, context);
    await sessionNotes.note(notedSession, (outcome) => withDelivery(outcome, delivery));
  }
}
