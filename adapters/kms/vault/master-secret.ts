import { isJsonObject } from '../../../domain/shared/json.ts';
import { isMissingPlace, VaultError } from './vault-error.ts';
import { VaultSession } from './vault-session.ts';
import { mountPath, type VaultSettings } from './vault-settings.ts';

/** Input of the derivation. It must never change: everything that is sealed would be lost. */
const TEXT = Buffer.from('vidimus/master-secret').toString('base64');
const SECRET_BYTES = 64;
const KEY_NAME = /^\w(?:[\w.-]{0,126}\w)?$/;
const MAC = /^vault:v(?<version>\d+):(?<code>[A-Za-z0-9+/]+={0,2})$/;

/**
 * Master secret under which the service seals, derived by Transit (HMAC-SHA-512 of a fixed text), so that it is stored nowhere. The version
 * of the key is part of the request, so a rotation inside Vault changes nothing.
 * @returns 64 bytes in base64url. @throws Error that tells the operator what to do.
 */
export async function masterSecretFrom(settings: VaultSettings, key: string, version: number): Promise<string> {
  if (!KEY_NAME.test(key)) throw new Error('MASTER_SECRET: a key in Vault has letters, digits, "_", "-" and "."');
  const { address, timeoutSeconds } = settings;
  const mount = mountPath(settings.mount);
  const path = `${mount}/hmac/${key}/sha2-512`;
  const signal = AbortSignal.timeout(timeoutSeconds * 1000);
  const session = new VaultSession(settings, async () => {});
  try {
    const body = { input: TEXT, key_version: version };
    return readSecret(await session.call({ method: 'POST', path, body, signal }), version);
  } catch (error) {
    const reason = signal.aborted ? `no answer within ${timeoutSeconds} s` : (error as Error).message;
    throw new Error(`MASTER_SECRET: Vault at ${address}: ${reason}${remedy(error, mount, key)}`);
  } finally {
    await session.close();
  }
}

function readSecret({ data }: Awaited<ReturnType<VaultSession['call']>>, version: number): string {
  const hmac = isJsonObject(data) ? data['hmac'] : undefined;
  const { version: used, code = '' } = (typeof hmac === 'string' && MAC.exec(hmac)?.groups) || {};
  const secret = Buffer.from(code, 'base64');
  if (used !== String(version)) throw new VaultError(`it did not answer with version ${version} of the key`);
  if (secret.length !== SECRET_BYTES) throw new VaultError('its answer does not have 64 bytes');
  return secret.toString('base64url');
}

function remedy(error: unknown, mount: string, key: string): string {
  if (!(error instanceof VaultError) || isMissingPlace(error)) return '';
  if (error.status === 403) return `; its policy must allow "update" on ${mount}/hmac/${key}/sha2-512`;
  if (error.status !== 400 && error.status !== 404) return '';
  if (/version/.test(error.text)) return '; check the version of the key in MASTER_SECRET';
  return `; create the key with \`bao write -f ${mount}/keys/${key}\`, unless another key sealed the existing data`;
}
