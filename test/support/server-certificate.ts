import { generateKeyPairSync } from 'node:crypto';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { X509Authority } from '../../adapters/crypto/x509-authority.ts';
import { KmsRegistry } from '../../adapters/kms/kms-registry.ts';
import { LocalKms } from '../../adapters/kms/local/local-kms.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';

/** A self-signed certificate for a test server, with its key as PEM. */
export async function makeServerCertificate(host: string): Promise<{ key: string; cert: string }> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const random = new NodeRandom();
  const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
  const provider = new LocalKms({ name: 'local', cipher, random });
  const kms = new KmsRegistry({ providers: [{ name: 'local', type: 'local', provider }], default: 'local' });
  const stored = await kms.import('acme', privateKey.export({ format: 'der', type: 'pkcs8' }));
  const certificate = await new X509Authority({ kms, random }).issue(
    {
      kind: 'leaf',
      subject: { commonName: host },
      publicJwk: stored.publicJwk,
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + 3_600_000),
      dnsNames: [host],
    },
    { key: signingKey('acme', stored) },
  );
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  return { key, cert: writePemCertificates([certificate]) };
}
