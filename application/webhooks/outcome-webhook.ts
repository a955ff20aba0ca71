import type { Delivery, Session } from '../../domain/sessions/session.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Who is told what became of a credential: the webhook of the offer, else that of the configuration. */
export async function webhookOfOutcome(
  configured: TenantConfiguration,
  { request }: Pick<Session, 'request'>,
  configurationId: string,
): Promise<WebhookConfig | undefined> {
  if (request?.kind === 'issuance' && request.notifyWebhook !== undefined) return request.notifyWebhook;
  const configuration = await configured.credentialConfiguration(configurationId);
  return configuration?.notificationWebhook ?? undefined;
}

/** Where a delivery went the first time; undefined when that is not configured any more, or nobody else can make it. */
export async function webhookOfDelivery(
  configured: TenantConfiguration,
  session: Pick<Session, 'request'>,
  { webhook, told }: Delivery,
): Promise<WebhookConfig | undefined> {
  const { request } = session;
  if (request?.kind === 'verification') return webhook === 'presentation' ? request.webhook : undefined;
  if (webhook !== 'notification' || request?.kind !== 'issuance') return undefined;
  const { credentialConfigurationId = '' } = (told?.['notification'] ?? {}) as { readonly credentialConfigurationId?: string };
  return webhookOfOutcome(configured, session, credentialConfigurationId);
}
