import type { Session, WebhookConfigValue } from '../../domain/sessions/session.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';

/** Who is told what became of a credential: the webhook of the offer, else that of the configuration. */
export async function webhookOfOutcome(
  configured: TenantConfiguration,
  { request }: Pick<Session, 'request'>,
  configurationId: string,
): Promise<WebhookConfigValue | undefined> {
  if (request?.kind === 'issuance' && request.notifyWebhook !== undefined) return request.notifyWebhook;
  const configuration = await configured.credentialConfiguration(configurationId);
  return configuration?.notificationWebhook ?? undefined;
}
