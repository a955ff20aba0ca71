import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { DEFAULT_CERT_VALIDITY_DAYS } from '../../domain/keys/certificate-profile.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { DEFAULT_ROTATION_DAYS } from '../../domain/keys/rotation.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { thumbprint } from '../../domain/shared/jwk.ts';
import { CreateKeyChain, UpdateKeyChain } from '../keys/key-chains.ts';
import { parsePrivateKey } from '../keys/private-key.ts';
import type { Administration } from './administration.ts';
import type { Document } from './documents.ts';
import { isSame, type Outcome } from './outcome.ts';

const MAX_CERTIFICATES = 6;

type Body = Document<'key-chain'>['body'];

/**
 * Creates or imports a key chain, or updates it. Provider, algorithm, names and authority only apply to the creation; a key is never
 * replaced by another one.
 */
export async function applyKeyChain(administration: Administration, { id, tenant, body }: Document<'key-chain'>): Promise<Outcome> {
  const { ports } = administration;
  const caller = await administration.callerOf(tenant);
  const storedChain = await ports.store.forTenant(tenant, ({ keyChains }) => keyChains.find(id));
  if (storedChain === undefined) {
    await new CreateKeyChain(ports).execute(caller, body);
    return 'created';
  }
  assertSameKey(storedChain, body);
  const documentSettings = settingsOf(body, storedChain);
  const certificates = otherCertificates(body, storedChain);
  if (isSame(settingsOf(storedChain, storedChain), documentSettings) && certificates === undefined) return 'unchanged';
  await new UpdateKeyChain(ports).execute(caller, id, { ...documentSettings, ...defined({ certificates }) });
  return 'changed';
}

/** @throws Failure `invalid_input` for a document with another key. */
function assertSameKey({ active, lastRotatedAt }: KeyChain, body: Body): void {
  if (!('key' in body)) {
    if (body.algorithm === undefined || body.algorithm === active.key.handle.algorithm) return;
    throw invalidInput('algorithm', `the key chain is for ${active.key.handle.algorithm}; use another id for another algorithm`);
  }
  const { pkcs8, publicJwk } = parsePrivateKey(body.key as string | JsonObject);
  pkcs8.fill(0);
  // A rotated key differs from the imported one, as intended.
  if (lastRotatedAt !== undefined || thumbprint(publicJwk) === thumbprint(active.key.publicJwk)) return;
  throw invalidInput('key', 'the key chain has another key; use another id for this one');
}

/** The mutable properties; the usages in their stored order, if they are the same. */
function settingsOf(source: Body | KeyChain, { usages: storedUsages }: KeyChain) {
  const { usageType } = source as Body;
  const usages = [...new Set([...(source.usages ?? []), ...(usageType === undefined ? [] : [usageType])])];
  const isReordered = usages.length === storedUsages.length && usages.every((usage) => storedUsages.includes(usage));
  return {
    description: source.description ?? null,
    usages: isReordered ? [...storedUsages] : usages,
    rotationEnabled: source.rotationEnabled ?? false,
    rotationIntervalDays: source.rotationIntervalDays ?? DEFAULT_ROTATION_DAYS,
    certValidityDays: source.certValidityDays ?? DEFAULT_CERT_VALIDITY_DAYS,
  };
}

/**
 * @returns undefined if the key chain has these certificates. They are compared without validation: an expired certificate
 *   is still the one that was imported.
 */
function otherCertificates(body: Body, { active: { certificates } }: KeyChain): string[] | undefined {
  if (!('key' in body) || body.certificates === undefined) return undefined;
  const pems = [body.certificates].flat();
  const parsedCertificates = parsePemCertificates(pems.join('\n'), MAX_CERTIFICATES);
  // A root at the end is not stored.
  const isSameChain = certificates.every((certificate, index) => certificate === parsedCertificates?.[index]);
  return parsedCertificates !== undefined && isSameChain ? undefined : pems;
}
