import { createCipheriv, createSecretKey, generateKeyPairSync } from 'node:crypto';
import { constants, deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import { CompactEncrypt, compactDecrypt, importJWK } from 'jose';
import { agree, deriveContentKey, privateKeyOf } from '../../../adapters/crypto/ecdh-es.ts';
import { NodeEncryption } from '../../../adapters/crypto/encryption.ts';
import type { EncryptionKeyPair } from '../../../application/ports/encryption.ts';
import { parseResponseEncryption } from '../../../domain/issuance/encryption.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { thumbprint } from '../../../domain/shared/jwk.ts';
import { processorTime } from '../../support/measurements.ts';
import { decryptMessage, encryptMessage, responseKey } from '../../support/message-encryption.ts';

const encryption = new NodeEncryption();
const key = encryption.generate();
const PLAINTEXT = '{"vp_token":{"pid":["x"]},"state":"ü"}';

async function encrypt(
  recipient: EncryptionKeyPair,
  options: { enc?: string; alg?: string; plaintext?: string; header?: Record<string, string>; kid?: string } = {},
): Promise<string> {
  const { enc = 'A256GCM', alg = 'ECDH-ES', plaintext = PLAINTEXT, header, kid = recipient.publicJwk.kid } = options;
  const { kty, crv, x, y } = recipient.publicJwk;
  return new CompactEncrypt(Buffer.from(plaintext))
    .setProtectedHeader({ alg, enc, kid, ...header })
    .encrypt(await importJWK({ kty, crv, x, ...(y && { y }) }, alg));
}

/** Changes the protected header, so the tag becomes invalid. */
function withHeader(jwe: string, change: (header: Record<string, unknown>) => unknown): string {
  const [first = '', ...rest] = jwe.split('.');
  const header = change(JSON.parse(Buffer.from(first, 'base64url').toString()));
  return [Buffer.from(JSON.stringify(header)).toString('base64url'), ...rest].join('.');
}

/** Encrypts arbitrary bytes with a valid tag. */
function seal(header: JsonObject, message: Buffer): string {
  const sender = encryption.generate();
  const { kty, crv, x, y = '' } = sender.publicJwk;
  const fullHeader = { ...header, epk: { kty, crv, x, y } };
  const secret = agree(key.publicJwk, privateKeyOf(sender)) ?? Buffer.alloc(0);
  const contentKey = deriveContentKey(secret, fullHeader, 128) ?? Buffer.alloc(0);
  const protectedHeader = Buffer.from(JSON.stringify(fullHeader)).toString('base64url');
  const iv = Buffer.alloc(12);
  const cipher = createCipheriv('aes-128-gcm', contentKey, iv).setAAD(Buffer.from(protectedHeader));
  const ciphertext = Buffer.concat([cipher.update(message), cipher.final()]);
  const parts = [iv, ciphertext, cipher.getAuthTag()].map((part) => part.toString('base64url'));
  return [protectedHeader, '', ...parts].join('.');
}

describe('message decryption, compared with jose', () => {
  for (const enc of ['A128GCM', 'A256GCM']) {
    it(`decrypts a message that jose encrypted with ${enc}`, async () => {
      expect(encryption.decrypt(await encrypt(key, { enc }), key)).to.equal(PLAINTEXT);
    });
  }

  it('decrypts a message with a key that another process created and stored', async () => {
    const stored = JSON.parse(JSON.stringify(new NodeEncryption().generate())) as EncryptionKeyPair;
    const jwe = await encrypt(stored);
    expect(encryption.decrypt(jwe, stored)).to.equal(PLAINTEXT);
    expect(encryption.decrypt(jwe, stored), 'once more').to.equal(PLAINTEXT);
    const { d: otherD } = encryption.generate();
    expect(encryption.decrypt(jwe, { ...stored, d: otherD }), 'with another scalar').to.equal(undefined);
  });

  it('derives the key with apu and apv like jose', async () => {
    const { x = '', y = '', crv, kty } = key.publicJwk;
    const jwe = await new CompactEncrypt(Buffer.from(PLAINTEXT))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A128GCM', kid: key.publicJwk.kid })
      .setKeyManagementParameters({ apu: Buffer.from('Alice'), apv: Buffer.from('Bob') })
      .encrypt(await importJWK({ kty, crv, x, y }, 'ECDH-ES'));
    expect(encryption.decrypt(jwe, key)).to.equal(PLAINTEXT);
  });

  it('generates keys that jose can use, with full-length properties', async () => {
    for (let round = 0; round < 300; round++) {
      const { d, publicJwk } = encryption.generate();
      expect([d, publicJwk.x, publicJwk.y].map((member) => member?.length)).to.deep.equal([43, 43, 43]);
    }
    const { x = '', y = '', crv, kty } = key.publicJwk;
    const priv = await importJWK({ kty, crv, x, y, d: key.d }, 'ECDH-ES');
    const { plaintext } = await compactDecrypt(await encrypt(key), priv);
    expect(Buffer.from(plaintext).toString()).to.equal(PLAINTEXT);
  });
});

describe('message decryption rejects', () => {
  it('another or no kid', async () => {
    expect(encryption.decrypt(await encrypt(key, { kid: 'other' }), key)).to.equal(undefined);
    const withoutKid = withHeader(await encrypt(key), ({ kid: _, ...header }) => header);
    expect(encryption.decrypt(withoutKid, key)).to.equal(undefined);
  });

  it('a message to the key of another session', async () => {
    const otherKey = encryption.generate();
    const jwe = await encrypt(otherKey, { kid: key.publicJwk.kid });
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
    const header = { alg: 'ECDH-ES', enc: 'A128GCM', kid: key.publicJwk.kid };
    expect(encryption.decrypt(seal(header, Buffer.from(PLAINTEXT)), key)).to.equal(PLAINTEXT);
    for (const extra of [{ crit: ['x'], x: 1 }, { crit: [] }, { cty: 'JWT' }]) {
      const jwe = seal({ ...header, ...extra } as JsonObject, Buffer.from(PLAINTEXT));
      expect(encryption.decrypt(jwe, key), JSON.stringify(extra)).to.equal(undefined);
    }
    const zipped = seal({ ...header, zip: 'DEF' }, deflateRawSync(PLAINTEXT));
    expect(encryption.decrypt(zipped, key)).to.equal(undefined);
    for (const extra of [{ apu: 'a' }, { apv: 1 }]) {
      const jwe = withHeader(await encrypt(key), (fullHeader) => ({ ...fullHeader, ...extra }));
      expect(encryption.decrypt(jwe, key)).to.equal(undefined);
    }
    const nested = 'eyJhbGciOiJFUzI1NiJ9.e30.AAAA';
    expect(encryption.decrypt(nested, key)).to.equal(undefined);
    expect(encryption.decrypt(await encrypt(key, { plaintext: nested }), key)).to.equal(undefined);
    expect(encryption.decrypt(await encrypt(key, { header: { cty: 'jwt' } }), key)).to.equal(undefined);
  });

  it('every change of any part, and input above the size limit', async () => {
    const jwe = await encrypt(key);
    fc.assert(
      fc.property(fc.nat({ max: jwe.length - 1 }), fc.constantFrom('A', 'Z', '.', '~', ''), (index, char) => {
        const changed = jwe.slice(0, index) + char + jwe.slice(index + 1);
        if (changed !== jwe) expect(encryption.decrypt(changed, key)).to.equal(undefined);
      }),
      { numRuns: 400 },
    );
    const large = await encrypt(key, { plaintext: 'x'.repeat(2 * 1024 * 1024) });
    expect(encryption.decrypt(large, key)).to.equal(undefined);
  });

  it('arbitrary text without throwing', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[A-Za-z0-9_.-]{0,100}$/)), (text) => {
        expect(encryption.decrypt(text, key)).to.equal(undefined);
      }),
      { numRuns: 300 },
    );
  });
});

