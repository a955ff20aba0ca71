import { generateKeyPairSync, sign } from 'node:crypto';
import { expect } from 'chai';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { setCacheMemory } from '../../../application/bounded.ts';
import { readPublicJwk } from '../../../domain/shared/jwk.ts';
import { countWork } from '../../support/counted-work.ts';

describe('The key of a signature', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = readPublicJwk(publicKey.export({ format: 'jwk' }));
  const signature = sign('sha256', Buffer.from('data'), { key: privateKey, dsaEncoding: 'ieee-p1363' });

  // Services that ran in this process had less.
  before(() => setCacheMemory(472));

  it('is read once when it comes again, and is not kept when it verifies one alone', () => {
    if (key === undefined) throw new Error('no key');
    const work = countWork();
    try {
      for (const [seen, reads] of [
        ['once', 4],
        ['often', 1],
      ] as const) {
        const signatures = new NodeSignatures();
        for (let time = 0; time < 3; time++)
          expect(signatures.verify(key, 'data', signature, seen), seen).to.equal(true);
        expect(signatures.verify(key, 'other data', signature, seen), seen).to.equal(false);
        expect(work.take().imported, seen).to.equal(reads);
      }
    } finally {
      work.end();
    }
  });
});
