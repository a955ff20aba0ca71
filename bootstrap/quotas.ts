import type { Settings } from '../config/settings.ts';
import type { Quotas } from '../domain/tenants/quotas.ts';

export function quotasOf(settings: Settings): Quotas {
  return {
    'credential-configuration': settings.QUOTA_CREDENTIAL_CONFIGS,
    'presentation-configuration': settings.QUOTA_PRESENTATION_CONFIGS,
    'key-chain': settings.QUOTA_KEY_CHAINS,
    client: settings.QUOTA_CLIENTS,
    bytes: settings.QUOTA_CONFIG_BYTES,
    sessionBytes: settings.QUOTA_SESSION_BYTES,
  };
}
