import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { NodeEncryption } from '../../adapters/crypto/encryption.ts';
import { parseJsonObject } from '../../domain/shared/json.ts';

type Vector = {
  readonly name: string;
  readonly private_jwk: { readonly kid: string; readonly x: string; readonly y: string; readonly d: string };
  readonly jwe: string;
  readonly plaintext?: string;
  readonly expect: string;
};

const file = readFileSync(new URL('encrypted-response.json', import.meta.url), 'utf8');
const { vectors } = JSON.parse(file) as { readonly vectors: readonly Vector[] };
const encryption = new NodeEncryption();

describe('Encrypted response vectors', () => {
  for (const vector of vectors) {
    it(`${vector.name}: ${vector.expect}`, () => {
      const { kid, x, y, d } = vector.private_jwk;
      const key = { publicJwk: { kty: 'EC', crv: 'P-256', x, y, kid, use: 'enc', alg: 'ECDH-ES' }, d } as const;
      const plaintext = encryption.decrypt(vector.jwe, key);
      if (vector.expect.startsWith('decrypts')) {
        expect(plaintext).to.equal(vector.plaintext);
        expect(parseJsonObject(plaintext ?? '')).to.be.an('object');
      } else if (vector.expect.includes('JSON object')) {
        expect(parseJsonObject(plaintext ?? '')).to.equal(undefined);
      } else {
        expect(plaintext).to.equal(undefined);
      }
    });
  }
});