describe('compressed message', () => {
  const inflate = { inflate: true };
  const LIMIT = 1024 * 1024;
  const zipped = (plaintext: string) => encrypt(key, { plaintext, header: { zip: 'DEF' } });

  it('is decrypted only if the caller allows compression', async () => {
    const jwe = await zipped(PLAINTEXT);
    expect(encryption.decrypt(jwe, key, inflate)).to.equal(PLAINTEXT);
    expect(encryption.decrypt(jwe, key)).to.equal(undefined);
    expect(encryption.decrypt(await encrypt(key), key, inflate), 'not compressed').to.equal(PLAINTEXT);
  });

  it('is inflated up to one MiB and not a byte more', async () => {
    expect(encryption.decrypt(await zipped('x'.repeat(LIMIT)), key, inflate)).to.have.length(LIMIT);
    expect(encryption.decrypt(await zipped('x'.repeat(LIMIT + 1)), key, inflate)).to.equal(undefined);
  });

  it('of 200 MiB costs no more than one of one MiB', async () => {
    // Two hundred blocks of one MiB that do not end the stream.
    const block = deflateRawSync('x'.repeat(LIMIT), { finishFlush: constants.Z_FULL_FLUSH });
    const header = { alg: 'ECDH-ES', enc: 'A128GCM', kid: key.publicJwk.kid, zip: 'DEF' };
    const sealBlocks = (count: number) => seal(header, Buffer.concat([...Array<Buffer>(count).fill(block), deflateRawSync('')]));
    expect(encryption.decrypt(sealBlocks(1), key, inflate)).to.have.length(LIMIT);
    const bomb = sealBlocks(200);
    expect(bomb.length).to.be.lessThan(LIMIT);
    const cpuMs = processorTime(() => expect(encryption.decrypt(bomb, key, inflate)).to.equal(undefined));
    expect(cpuMs).to.be.lessThan(200);
  });

  it('depends on its bytes only: invalid streams are rejected without throwing', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const header = { alg: 'ECDH-ES', enc: 'A128GCM', kid: key.publicJwk.kid, zip: 'DEF' };
        expect(encryption.decrypt(seal(header, Buffer.from(bytes)), key, inflate)).to.satisfy(
          (text: unknown) => text === undefined || typeof text === 'string',
        );
      }),
      { numRuns: 150 },
    );
    const truncated = deflateRawSync('x'.repeat(5000)).subarray(0, -3);
    const header = { alg: 'ECDH-ES', enc: 'A128GCM', kid: key.publicJwk.kid, zip: 'DEF' };
    expect(encryption.decrypt(seal(header, truncated), key, inflate)).to.equal(undefined);
    expect(encryption.decrypt(seal(header, deflateRawSync(PLAINTEXT)), key, inflate)).to.equal(PLAINTEXT);
  });

  it('is rejected with another zip, and if the content is not compressed', async () => {
    const unknownZip = withHeader(await encrypt(key), (header) => ({ ...header, zip: 'DEF' }));
    expect(encryption.decrypt(unknownZip, key, inflate), 'a changed header').to.equal(undefined);
    const compressed = deflateRawSync(PLAINTEXT);
    for (const zip of ['def', 'GZIP', '', 1, null, ['DEF']]) {
      const header = { alg: 'ECDH-ES', enc: 'A128GCM', kid: key.publicJwk.kid, zip };
      expect(encryption.decrypt(seal(header, compressed), key, inflate)).to.equal(undefined);
    }
    const nested = await zipped('eyJhbGciOiJFUzI1NiJ9.e30.AAAA');
    expect(encryption.decrypt(nested, key, inflate)).to.equal(undefined);
  });
});

