import { expect } from 'chai';
import fc from 'fast-check';
import { CompactEncrypt, compactDecrypt, importJWK } from 'jose';
import { NodeEncryption } from '../../../adapters/crypto/encryption.ts';
import type { EncryptionKeyPair } from '../../../application/ports/encryption.ts';

const encryption = new NodeEncryption();
const key = encryption.generate();
const PLAINTEXT = '{"vp_token":{"pid":["x"]},"state":"ü"}';

async function encrypt(
  to: EncryptionKeyPair,
  options: {
    enc?: string;
    alg?: string;
    plaintext?: string;
    header?: Record<string, string>;
    kid?: string;
  } = {},
): Promise<string> {
  const { enc = 'A256GCM', alg = 'ECDH-ES', plaintext = PLAINTEXT, header, kid = to.publicJwk.kid } = options;
  const { kty, crv, x, y } = to.publicJwk;
  return new CompactEncrypt(Buffer.from(plaintext))
    .setProtectedHeader({ alg, enc, kid, ...header })
    .encrypt(await importJWK({ kty, crv, x, ...(y && { y }) }, alg));
}

/** Replaces members of the protected header; the tag no longer fits then. */
function withHeader(jwe: string, change: (header: Record<string, unknown>) => unknown): string {
  const [first = '', ...rest] = jwe.split('.');
  const header = change(JSON.parse(Buffer.from(first, 'base64url').toString()));
  return [Buffer.from(JSON.stringify(header)).toString('base64url'), ...rest].join('.');
}

describe('Decrypting a message beside jose', () => {
  for (const enc of ['A128GCM', 'A256GCM']) {
    it(`opens what jose encrypted with ${enc}`, async () => {
      expect(encryption.decrypt(await encrypt(key, { enc }), key)).to.equal(PLAINTEXT);
    });
  }

  it('takes apu and apv into the key as jose does', async () => {
    const { x = '', y = '', crv, kty } = key.publicJwk;
    const jwe = await new CompactEncrypt(Buffer.from(PLAINTEXT))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A128GCM', kid: key.publicJwk.kid })
      .setKeyManagementParameters({ apu: Buffer.from('Alice'), apv: Buffer.from('Bob') })
      .encrypt(await importJWK({ kty, crv, x, y }, 'ECDH-ES'));
    expect(encryption.decrypt(jwe, key)).to.equal(PLAINTEXT);
  });

  it('generates keys that jose can use, with full-length members', async () => {
    for (let round = 0; round < 600; round++) {
      const { d, publicJwk } = encryption.generate();
      expect([d, publicJwk.x, publicJwk.y].map((member) => member?.length)).to.deep.equal([43, 43, 43]);
    }
    const { x = '', y = '', crv, kty } = key.publicJwk;
    const priv = await importJWK({ kty, crv, x, y, d: key.d }, 'ECDH-ES');
    const { plaintext } = await compactDecrypt(await encrypt(key), priv);
    expect(Buffer.from(plaintext).toString()).to.equal(PLAINTEXT);
  });
});

describe('Decrypting a message refuses', () => {
  it('another or no kid', async () => {
    expect(encryption.decrypt(await encrypt(key, { kid: 'other' }), key)).to.equal(undefined);
    const none = withHeader(await encrypt(key), ({ kid: _, ...header }) => header);
    expect(encryption.decrypt(none, key)).to.equal(undefined);
  });

  it('a message to the key of another session', async () => {
    const other = encryption.generate();
    const jwe = await encrypt(other, { kid: key.publicJwk.kid });
    expect(encryption.decrypt(jwe, key)).to.equal(undefined);
  });

  it('content encryption and key agreement that were not offered', async () => {
    for (const enc of ['A128CBC-HS256', 'A192GCM', 'A256CBC-HS512']) {
      expect(encryption.decrypt(await encrypt(key, { enc }), key)).to.equal(undefined);
    }
    expect(encryption.decrypt(await encrypt(key, { alg: 'ECDH-ES+A128KW' }), key)).to.equal(undefined);
    for (const alg of ['dir', 'RSA-OAEP', 'none', undefined]) {
      const jwe = withHeader(await encrypt(key), (header) => ({ ...header, alg }));
      expect(encryption.decrypt(jwe, key)).to.equal(undefined);
    }
  });

  it('an ephemeral key on another curve, off the curve, private or malformed', async () => {
    const zero = Buffer.alloc(32).toString('base64url');
    const keys = [
      undefined,
      'x',
      { kty: 'EC', crv: 'P-384', x: zero, y: zero },
      { kty: 'OKP', crv: 'X25519', x: zero },
      { kty: 'EC', crv: 'P-256', x: zero, y: zero },
      { kty: 'EC', crv: 'P-256', x: key.publicJwk.x, y: key.publicJwk.x },
      { kty: 'EC', crv: 'P-256', x: key.publicJwk.x },
      { kty: 'EC', crv: 'P-256', x: key.publicJwk.x, y: key.publicJwk.y, d: key.d },
      { kty: 'EC', crv: 'P-256', x: `${key.publicJwk.x}AA`, y: key.publicJwk.y },
    ];
    for (const epk of keys) {
      const jwe = withHeader(await encrypt(key), (header) => ({ ...header, epk }));
      expect(encryption.decrypt(jwe, key)).to.equal(undefined);
    }
  });

  it('zip, crit, a nested JWT and bad apu', async () => {
    for (const extra of [{ zip: 'DEF' }, { crit: ['x'] }, { cty: 'JWT' }, { apu: 'a' }, { apv: 1 }]) {
      const jwe = withHeader(await encrypt(key), (header) => ({ ...header, ...extra }));
      expect(encryption.decrypt(jwe, key)).to.equal(undefined);
    }
    const nested = 'eyJhbGciOiJFUzI1NiJ9.e30.AAAA';
    expect(encryption.decrypt(nested, key)).to.equal(undefined);
    expect(encryption.decrypt(await encrypt(key, { plaintext: nested }), key)).to.equal(undefined);
    expect(encryption.decrypt(await encrypt(key, { header: { cty: 'jwt' } }), key)).to.equal(undefined);
  });

  it('every change of any part, and whatever is too large', async () => {
    const jwe = await encrypt(key);
    fc.assert(
      fc.property(fc.nat({ max: jwe.length - 1 }), fc.constantFrom('A', 'Z', '.', '~', ''), (at, char) => {
        const changed = jwe.slice(0, at) + char + jwe.slice(at + 1);
        if (changed !== jwe) expect(encryption.decrypt(changed, key)).to.equal(undefined);
      }),
      { numRuns: 1500 },
    );
    expect(encryption.decrypt(await encrypt(key, { plaintext: 'x'.repeat(1024 * 1024) }), key)).to.equal(
      undefined,
    );
  });

  it('arbitrary text without throwing', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[A-Za-z0-9_.-]{0,100}$/)), (text) => {
        expect(encryption.decrypt(text, key)).to.equal(undefined);
      }),
      { numRuns: 1000 },
    );
  });
});
