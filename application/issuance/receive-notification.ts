import { spent } from '../../domain/issuance/issuing.ts';
import { type Notification, noteNotification, parseNotification } from '../../domain/issuance/notification.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { replayed } from '../oauth/oauth-callers.ts';
import { usedByWallet, WalletAuthenticator } from '../oauth/wallet-authenticator.ts';
import { namingSchemes } from '../oauth/wallet-challenges.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { attempt } from '../transactions/attempt.ts';
import { type Known, WORLD } from '../transactions/known.ts';
import { deliver, intend, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfOutcome } from '../webhooks/outcome-webhook.ts';
import { revoked, type WalletRequest } from './issue-credential.ts';

/** The notification endpoint (OpenID4VCI 1.0 section 11): what became of a credential in the wallet. */
export class ReceiveNotification extends needs({
  ...WORLD,
  walletAuthenticator: WalletAuthenticator,
  sessionNotes: SessionNotes,
  webhooks: Webhooks,
  random: Random,
  log: Log,
}) {
  /**
   * Sent twice, it has the same effect as once.
   * @throws Failure `invalid_notification_request`, `invalid_notification_id`, and what authentication throws.
   */
  execute(tenantId: TenantId, request: WalletRequest): Promise<void> {
    return attempt(this.ports, tenantId, (known) => namingSchemes(known.configured, () => this.#receive(known, request)));
  }

  async #receive(known: Known, request: WalletRequest): Promise<void> {
    const { configured, now } = known;
    const wallet = await this.ports.walletAuthenticator.authenticate(configured, request.wallet, {
      method: 'POST',
      url: `${configured.issuer}/notification`,
      now,
    });
    const told = parseNotification(request.contentType, request.body);
    const { publicId, grantId } = wallet.token;
    await known.claim(spent(usedByWallet(wallet), grantId), { unrevoked: revoked, uses: replayed });
    const session = (await known.reads.sessionByPublicId(publicId))?.session;
    const { batches = [] } = (session && (await known.reads.issued(session.id))) ?? {};
    const batch = batches.find(({ id }) => id === told.id);
    if (session === undefined || batch === undefined) {
      throw new Failure('invalid_notification_id', 'no credential was handed out under this id');
    }
    const configurationId = batch.credentialConfigurationId;
    const notification = { ...told, credentialConfigurationId: configurationId, at: now.toISOString() };
    const webhook = await webhookOfOutcome(configured, session, configurationId);
    await this.#note(configured, session, notification, webhook);
  }

  /** The intent to call the backend is stored with the notification, the outcome after the call. */
  async #note(
    configured: TenantConfiguration,
    session: Session,
    notification: Notification,
    webhook: WebhookConfig | undefined,
  ): Promise<void> {
    const { sessionNotes } = this.ports;
    const { id, event, credentialConfigurationId, eventDescription } = notification;
    const told = { notification: { id, event, credentialConfigurationId, ...defined({ eventDescription }) } };
    const intent = intend(this.ports, 'notification', told);
    const noted = await sessionNotes.note(session, (outcome) => {
      const notifications = noteNotification(outcome?.notifications ?? [], notification);
      if (notifications === undefined) return undefined;
      const next = { ...outcome, notifications };
      return webhook === undefined ? next : withDelivery(next, intent);
    });
    if (noted === undefined || webhook === undefined) return;
    // The wallet did its part, so it hears nothing of a backend that fails.
    const about = { configured, session };
    const { delivery } = await deliver(this.ports, webhook, intent, told, about);
    await sessionNotes.note(noted, (outcome) => withDelivery(outcome, delivery));
  }
}