describe('message encryption, compared with jose', () => {
  for (const enc of ['A128GCM', 'A256GCM'] as const) {
    for (const zip of [undefined, 'DEF'] as const) {
      it(`creates messages that jose decrypts, with ${enc}${zip === undefined ? '' : ', compressed'}`, async () => {
        const { jwk, privateJwk } = responseKey({ kid: 'w-1' });
        const text = JSON.stringify({ name: 'ü'.repeat(5000) });
        const jwe = await encryption.encrypt(text, jwk as never, { enc, zip });
        const { header, body } = await decryptMessage(jwe, privateJwk);
        expect(JSON.stringify(body)).to.equal(text);
        const { epk, ...rest } = header;
        expect(rest).to.deep.equal({ alg: 'ECDH-ES', enc, kid: 'w-1', ...(zip && { zip }) });
        expect(Object.keys(epk as object)).to.deep.equal(['kty', 'crv', 'x', 'y']);
        expect(jwe.length < 2000).to.equal(zip === 'DEF');
      });
    }
  }

  it('omits a missing kid, and creates every message with a new key', async () => {
    const { jwk, privateJwk } = responseKey({ kid: undefined as never });
    const messages = await Promise.all(Array.from({ length: 5 }, () => encryption.encrypt('{}', jwk as never, { enc: 'A256GCM' })));
    const decrypted = await Promise.all(messages.map((jwe) => decryptMessage(jwe, privateJwk)));
    for (const { header } of decrypted) expect(header).to.not.have.property('kid');
    expect(new Set(decrypted.map(({ header }) => (header['epk'] as { x: string }).x)).size).to.equal(5);
  });
});

