import { type Notification, noteNotification, readNotification } from '../../domain/issuance/notification.ts';
import type { Delivery, Session, WebhookConfigValue } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { replayed } from '../oauth/oauth-callers.ts';
import { usedByWallet, type WalletAuthenticator } from '../oauth/wallet-authenticator.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { WebhookError, type Webhooks } from '../ports/webhooks.ts';
import type { SessionNotes } from '../sessions/session-notes.ts';
import type { TenantConfiguration, TenantConfigurations } from '../tenant-configuration.ts';
import { withDelivery } from '../webhooks/deliveries.ts';
import { revoked, type WalletRequest } from './issue-credential.ts';

type Ports = {
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly walletAuthenticator: WalletAuthenticator;
  readonly sessionNotes: SessionNotes;
  readonly webhooks: Webhooks;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly settings: ServiceSettings;
};

/** The notification endpoint (OpenID4VCI 1.0 section 11): what became of a credential in the wallet. */
export class ReceiveNotification {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * Sent twice, it has the same effect as once.
   * @throws Failure `invalid_notification_request`, `invalid_notification_id`, and what authentication throws.
   */
  async execute(tenantId: TenantId, request: WalletRequest): Promise<void> {
    const { store, tenantConfigurations, walletAuthenticator, clock, settings } = this.#ports;
    const now = clock.now();
    const beats = store.beats(tenantId);
    const configured = tenantConfigurations.ofWallet(await beats.head());
    const wallet = await walletAuthenticator.authenticate(configured, request.wallet, {
      method: 'POST',
      url: `${issuerIdentifier(settings, tenantId)}/notification`,
      now,
    });
    const told = readNotification(request.contentType, request.body);
    const { publicId, grantId } = wallet.token;
    const claimed = await beats.claimCredentialRequest(publicId, usedByWallet(wallet), grantId);
    if (claimed?.replayed !== undefined) throw replayed(claimed.replayed);
    if (claimed?.revoked === true) throw revoked();
    const session = claimed?.session;
    const batches = session === undefined ? [] : await beats.issuedBatches(session.id);
    const batch = batches.find(({ id }) => id === told.id);
    if (session === undefined || batch === undefined) {
      throw new Failure('invalid_notification_id', 'no credential was handed out under this id');
    }
    const configurationId = batch.credentialConfigurationId;
    const notification = { ...told, credentialConfigurationId: configurationId, at: now.toISOString() };
    await this.#note(
      configured,
      session,
      notification,
      await webhookOf(configured, session, configurationId),
    );
  }

  /** The intent to call the backend is stored with the notification, the outcome after the call. */
  async #note(
    configured: TenantConfiguration,
    session: Session,
    notification: Notification,
    webhook: WebhookConfigValue | undefined,
  ): Promise<void> {
    const { sessionNotes, clock, random } = this.#ports;
    const delivery: Delivery = {
      id: random.token(),
      webhook: 'notification',
      at: clock.now().toISOString(),
      result: 'pending',
    };
    const noted = await sessionNotes.note(session, (outcome) => {
      const notifications = noteNotification(outcome?.notifications ?? [], notification);
      if (notifications === undefined) return undefined;
      const next = { ...outcome, notifications };
      return webhook === undefined ? next : withDelivery(next, delivery);
    });
    if (noted === undefined || webhook === undefined) return;
    const result = await this.#call(configured, session, notification, webhook as WebhookConfig, delivery);
    await sessionNotes.note(noted, (outcome) => withDelivery(outcome, result));
  }

  /** The wallet did its part, so it hears nothing of a backend that fails. */
  async #call(
    { tenantId }: TenantConfiguration,
    session: Session,
    { id, event, credentialConfigurationId, eventDescription }: Notification,
    webhook: WebhookConfig,
    delivery: Delivery,
  ): Promise<Delivery> {
    const { webhooks, log } = this.#ports;
    const body = {
      session: session.id,
      notification: {
        id,
        event,
        credentialConfigurationId,
        ...(eventDescription === undefined ? {} : { eventDescription }),
      },
    };
    try {
      await webhooks.post(webhook, body, { deliveryId: delivery.id });
      return { ...delivery, result: 'delivered' };
    } catch (error) {
      if (!(error instanceof WebhookError)) throw error;
      const { reason } = error;
      log.warn('notification webhook failed', {
        tenantId,
        session: session.id,
        delivery: delivery.id,
        reason,
      });
      return { ...delivery, result: 'failed', detail: error.message };
    }
  }
}

/** The webhook of the offer, else that of the configuration. */
async function webhookOf(
  configured: TenantConfiguration,
  { request }: Session,
  configurationId: string,
): Promise<WebhookConfigValue | undefined> {
  if (request?.kind === 'issuance' && request.notifyWebhook !== undefined) return request.notifyWebhook;
  const configuration = await configured.credentialConfiguration(configurationId);
  return (configuration?.notificationWebhook ?? undefined) as WebhookConfigValue | undefined;
}
