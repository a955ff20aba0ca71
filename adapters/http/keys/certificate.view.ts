import { z } from 'zod';
import { chainsOfKey, keyIdOf } from '../../../application/keys/shared-key.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { KEY_USAGES, type KeyChain } from '../../../domain/keys/key-chain.ts';
import { PublicKeyView, toPublicKeyView } from './key-chain.view.ts';

const Usage = z.enum(KEY_USAGES);

/** The older vocabulary over the same key chains: a certificate is a key chain seen from its certificates. */
export const CertificateView = z
  .object({
    id: z.string().describe('The id of the key chain'),
    keyId: z.string().describe('Names the key: the id of the key chain that had it first'),
    tenantId: z.string(),
    description: z.string().nullable(),
    crt: z.array(z.string()).describe('PEM, leaf first, the internal authority last'),
    usages: z.array(
      z.object({
        tenantId: z.string(),
        certId: z.string(),
        usage: Usage,
        cert: z.object({ id: z.string() }),
      }),
    ),
    key: z.object({
      id: z.string(),
      description: z.string().nullable(),
      tenantId: z.string(),
      key: PublicKeyView,
      usage: z.literal('sign'),
      kmsProvider: z.string(),
      certificates: z.array(z.object({ id: z.string() })),
      createdAt: z.iso.datetime(),
      updatedAt: z.iso.datetime(),
    }),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Certificate', description: 'A certificate chain and the key that it is for' });

/** @param all the tenant's key chains, since several can share one key. */
export function toCertificateView(
  chain: KeyChain,
  all: readonly KeyChain[],
): z.infer<typeof CertificateView> {
  const { id, tenantId, active, root } = chain;
  const keyId = keyIdOf(chain, all);
  const first = all.find((other) => other.id === keyId) ?? chain;
  const certificates = [...active.certificates, ...(root === undefined ? [] : [root.certificate])];
  return {
    id,
    keyId,
    tenantId,
    description: chain.description ?? null,
    crt: certificates.map((certificate) => writePemCertificates([certificate])),
    usages: chain.usages.map((usage) => ({ tenantId, certId: id, usage, cert: { id } })),
    key: {
      id: keyId,
      description: first.description ?? null,
      tenantId,
      key: toPublicKeyView(active.key),
      usage: 'sign',
      kmsProvider: active.key.handle.kms,
      certificates: chainsOfKey(keyId, all).map((other) => ({ id: other.id })),
      createdAt: first.createdAt.toISOString(),
      updatedAt: first.updatedAt.toISOString(),
    },
    createdAt: chain.createdAt.toISOString(),
    updatedAt: chain.updatedAt.toISOString(),
  };
}
