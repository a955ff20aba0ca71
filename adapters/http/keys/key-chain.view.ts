import { object, z } from 'zod';
import type { AffectedKeyChain } from '../../../application/keys/compromised-key.ts';
import type { TenantKeyProvider } from '../../../application/keys/key-chains.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { KEY_USAGES, type KeyChain, type KeyLeaf } from '../../../domain/keys/key-chain.ts';
import type { StoredKey } from '../../../domain/keys/signing-key.ts';
import { SIGNING_ALGORITHMS, thumbprint } from '../../../domain/shared/jwk.ts';
import { viewOf } from '../output/view-of.ts';

export const PublicKeyView = object({
  kty: z.string(),
  crv: z.string(),
  x: z.string(),
  y: z.string().optional(),
  kid: z.string(),
  alg: z.string(),
  use: z.string(),
}).meta({ id: 'PublicKey', description: 'Public half as a JWK (RFC 7517); private keys are never shown' });

const Pem = z.string().describe('PEM, leaf first');

export const KeyChainView = object({
  id: z.string(),
  tenantId: z.string(),
  description: z.string().nullable(),
  usageType: z.enum(KEY_USAGES).nullable().describe('The first of `usages`; null for a key without any'),
  usages: z.array(z.enum(KEY_USAGES)),
  usage: z.literal('sign'),
  kmsProvider: z.string(),
  externalKeyId: z.string().nullable().describe("The provider's own name of the key; null for local keys"),
  rootKey: PublicKeyView.nullable(),
  rootCertificate: z.string().nullable().describe('PEM; the anchor that relying parties configure'),
  activeKey: PublicKeyView,
  activeCertificate: Pem,
  activeCertificateExpiry: z.iso.datetime(),
  compromisedAt: z.iso
    .datetime()
    .nullable()
    .optional()
    .describe('Since when the active key is compromised: it signs nothing until the key chain is rotated. Null for no compromise'),
  rotationEnabled: z.boolean(),
  rotationIntervalDays: z.number().int(),
  certValidityDays: z.number().int(),
  lastRotatedAt: z.iso.datetime().nullable(),
  previousKey: PublicKeyView.nullable(),
  previousCertificate: Pem.nullable(),
  previousKeyExpiry: z.iso
    .datetime()
    .nullable()
    .describe('Time at which everything that it signed has expired; it is published until then'),
  previousKeys: z
    .array(object({ key: PublicKeyView, certificate: Pem, expiry: z.iso.datetime() }))
    .describe('All valid former keys, newest first'),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
}).meta({ id: 'KeyChain', description: 'A key with its certificates' });

export const RotatedKeyChainView = KeyChainView.extend({
  affectedKeyChains: z
    .array(
      object({
        id: z.string(),
        outcome: z
          .enum(['rotated', 'blocked', 'former'])
          .describe(
            '`rotated`: it signs with another key. `blocked`: it signs nothing until it is rotated or replaced. ' +
              '`former`: only a former key of it is affected',
          ),
        reason: z.string().nullable().describe('Reason why the key chain could not be rotated'),
      }),
    )
    .describe('With `compromised`: all key chains of the tenant that have or had the public key; empty otherwise'),
}).meta({ id: 'RotatedKeyChain', description: 'A key chain after its rotation' });

export function toAffectedKeyChainView({ id, outcome, reason }: AffectedKeyChain) {
  return { id, outcome, reason: reason ?? null };
}

export const CertificateRequestView = object({ csr: z.string().describe('PKCS#10 (RFC 2986) as PEM') }).meta({
  id: 'CertificateRequest',
  description: 'Certificate signing request for the authority that certifies the key',
});

export const KeyProviderView = object({
  name: z.string(),
  type: z.string().describe('`local`, `vault` or `pkcs11`'),
  default: z.boolean().describe('Default for tenants without their own provider'),
  own: z.boolean().describe('Default provider of new keys of this tenant'),
  algorithms: z.array(z.enum(SIGNING_ALGORITHMS)).describe('Algorithms of the keys that it can create'),
  status: z.enum(['up', 'down']).describe('True if the provider responds at present'),
}).meta({ id: 'KeyProvider', description: 'Providers that can create keys' });

export function toKeyProviderView({ isOwn, answers, ...provider }: TenantKeyProvider) {
  return viewOf(KeyProviderView, { ...provider, own: isOwn, status: answers ? 'up' : 'down' });
}

export function toKeyChainView(chain: KeyChain) {
  const { root, active, former: formerLeaves = [] } = chain;
  const previousKeys = formerLeaves.map((leaf) => ({
    key: toPublicKeyView(leaf.key),
    certificate: pemOf(leaf),
    expiry: leaf.keptUntil.toISOString(),
  }));
  const [previous] = previousKeys;
  return viewOf(KeyChainView, {
    ...chain,
    usageType: chain.usages[0],
    usage: 'sign',
    kmsProvider: active.key.handle.kms,
    externalKeyId: active.key.sealedKey === undefined ? active.key.handle.keyId : null,
    rootKey: root && toPublicKeyView(root.key),
    rootCertificate: root && writePemCertificates([root.certificate]),
    activeKey: toPublicKeyView(active.key),
    activeCertificate: pemOf(active),
    activeCertificateExpiry: active.notAfter,
    compromisedAt: active.revokedAt,
    previousKey: previous?.key,
    previousCertificate: previous?.certificate,
    previousKeyExpiry: previous?.expiry,
    previousKeys,
  });
}

export function toPublicKeyView({ publicJwk, handle }: StoredKey) {
  const kid = thumbprint(publicJwk);
  return viewOf(PublicKeyView, { ...publicJwk, kid, alg: handle.algorithm, use: 'sig' });
}

function pemOf(leaf: KeyLeaf): string {
  return writePemCertificates(leaf.certificates);
}