describe('encryption keys for requests to a tenant', () => {
  const secret = (byte: number) => createSecretKey(Buffer.alloc(32, byte));
  const keysOf = (tenantId: string, ...bytes: number[]) =>
    new NodeEncryption({ encryptionKeys: bytes.map(secret) }).requestKeys(tenantId as TenantId);

  it('are derived from the secret and the tenant', () => {
    expect(keysOf('acme', 1)).to.deep.equal(keysOf('acme', 1));
    const names = [keysOf('acme', 1), keysOf('acme', 2), keysOf('other', 1)].map(([first]) => first?.publicJwk.kid);
    expect(new Set(names).size).to.equal(3);
  });

  it('are the same after an update, since wallets keep metadata', () => {
    expect(keysOf('acme', 1)[0]?.publicJwk.kid).to.equal('z-h_QA-7fpO0iuHAaAcZtvGE54pJ_RYViWn2Z6FyfRI');
  });

  it('remain in use after a new secret, which derives the published one', () => {
    const [, formerKey] = keysOf('acme', 2, 1);
    expect(formerKey).to.deep.equal(keysOf('acme', 1)[0]);
    expect(keysOf('acme')).to.deep.equal([]);
  });

  it('are complete key pairs, named by their thumbprint', async () => {
    for (let index = 0; index < 100; index++) {
      const [pair] = keysOf(`tenant-${index}`, 1);
      expect(pair?.d).to.have.length(43);
      expect(pair?.publicJwk).to.include({ use: 'enc', alg: 'ECDH-ES', kty: 'EC', crv: 'P-256' });
      expect(pair && thumbprint(pair.publicJwk)).to.equal(pair?.publicJwk.kid);
    }
    const [pair] = keysOf('acme', 1);
    if (pair === undefined) throw new Error('no key');
    const jwe = await encryptMessage(pair.publicJwk, PLAINTEXT);
    expect(encryption.decrypt(jwe, pair)).to.equal(PLAINTEXT);
  });
});

describe('response encryption of a wallet', () => {
  const { jwk, privateJwk } = responseKey();
  const valid = { jwk, enc: 'A256GCM' };
  const read = (requested: unknown, offer: object = {}) =>
    parseResponseEncryption({ credential_response_encryption: requested } as JsonObject, { use: 'optional', encrypted: true, ...offer });
  const rejectionOf = (requested: unknown, offer?: object) => {
    try {
      read(requested, offer);
    } catch (error) {
      return error instanceof Failure ? error.code : error;
    }
    return 'accepted';
  };

  it('is parsed with and without kid, use and zip', () => {
    const { x, y } = jwk;
    const recipient = { kty: 'EC', crv: 'P-256', x, y };
    expect(read(valid)).to.deep.equal({ recipient: { ...recipient, kid: 'w-1' }, enc: 'A256GCM', zip: undefined });
    const { kid: _, ...bare } = { ...jwk, use: 'enc' };
    expect(read({ jwk: bare, enc: 'A128GCM', zip: 'DEF', more: 1 })).to.deep.equal({ recipient, enc: 'A128GCM', zip: 'DEF' });
    expect(parseResponseEncryption({}, { use: 'optional', encrypted: false })).to.equal(undefined);
  });

  const { y: _y, ...withoutY } = jwk;
  const { alg: _alg, ...withoutAlg } = jwk;
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' });
  const cases: [string, unknown, object?][] = [
    ['null', null],
    ['text', 'A256GCM'],
    ['no jwk', { enc: 'A256GCM' }],
    ['no enc', { jwk }],
    ['an enc that was not offered', { jwk, enc: 'A192GCM' }],
    ['enc as a list', { jwk, enc: ['A256GCM'] }],
    ['an unknown zip', { ...valid, zip: 'GZIP' }],
    ['a zip of null', { ...valid, zip: null }],
    ['a jwk without alg', { ...valid, jwk: withoutAlg }],
    ['a jwk of another alg', { ...valid, jwk: { ...jwk, alg: 'ECDH-ES+A128KW' } }],
    ['a private jwk', { ...valid, jwk: { ...jwk, d: privateJwk.d } }],
    ['a jwk for signatures', { ...valid, jwk: { ...jwk, use: 'sig' } }],
    ['a jwk on another curve', { ...valid, jwk: { ...p384, alg: 'ECDH-ES' } }],
    ['a jwk off the curve', { ...valid, jwk: { ...jwk, y: jwk.x } }],
    ['a jwk without y', { ...valid, jwk: withoutY }],
    ['a kid that is not a string', { ...valid, jwk: { ...jwk, kid: 1 } }],
    ['an overlong kid', { ...valid, jwk: { ...jwk, kid: 'x'.repeat(1025) } }],
    ['a valid object in an unencrypted request', valid, { encrypted: false }],
    ['a valid object although none is offered', valid, { use: 'off' }],
    ['no object although it is required', undefined, { use: 'required' }],
  ];
  for (const [description, requested, offer] of cases) {
    it(`is rejected with ${description}`, () => {
      expect(rejectionOf(requested, offer)).to.equal('invalid_encryption_parameters');
    });
  }

  it('fails with one error only, for any input', () => {
    const changedEncryption = fc.record(
      { jwk: fc.oneof(fc.constant(jwk), fc.jsonValue()), enc: fc.jsonValue(), zip: fc.jsonValue() },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(changedEncryption, fc.jsonValue()), (requested) => {
        expect(rejectionOf(requested)).to.be.oneOf(['accepted', 'invalid_encryption_parameters']);
      }),
      { numRuns: 300 },
    );
  });
});
