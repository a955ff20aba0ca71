import { inflateSync } from 'node:zlib';
import { decode } from './present.ts';
import { keyProof, newKey, RawWallet } from './raw-wallet.ts';
import { type Answer, type Callable, createTenant } from './test-service.ts';

export const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
  statusManagement: true,
};

type Tenant = { readonly id: string; readonly token: string };
export type StatusEntry = { readonly uri: string; readonly listId: string; readonly idx: number };

/** Creates a tenant that issues revocable credentials in batches. */
export async function createRevocableIssuer(service: Callable, id: string, batchSize: number): Promise<Tenant> {
  const tenant = await createTenant(service, id, { statusListConfig: { immediateUpdate: true } });
  const call = async (path: string, json: object) => {
    const answer = await service.call('POST', path, { token: tenant.token, json });
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`);
  };
  await call('/issuer/credentials', CARD);
  await call('/issuer/config', { display: [{ name: id, locale: 'en' }], batchSize });
  return tenant;
}

export async function offer(
  service: Callable,
  { token }: Tenant,
  flow = 'pre_authorized_code',
): Promise<{ readonly uri: string; readonly session: string }> {
  const json = { response_type: 'uri', flow, credentialConfigurationIds: [CARD.id] };
  const offer = await service.call('POST', '/issuer/offer', { token, json });
  if (offer.status !== 201) throw new Error(`offer: ${offer.status} ${offer.text}`);
  return offer.body;
}

/** Runs a complete issuance. @throws Error for an unexpected response. */
export async function issueBatch(
  service: Callable,
  tenant: Tenant,
  size = 10,
): Promise<{ readonly session: string; readonly entries: readonly StatusEntry[] }> {
  const { uri, session } = await offer(service, tenant);
  const wallet = new RawWallet(service, tenant.id);
  const token = await wallet.accessToken(uri);
  const nonce = await wallet.nonce();
  const jwt = Array.from({ length: size }, () => keyProof(newKey(), wallet.issuer, nonce));
  const body = { credential_configuration_id: CARD.id, proofs: { jwt } };
  const answer = await wallet.request(token, CARD.id, { body });
  if (answer.status !== 200) throw new Error(`credential: ${answer.status} ${answer.text}`);
  return { session, entries: answer.body.credentials.map(statusEntryOf) };
}

function statusEntryOf({ credential }: { readonly credential: string }): StatusEntry {
  const { uri, idx } = decode(credential).payload['status'].status_list;
  return { uri, idx, listId: String(uri).split('/').at(-1) ?? '' };
}

/** Parses a published list. @returns a function from index to status. */
export function parseStatuses({ text }: Answer): (index: number) => number {
  const { bits, lst } = decode(text).payload['status_list'];
  const bytes = inflateSync(Buffer.from(lst, 'base64url'));
  const perByte = 8 / bits;
  return (index) => ((bytes[Math.floor(index / perByte)] ?? 0) >> ((index % perByte) * bits)) & (2 ** bits - 1);
}
