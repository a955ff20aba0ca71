import type { Delivery, Session } from '../../domain/sessions/session.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** The webhook for events of a credential: that of the offer, otherwise that of the configuration. */
export async function webhookOfOutcome(
  tenant: TenantConfiguration,
  { request }: Pick<Session, 'request'>,
  configurationId: string,
): Promise<WebhookConfig | undefined> {
  if (request?.kind === 'issuance' && request.notifyWebhook !== undefined) return request.notifyWebhook;
  const configuration = await tenant.credentialConfiguration(configurationId);
  return configuration?.notificationWebhook ?? undefined;
}

/** The webhook for a retried delivery; undefined when it is not configured any more, or the delivery cannot be retried. */
export async function webhookOfDelivery(
  tenant: TenantConfiguration,
  session: Pick<Session, 'request'>,
  { webhook, told: content }: Delivery,
): Promise<WebhookConfig | undefined> {
  const { request } = session;
  if (request?.kind === 'verification') return webhook === 'presentation' ? request.webhook : undefined;
  if (webhook !== 'notification' || request?.kind !== 'issuance') return undefined;
  const { credentialConfigurationId = '' } = (content?.['notification'] ?? {}) as { readonly credentialConfigurationId?: string };
  return webhookOfOutcome(tenant, session, credentialConfigurationId);
}
