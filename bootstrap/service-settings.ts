import { createSecretKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { deriveKey } from '../adapters/crypto/cipher.ts';
import type { ServiceSettings } from '../application/ports/settings.ts';
import type { Settings } from '../config/settings.ts';

/** The slice of the configuration that use cases see; every purpose has a key of its own. */
export function serviceSettings(settings: Settings): ServiceSettings {
  const [first = ''] = settings.MASTER_SECRET;
  const keys = (label: string) =>
    settings.MASTER_SECRET.map((secret) => createSecretKey(deriveKey(secret, label)));
  return {
    publicUrl: settings.PUBLIC_URL,
    version: packageVersion(),
    sessionTtlSeconds: settings.SESSION_TTL,
    statusDefaults: {
      capacity: settings.STATUS_CAPACITY,
      bits: settings.STATUS_BITS,
      ttl: settings.STATUS_TTL,
    },
    auditKeepDays: settings.AUDIT_KEEP_DAYS,
    consoleLogin:
      settings.OIDC === undefined || settings.OIDC_CONSOLE_CLIENT_ID === undefined
        ? undefined
        : { issuer: settings.OIDC, clientId: settings.OIDC_CONSOLE_CLIENT_ID },
    rootClient: { clientId: settings.AUTH_CLIENT_ID, secret: settings.AUTH_CLIENT_SECRET },
    nonceKeys: keys('vidimus/challenge'),
    refreshTokenKeys: keys('vidimus/refresh-token'),
    encryptionKeys: keys('vidimus/credential-encryption'),
    subjectKey: createSecretKey(deriveKey(first, 'vidimus/subject')),
    txCodeKeys: keys('vidimus/tx-code'),
  };
}

/** Built code lies one folder deeper than its sources. */
export function packageVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as {
        version: string;
      };
      return version;
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}
