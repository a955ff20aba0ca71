import { readPrivateKey } from '../application/keys/private-key.ts';
import { readPemCertificates } from '../domain/formats/der/pem.ts';
import { DEFAULT_CERT_VALIDITY_DAYS } from '../domain/keys/certificate-profile.ts';
import type { KeyChain, KeyUsage } from '../domain/keys/key-chain.ts';
import { DEFAULT_ROTATION_DAYS } from '../domain/keys/rotation.ts';
import { invalidInput } from '../domain/shared/failure.ts';
import type { JsonObject } from '../domain/shared/json.ts';
import { thumbprint } from '../domain/shared/jwk.ts';
import type { ImportDocument, KeyChainDocument } from './import-documents.ts';
import { isSame, type Outcome, tenantIdOf } from './import-outcome.ts';
import type { ImportTools } from './import-tools.ts';

const MAX_CERTIFICATES = 6;

/**
 * Makes or takes in a key chain, or changes what can be changed of one. What a key chain is born with (provider,
 * algorithm, names, authority) counts when it is made; a key is never replaced by another one.
 */
export async function createKeyChain(
  tools: ImportTools,
  document: ImportDocument<'key-chain'>,
): Promise<Outcome> {
  const { id, body } = document;
  const tenantId = tenantIdOf(document);
  const caller = await tools.callerOf(tenantId);
  const known = await tools.store.forTenant(tenantId, ({ keyChains }) => keyChains.find(id));
  if (known === undefined) {
    await tools.createKeyChain.execute(caller, body);
    return 'created';
  }
  assertSameKey(known, body);
  const wanted = settingsOf(body, known);
  const { certificates } = wanted;
  if (isSame(settingsOfChain(known), { ...wanted, certificates: undefined }) && certificates === undefined) {
    return 'unchanged';
  }
  await tools.updateKeyChain.execute(caller, id, wanted);
  return 'changed';
}

/** @throws Failure `invalid_input` for what would take another key. */
function assertSameKey({ active, lastRotatedAt }: KeyChain, body: KeyChainDocument): void {
  if (!('key' in body)) {
    if (body.algorithm === undefined || body.algorithm === active.key.handle.algorithm) return;
    throw invalidInput(
      'algorithm',
      `the key chain is for ${active.key.handle.algorithm}; give another one an id of its own`,
    );
  }
  const { pkcs8, publicJwk } = readPrivateKey(body.key as string | JsonObject);
  pkcs8.fill(0);
  // After a rotation the key is another one, as it should be.
  if (lastRotatedAt !== undefined || thumbprint(publicJwk) === thumbprint(active.key.publicJwk)) return;
  throw invalidInput('key', 'the key chain has another key; give this one an id of its own');
}

type Settings = {
  readonly description: string | null;
  readonly usages: KeyUsage[];
  readonly rotationEnabled: boolean;
  readonly rotationIntervalDays: number;
  readonly certValidityDays: number;
};

/** @returns `certificates` only where the key chain has others. */
function settingsOf(body: KeyChainDocument, known: KeyChain): Settings & { certificates?: string[] } {
  const { usageType, usages = [] } = body;
  const wanted = [...new Set([...usages, ...(usageType === undefined ? [] : [usageType])])];
  const isReordered =
    wanted.length === known.usages.length && wanted.every((usage) => known.usages.includes(usage));
  const given = 'key' in body && body.certificates !== undefined ? [body.certificates].flat() : undefined;
  return {
    description: body.description ?? null,
    usages: isReordered ? [...known.usages] : wanted,
    rotationEnabled: body.rotationEnabled ?? false,
    rotationIntervalDays: body.rotationIntervalDays ?? DEFAULT_ROTATION_DAYS,
    certValidityDays: body.certValidityDays ?? DEFAULT_CERT_VALIDITY_DAYS,
    ...(given !== undefined && !hasCertificates(known, given) && { certificates: given }),
  };
}

function settingsOfChain(chain: KeyChain): Settings {
  const { usages, rotationEnabled, rotationIntervalDays, certValidityDays } = chain;
  return {
    description: chain.description ?? null,
    usages: [...usages],
    rotationEnabled,
    rotationIntervalDays,
    certValidityDays,
  };
}

/** Compared without judging them: a certificate that has ended meanwhile is still the one that was imported. */
function hasCertificates({ active: { certificates } }: KeyChain, pem: readonly string[]): boolean {
  const given = readPemCertificates(pem.join('\n'), MAX_CERTIFICATES);
  // A root at the end is not kept.
  return given !== undefined && certificates.every((certificate, index) => certificate === given[index]);
}
