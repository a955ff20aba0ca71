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
 * Makes or takes in a key chain, or changes what can be changed of one. What a key chain is born with (provider,
 * algorithm, names, authority) counts when it is made; a key is never replaced by another one.
 */
export async function applyKeyChain(administration: Administration, { id, tenant, body }: Document<'key-chain'>): Promise<Outcome> {
  const { ports } = administration;
  const caller = await administration.callerOf(tenant);
  const known = await ports.store.forTenant(tenant, ({ keyChains }) => keyChains.find(id));
  if (known === undefined) {
    await new CreateKeyChain(ports).execute(caller, body);
    return 'created';
  }
  assertSameKey(known, body);
  const wanted = settingsOf(body, known);
  const certificates = otherCertificates(body, known);
  if (isSame(settingsOf(known, known), wanted) && certificates === undefined) return 'unchanged';
  await new UpdateKeyChain(ports).execute(caller, id, { ...wanted, ...defined({ certificates }) });
  return 'changed';
}

/** @throws Failure `invalid_input` for what would take another key. */
function assertSameKey({ active, lastRotatedAt }: KeyChain, body: Body): void {
  if (!('key' in body)) {
    if (body.algorithm === undefined || body.algorithm === active.key.handle.algorithm) return;
    throw invalidInput('algorithm', `the key chain is for ${active.key.handle.algorithm}; give another one an id of its own`);
  }
  const { pkcs8, publicJwk } = parsePrivateKey(body.key as string | JsonObject);
  pkcs8.fill(0);
  // After a rotation the key is another one, as it should be.
  if (lastRotatedAt !== undefined || thumbprint(publicJwk) === thumbprint(active.key.publicJwk)) return;
  throw invalidInput('key', 'the key chain has another key; give this one an id of its own');
}

/** What can be changed: the usages in the order that they have already, if they are the same. */
function settingsOf(wanted: Body | KeyChain, { usages: known }: KeyChain) {
  const { usageType } = wanted as Body;
  const usages = [...new Set([...(wanted.usages ?? []), ...(usageType === undefined ? [] : [usageType])])];
  const isReordered = usages.length === known.length && usages.every((usage) => known.includes(usage));
  return {
    description: wanted.description ?? null,
    usages: isReordered ? [...known] : usages,
    rotationEnabled: wanted.rotationEnabled ?? false,
    rotationIntervalDays: wanted.rotationIntervalDays ?? DEFAULT_ROTATION_DAYS,
    certValidityDays: wanted.certValidityDays ?? DEFAULT_CERT_VALIDITY_DAYS,
  };
}

/**
 * @returns undefined where the key chain has these certificates. They are compared without judging them: one that has ended
 *   meanwhile is still the one that was imported.
 */
function otherCertificates(body: Body, { active: { certificates } }: KeyChain): string[] | undefined {
  if (!('key' in body) || body.certificates === undefined) return undefined;
  const given = [body.certificates].flat();
  const read = parsePemCertificates(given.join('\n'), MAX_CERTIFICATES);
  // A root at the end is not kept.
  const isSameChain = certificates.every((certificate, index) => certificate === read?.[index]);
  return read !== undefined && isSameChain ? undefined : given;
}
