import { createPublicKey, verify } from 'node:crypto';
import { expect } from 'chai';
import type { KmsProvider } from '../../adapters/kms/kms-provider.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { algorithmOf, type PublicJwk, SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';

const HASH = { ES256: 'sha256', ES384: 'sha384', ES512: 'sha512', EdDSA: null } as const;
const LENGTH = { ES256: 64, ES384: 96, ES512: 132, EdDSA: 64 } as const;

export function isSignedBy(publicJwk: PublicJwk, data: string, signature: Uint8Array): boolean {
  const algorithm = algorithmOf(publicJwk) ?? 'ES256';
  const key = createPublicKey({ key: { ...publicJwk }, format: 'jwk' });
  return verify(HASH[algorithm], Buffer.from(data), { key, dsaEncoding: 'ieee-p1363' }, signature);
}

/** Requirements for every provider. `name` is the configured name that its handles must carry. */
export function describeKmsProvider(title: string, name: string, make: () => Promise<KmsProvider> | KmsProvider) {
  describe(`${title} as a KMS provider`, () => {
    let provider: KmsProvider;
    before(async () => {
      provider = await make();
    });

    for (const algorithm of SIGNING_ALGORITHMS) {
      it(`creates ${algorithm} keys and signs with them in the raw form`, async () => {
        const key = await provider.generate('acme', algorithm);
        expect(key.handle).to.include({ kms: name, algorithm });
        expect(algorithmOf(key.publicJwk)).to.equal(algorithm);
        for (const data of ['', 'header.payload']) {
          const signature = await provider.sign(signingKey('acme', key), data);
          expect(signature).to.have.length(LENGTH[algorithm]);
          expect(isSignedBy(key.publicJwk, data, signature)).to.equal(true);
        }
      });
    }

    it('creates the same signature input for a text and its UTF-8 bytes', async () => {
      const key = await provider.generate('acme', 'ES256');
      const signature = await provider.sign(signingKey('acme', key), new TextEncoder().encode('Grüße'));
      expect(isSignedBy(key.publicJwk, 'Grüße', signature)).to.equal(true);
    });

    it('gives each key its own identifier', async () => {
      const [one, two] = [await provider.generate('acme', 'ES256'), await provider.generate('acme', 'ES256')];
      expect(one.handle.keyId).to.not.equal(two.handle.keyId);
      expect(one.publicJwk).to.not.deep.equal(two.publicJwk);
    });

    it('never returns a private key property', async () => {
      const key = await provider.generate('acme', 'EdDSA');
      expect(key.publicJwk).to.not.have.any.keys('d', 'k');
    });

    it('rejects a signature for another tenant', async () => {
      const key = await provider.generate('acme', 'ES256');
      await provider.sign(signingKey('acme', key), 'warm');
      const error = await failing(async () => provider.sign(signingKey('other', key), 'data'));
      expect(error).to.be.instanceOf(Error);
    });

    it('rejects an algorithm that differs from the algorithm of the key', async () => {
      const key = await provider.generate('acme', 'ES256');
      const handle = { ...key.handle, algorithm: 'ES384' as const };
      const error = await failing(async () => provider.sign(signingKey('acme', { ...key, handle }), 'data'));
      expect(error).to.be.instanceOf(Error);
    });
  });
}

export async function failing(work: () => Promise<unknown>): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  return undefined;
}
