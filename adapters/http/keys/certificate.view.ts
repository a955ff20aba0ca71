import { object, z } from 'zod';
import { keyIdOf } from '../../../application/keys/shared-key.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { KEY_USAGES, type KeyChain } from '../../../domain/keys/key-chain.ts';
import { viewOf } from '../output/view-of.ts';
import { KeyView, toKeyView } from './key.view.ts';

const Usage = z.enum(KEY_USAGES);

const PlainCertificate = object({
  id: z.string().describe('The id of the key chain'),
  keyId: z.string().describe('Id of the key: the id of its first key chain'),
  tenantId: z.string(),
  description: z.string().nullable(),
  crt: z.array(z.string()).describe('PEM, leaf first, the internal authority last'),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});

/** The older vocabulary over the same key chains: a certificate is a key chain seen from its certificates. */
export const CertificateView = object({
  ...PlainCertificate.shape,
  usages: z.array(object({ tenantId: z.string(), certId: z.string(), usage: Usage, cert: PlainCertificate })),
  key: KeyView,
}).meta({ id: 'Certificate', description: 'A certificate chain and its key' });

/** @param chains all key chains of the tenant, since several can share one key. */
export function toCertificateView(chain: KeyChain, chains: readonly KeyChain[]) {
  const { id, tenantId, active, root } = chain;
  const certificates = [...active.certificates, ...(root === undefined ? [] : [root.certificate])];
  const cert = viewOf(PlainCertificate, {
    ...chain,
    keyId: keyIdOf(chain, chains),
    crt: certificates.map((certificate) => writePemCertificates([certificate])),
  });
  return viewOf(CertificateView, {
    ...cert,
    usages: chain.usages.map((usage) => ({ tenantId, certId: id, usage, cert })),
    key: toKeyView(chain, chains),
  });
}
