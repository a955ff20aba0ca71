import { createSecretKey } from 'node:crypto';
import { deriveKey } from '../../adapters/crypto/cipher.ts';
import type { ServiceSettings } from '../../application/ports/settings.ts';
import type { Settings } from '../../config/settings.ts';
import { currentRelease } from './release.ts';

/** The part of the configuration that use cases receive; every purpose has a key of its own. */
export function serviceSettings(settings: Settings): ServiceSettings {
  const [presentSecret = ''] = settings.MASTER_SECRET;
  const keys = (label: string) => settings.MASTER_SECRET.map((secret) => createSecretKey(deriveKey(secret, label)));
  return {
    publicUrl: settings.PUBLIC_URL,
    release: currentRelease(),
    sessionTtlSeconds: settings.SESSION_TTL,
    statusDefaults: { capacity: settings.STATUS_CAPACITY, bits: settings.STATUS_BITS, ttl: settings.STATUS_TTL },
    auditKeepDays: settings.AUDIT_KEEP_DAYS,
    consoleLogin:
      settings.OIDC === undefined || settings.OIDC_CONSOLE_CLIENT_ID === undefined
        ? undefined
        : { issuer: settings.OIDC, clientId: settings.OIDC_CONSOLE_CLIENT_ID },
    rootClient: { clientId: settings.AUTH_CLIENT_ID, secret: settings.AUTH_CLIENT_SECRET },
    nonceKeys: keys('vidimus/challenge'),
    refreshTokenKeys: keys('vidimus/refresh-token'),
    encryptionKeys: keys('vidimus/credential-encryption'),
    subjectKey: createSecretKey(deriveKey(presentSecret, 'vidimus/subject')),
    txCodeKeys: keys('vidimus/tx-code'),
  };
}
