import { readFile } from 'node:fs/promises';
import { isJsonObject, type Json, type JsonObject } from '../../../domain/shared/json.ts';
import type { VaultClient } from './vault-client.ts';
import { VaultError } from './vault-error.ts';
import { mountPath, type VaultAuth } from './vault-settings.ts';

const MAX_FILE_BYTES = 64 * 1024;

export type Login = {
  readonly token: string;
  /** Infinite for a token that does not expire. */
  readonly ttlMs: number;
  readonly isRenewable: boolean;
};

/**
 * Logs in. A token from the configuration is looked up.
 * @throws VaultError without `status`, so that a rejected login is not taken for a rejected key; the reason of the signal.
 */
export async function logIn(client: VaultClient, auth: VaultAuth, signal: AbortSignal): Promise<Login> {
  try {
    if (auth.method === 'token') return await lookUpToken(client, auth.token, signal);
    const credentials = await credentialsOf(auth);
    const path = `auth/${mountPath(auth.mount)}/login`;
    const secrets = Object.values(credentials);
    return readLogin((await client.call({ method: 'POST', path, body: credentials, secrets, signal }))['auth']);
  } catch (error) {
    if (!(error instanceof VaultError) || error.status === undefined || error.status >= 500) throw error;
    throw new VaultError(`the login by ${auth.method} was rejected (${error.message}); ${remedy(auth)}`);
  }
}

/** Returns true if Vault accepts the token, whatever its permissions. */
export async function isAcceptedToken(client: VaultClient, token: string, signal: AbortSignal): Promise<boolean> {
  try {
    await lookUpToken(client, token, signal);
    return true;
  } catch (error) {
    if (error instanceof VaultError && error.status === 403) return false;
    throw error;
  }
}

/** @throws VaultError with the status of Vault's response if the token is not renewed. */
export async function renew(client: VaultClient, { token }: Login, signal: AbortSignal): Promise<Login> {
  const path = 'auth/token/renew-self';
  return readLogin((await client.call({ method: 'POST', path, body: {}, token, signal }))['auth']);
}

async function lookUpToken(client: VaultClient, token: string, signal: AbortSignal): Promise<Login> {
  const path = 'auth/token/lookup-self';
  const { data } = await client.call({ method: 'GET', path, token, signal });
  const { ttl, renewable } = isJsonObject(data) ? data : ({} as JsonObject);
  return { token, ttlMs: milliseconds(ttl), isRenewable: renewable === true };
}

function readLogin(auth: Json | undefined): Login {
  const { client_token: token, lease_duration: ttl, renewable } = isJsonObject(auth) ? auth : ({} as JsonObject);
  if (typeof token !== 'string' || token === '') throw new VaultError('its login response has no token');
  return { token, ttlMs: milliseconds(ttl), isRenewable: renewable === true };
}

function milliseconds(seconds: Json | undefined): number {
  return typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : Number.POSITIVE_INFINITY;
}

async function credentialsOf(auth: Exclude<VaultAuth, { method: 'token' }>): Promise<Readonly<Record<string, string>>> {
  if (auth.method === 'approle') return { role_id: auth.roleId, secret_id: auth.secretId };
  return { role: auth.role, jwt: await serviceAccount(auth.tokenFile) };
}

/** The file is read each time, because Kubernetes replaces it. */
async function serviceAccount(file: string): Promise<string> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new VaultError(`the token of the service account cannot be read from ${file} (${error.code})`);
  });
  if (bytes.length > MAX_FILE_BYTES) throw new VaultError(`${file} is not a service account token`);
  return bytes.toString('utf8').trim();
}

function remedy(auth: VaultAuth): string {
  if (auth.method === 'token') return 'set a new token; it must be allowed to look itself up, as by the policy "default"';
  const meant = auth.method === 'approle' ? '"roleId" and "secretId"' : '"role" and the service account';
  return `check ${meant}, and that ${auth.method} is enabled at "${auth.mount}"`;
}
