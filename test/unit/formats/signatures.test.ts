import { createHash, generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { setCacheMemory } from '../../../application/tenant-cache/cache-memory.ts';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type Cbor, Tagged } from '../../../domain/formats/cbor/values.ts';
import { algorithmOfCose, coseAlgorithm } from '../../../domain/formats/cose/algorithms.ts';
import { coseKeyOf, parseCoseKey } from '../../../domain/formats/cose/key.ts';
import {
  buildCoseSign1,
  parseCoseAlgorithm,
  parseCoseSign1,
  parseX5chain,
  protectedHeaderOf,
  sigStructure,
  x5chainOf,
} from '../../../domain/formats/cose/sign1.ts';
import { derSignature, rawSignature } from '../../../domain/formats/der/ecdsa-signature.ts';
import {
  buildSigningInput,
  joinCompact,
  matchesKey,
  parseAlgorithm,
  parseCompactJws,
  parseX5c,
  supportsCriticalParameters,
} from '../../../domain/formats/jose/compact.ts';
import { type PublicJwk, parsePublicJwk, SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { countWork } from '../../support/measurements.ts';

describe('signature key', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = parsePublicJwk(publicKey.export({ format: 'jwk' }));
  const signature = sign('sha256', Buffer.from('data'), { key: privateKey, dsaEncoding: 'ieee-p1363' });

  // Other tests in this process may have set a smaller cache.
  before(() => setCacheMemory(472));

  it('is parsed once for repeated use, and is not cached for a single signature', () => {
    if (key === undefined) throw new Error('no key');
    const work = countWork();
    try {
      for (const [frequency, reads] of [
        ['once', 4],
        ['often', 1],
      ] as const) {
        const signatures = new NodeSignatures();
        for (let time = 0; time < 3; time++) expect(signatures.verify(key, 'data', signature, frequency), frequency).to.equal(true);
        expect(signatures.verify(key, 'other data', signature, frequency), frequency).to.equal(false);
        expect(work.takeCounts().imported, frequency).to.equal(reads);
      }
    } finally {
      work.end();
    }
  });
});

const CURVES = [
  { namedCurve: 'P-256', size: 32, hash: 'sha256', rounds: 100 },
  { namedCurve: 'P-384', size: 48, hash: 'sha384', rounds: 10 },
  { namedCurve: 'P-521', size: 66, hash: 'sha512', rounds: 8 },
];

describe('ECDSA signature formats', () => {
  for (const { namedCurve, size, hash, rounds } of CURVES) {
    it(`are converted like the library does, in both directions (${namedCurve})`, () => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve });
      const plain = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
      for (let round = 0; round < rounds; round++) {
        const data = randomBytes(20);
        const der = sign(hash, data, privateKey);
        const raw = rawSignature(der, size);
        expect(verify(hash, data, { key: publicKey, dsaEncoding: 'ieee-p1363' }, raw)).to.equal(true);
        expect(derSignature(raw).equals(der), der.toString('hex')).to.equal(true);
        expect(verify(hash, data, publicKey, derSignature(sign(hash, data, plain)))).to.equal(true);
      }
    });
  }

  for (const [name, number] of Object.entries({
    zero: Buffer.alloc(32),
    one: Buffer.alloc(32).fill(1, 31),
    'a top bit': Buffer.alloc(32, 0xff),
    'leading zeros before a top bit': Buffer.alloc(32).fill(0x80, 30),
    'a digest': createHash('sha256').update('x').digest(),
  })) {
    it(`are lossless for ${name}`, () => {
      for (const raw of [Buffer.concat([number, Buffer.alloc(32, 7)]), Buffer.concat([Buffer.alloc(32, 7), number])]) {
        expect(rawSignature(derSignature(raw), 32).equals(raw)).to.equal(true);
      }
    });
  }

  it('have a digit for each number in DER, also for zero', () => {
    expect(derSignature(Buffer.alloc(64)).toString('hex')).to.equal('3006020100020100');
  });
});

const signatures = new NodeSignatures();

function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}

describe('compact JWS', () => {
  const rejectedTokens: Readonly<Record<string, string>> = {
    'one part': 'e30A',
    'two parts': 'e30.e30',
    'four parts': 'e30.e30.AA.AA',
    'an empty header': '.e30.AA',
    padding: `${encode('{"a":1}')}=.e30.AA`,
    'an invalid character': 'e30.e30.A+',
    'a header that is not an object': `${encode('[]')}.e30.AA`,
    'a duplicate property': `${encode('{"alg":"ES256","alg":"none"}')}.e30.AA`,
    'a payload that is not JSON': `e30.${encode('{')}.AA`,
    'bytes that are not UTF-8': `e30.${Buffer.from([0x22, 0xff, 0x22]).toString('base64url')}.AA`,
    'a header above its limit': `${encode(JSON.stringify({ a: 'x'.repeat(40_000) }))}.e30.AA`,
    'a header with too many properties': `${encode(JSON.stringify({ x5c: Array(300).fill('x') }))}.e30.AA`,
    'nesting above its limit': `e30.${encode(`{"a":${'['.repeat(40)}${']'.repeat(40)}}`)}.AA`,
  };
  for (const [description, text] of Object.entries(rejectedTokens)) {
    it(`is rejected with ${description}`, () => expect(parseCompactJws(text)).to.equal(undefined));
  }

  it('is accepted up to the maximum length', () => {
    expect(parseCompactJws('e30.e30.AA', { length: 10 })).to.not.equal(undefined);
    expect(parseCompactJws('e30.e30.AA', { length: 9 })).to.equal(undefined);
  });

  it('never throws when it is parsed', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[A-Za-z0-9_.-]{0,100}$/)), (text) => {
        parseCompactJws(text);
      }),
      { numRuns: 500 },
    );
  });

  it('is unchanged after it is built and parsed', () => {
    const input = buildSigningInput({ alg: 'ES256' }, { name: 'Möbius' });
    const parsed = parseCompactJws(joinCompact(input, Buffer.of(1, 2)));
    expect(parsed?.signingInput).to.equal(input);
    expect(parsed?.payload).to.deep.equal({ name: 'Möbius' });
    expect(parsed?.signature).to.deep.equal(Buffer.of(1, 2));
  });
});

describe('JOSE header', () => {
  it('names an allowed algorithm', () => {
    expect(parseAlgorithm({ alg: 'ES256' }, ['ES256'])).to.deep.equal({ algorithm: 'ES256' });
    expect(parseAlgorithm({ alg: 'Ed25519' }, ['EdDSA'])).to.deep.equal({ algorithm: 'EdDSA' });
    expect(parseAlgorithm({ alg: 'EdDSA' }, ['Ed25519'])).to.deep.equal({ algorithm: 'EdDSA' });
    expect(parseAlgorithm({ alg: 'ES256', b64: true }, ['ES256'])).to.deep.equal({ algorithm: 'ES256' });
  });

  for (const alg of ['none', 'HS256', 'es256', 'ES384', 1, null, 'constructor']) {
    it(`is rejected with alg ${alg}`, () => {
      expect(parseAlgorithm({ alg }, ['ES256', 'none', 'HS256']).fault).to.equal('alg');
    });
  }

  it('is rejected with crit or an unencoded payload', () => {
    expect(parseAlgorithm({ alg: 'ES256', crit: ['x'] }, ['ES256']).fault).to.equal('crit');
    expect(parseAlgorithm({ alg: 'ES256', b64: false }, ['ES256']).fault).to.equal('crit');
  });
});

describe('JOSE header and its key', () => {
  const key = { kty: 'EC', crv: 'P-384', x: '', y: '' } as const;
  it('requires the algorithm of the key', () => {
    expect(matchesKey({ alg: 'ES384' }, key)).to.equal(true);
    expect(matchesKey({ alg: 'Ed25519' }, { kty: 'OKP', crv: 'Ed25519', x: '' })).to.equal(true);
    for (const header of [{ alg: 'ES256' }, { alg: 'none' }, {}, { alg: 'ES384', crit: ['x'] }]) {
      expect(matchesKey(header, key)).to.equal(false);
    }
    expect(matchesKey({ alg: 'none' }, { ...key, crv: 'secp256k1' }), 'of a key without an alg').to.equal(false);
  });

  it('may contain certificates in base64', () => {
    expect(parseX5c({ x5c: ['AAAA', 'AA+/AA=='] })).to.deep.equal(['AAAA', 'AA+/AA==']);
    for (const x5c of [undefined, 'AAAA', [], [''], ['AAAA', 'AA-_'], ['AAA'], [1]]) {
      expect(parseX5c(x5c === undefined ? {} : { x5c })).to.equal(undefined);
    }
  });
});

describe('crit parameter of a JOSE header', () => {
  const isUnderstood = (header: Parameters<typeof supportsCriticalParameters>[0]) => supportsCriticalParameters(header, ['sigT', 'b64']);
  for (const header of [{}, { sigT: 'x' }, { crit: ['sigT'], sigT: 'x' }, { crit: ['b64', 'sigT'], sigT: 'x', b64: true }]) {
    it(`is accepted: ${JSON.stringify(header)}`, () => expect(isUnderstood(header)).to.equal(true));
  }
  for (const header of [
    { crit: [] },
    { crit: 'sigT', sigT: 'x' },
    { crit: null },
    { crit: ['sigT'] },
    { crit: ['other'], other: 'x' },
    { crit: ['sigT', 'other'], sigT: 'x', other: 'x' },
    { crit: ['sigT', 'sigT'], sigT: 'x' },
    { crit: [['sigT']], sigT: 'x' },
    { crit: ['crit'] },
  ]) {
    it(`is rejected: ${JSON.stringify(header)}`, () => expect(isUnderstood(header)).to.equal(false));
  }
});

describe('signatures, compared with jose', () => {
  for (const algorithm of SIGNING_ALGORITHMS) {
    it(`${algorithm}: a signature by jose verifies here, and the other way round`, async () => {
      const pair = await generateKeyPair(algorithm, { extractable: true });
      const key = parsePublicJwk(await exportJWK(pair.publicKey));
      const text = await new SignJWT({ a: 1 }).setProtectedHeader({ alg: algorithm }).sign(pair.privateKey);
      const jws = parseCompactJws(text);
      if (jws === undefined || key === undefined) throw new Error('unreadable');
      expect(signatures.verify(key, jws.signingInput, jws.signature)).to.equal(true);
      expect(signatures.verify(key, `${jws.signingInput}x`, jws.signature)).to.equal(false);
      expect(signatures.verify(key, jws.signingInput, jws.signature.subarray(1))).to.equal(false);
      await jwtVerify(joinCompact(jws.signingInput, jws.signature), pair.publicKey);
    });
  }

  it('rejects a DER signature, another curve and a point off the curve', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = parsePublicJwk(publicKey.export({ format: 'jwk' }));
    if (key === undefined) throw new Error('unreadable');
    const der = sign('sha256', Buffer.from('x'), privateKey);
    expect(signatures.verify(key, 'x', der)).to.equal(false);
    expect(signatures.verify({ ...key, crv: 'secp256k1' }, 'x', Buffer.alloc(64))).to.equal(false);
    expect(signatures.verify({ ...key, y: key.x }, 'x', Buffer.alloc(64))).to.equal(false);
  });
});

function reasonOf(read: () => unknown): string {
  try {
    read();
    return 'accepted';
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

function makeKey(curve: string): PublicJwk {
  const { publicKey } = curve === 'Ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: curve });
  const jwk = parsePublicJwk(publicKey.export({ format: 'jwk' }));
  if (jwk === undefined) throw new Error('unreadable');
  return jwk;
}

describe('COSE keys', () => {
  for (const curve of ['P-256', 'P-384', 'P-521', 'Ed25519']) {
    it(`are encoded and decoded for a key of ${curve}`, () => {
      const jwk = makeKey(curve);
      expect(parseCoseKey(decodeCbor(encodeCbor(coseKeyOf(jwk))))).to.deep.equal(jwk);
    });
  }

  const members = new Map(coseKeyOf(makeKey('P-256')) as ReadonlyMap<number, Cbor>);
  const rejectedKeys: readonly (readonly [string, number, Cbor])[] = [
    ['a private key', -4, Buffer.alloc(32, 1)],
    ['a compressed point', -3, true],
    ['a short coordinate', -2, Buffer.alloc(31, 1)],
    ['a long coordinate', -3, Buffer.alloc(33, 1)],
    ['an unknown curve', -1, 8],
    ['a curve of the other kind', -1, 6],
    ['another type of key', 1, 4],
    ['a contradicting algorithm', 3, -35],
  ];
  for (const [description, label, value] of rejectedKeys) {
    it(`are rejected with ${description}`, () => {
      expect(parseCoseKey(new Map([...members, [label, value]]))).to.equal(undefined);
    });
  }

  it('are rejected when they are incomplete, for any algorithm', () => {
    for (const label of [-2, -3]) {
      const half = new Map([...members, [3, -7] as const]);
      half.delete(label);
      expect(parseCoseKey(half)).to.equal(undefined);
    }
  });

  it('are accepted with the correct algorithm, and rejected when they are not a map', () => {
    expect(parseCoseKey(new Map([...members, [3, -9]]))).to.not.equal(undefined);
    for (const value of [undefined, null, 1, [], 'key']) expect(parseCoseKey(value)).to.equal(undefined);
  });

  it('are not encoded when they could not be decoded', () => {
    const jwk = makeKey('P-256');
    const { y: _, ...withoutY } = jwk;
    expect(coseKeyOf(withoutY)).to.equal(undefined);
    expect(coseKeyOf({ ...jwk, x: 'AA' })).to.equal(undefined);
    expect(coseKeyOf({ ...jwk, crv: 'P-384' })).to.equal(undefined);
    expect(coseKeyOf({ ...jwk, kty: 'OKP' })).to.equal(undefined);
  });
});

describe('COSE algorithms', () => {
  it('have two numbers for each name', () => {
    const numbers = [-7, -9, -35, -51, -36, -52, -8, -19];
    const names = ['ES256', 'ES256', 'ES384', 'ES384', 'ES512', 'ES512', 'EdDSA', 'EdDSA'];
    expect(numbers.map(algorithmOfCose)).to.deep.equal(names);
    for (const name of SIGNING_ALGORITHMS) expect(algorithmOfCose(coseAlgorithm(name))).to.equal(name);
    for (const algorithm of [5, -37, -257, 'ES256', undefined]) expect(algorithmOfCose(algorithm)).to.equal(undefined);
  });
});

describe('COSE_Sign1', () => {
  const protectedBytes = protectedHeaderOf('ES256');
  const signature = Buffer.alloc(64, 7);
  const parts = { protectedBytes, unprotectedHeader: new Map(), payload: Buffer.from('p'), signature };
  const algorithmIn = (header: Cbor, unprotectedHeader: Cbor = new Map()) =>
    parseCoseAlgorithm(parseCoseSign1([encodeCbor(header), unprotectedHeader, null, signature]), ['ES256'], 'issuer_alg');

  it('parses its own output, tagged and untagged', () => {
    const built = decodeCbor(encodeCbor(buildCoseSign1(parts)));
    const { protectedHeader, ...read } = parseCoseSign1(built);
    expect(read).to.deep.equal(parts);
    expect(protectedHeader.get(1)).to.equal(-7);
    expect(parseCoseSign1(new Tagged(18, built)).signature).to.deep.equal(signature);
  });

  it('omits a detached payload', () => {
    const { payload: _, ...detached } = parts;
    expect(buildCoseSign1(detached)).to.deep.equal([protectedBytes, new Map(), null, signature]);
    expect(parseCoseSign1(buildCoseSign1(detached)).payload).to.equal(undefined);
  });

  for (const [description, value] of [
    ['a COSE_Mac0', new Tagged(17, [protectedBytes, new Map(), null, signature])],
    ['three parts', [protectedBytes, new Map(), null]],
    ['five parts', [protectedBytes, new Map(), null, signature, null]],
    ['a protected header that is not bytes', [new Map(), new Map(), null, signature]],
    ['a signature that is not bytes', [protectedBytes, new Map(), null, 'signature']],
    ['a payload that is text', [protectedBytes, new Map(), 'p', signature]],
    ['a header that is not a map', [protectedBytes, [], null, signature]],
    ['an undefined payload', [protectedBytes, new Map(), undefined, signature]],
    ['a protected header that is not CBOR', [Buffer.from('a1', 'hex'), new Map(), null, signature]],
    ['a protected header that is not a map', [Buffer.from('80', 'hex'), new Map(), null, signature]],
    ['a label in both headers', [protectedBytes, new Map([[1, -7]]), null, signature]],
  ] as const) {
    it(`rejects ${description}`, () => {
      expect(reasonOf(() => parseCoseSign1(value))).to.equal('malformed');
    });
  }

  it('may have an empty protected header, in either form', () => {
    for (const empty of ['', 'a0']) {
      const { protectedHeader } = parseCoseSign1([Buffer.from(empty, 'hex'), new Map(), null, signature]);
      expect(protectedHeader.size).to.equal(0);
    }
  });

  it('reads the algorithm from the protected header only', () => {
    expect(algorithmIn(new Map([[1, -7]]))).to.equal('ES256');
    expect(algorithmIn(new Map([[1, -9]]))).to.equal('ES256');
    expect(reasonOf(() => algorithmIn(new Map([[1, -35]])))).to.equal('issuer_alg');
    expect(reasonOf(() => algorithmIn(new Map(), new Map([[1, -7]])))).to.equal('issuer_alg');
    const critical = new Map<number, Cbor>([
      [1, -7],
      [2, [99]],
    ]);
    expect(reasonOf(() => algorithmIn(critical))).to.equal('unsupported_crit');
  });

  it('signs an empty header as an empty byte string', () => {
    const emptyHeader = sigStructure(Buffer.alloc(0), Buffer.from('p'));
    expect(emptyHeader.toString('hex')).to.equal('846a5369676e61747572653140404170');
    expect(sigStructure(Buffer.from('a0', 'hex'), Buffer.from('p')).equals(emptyHeader)).to.equal(true);
    for (const algorithm of ['a000', '80', 'a10126']) {
      expect(sigStructure(Buffer.from(algorithm, 'hex'), Buffer.from('p')).equals(emptyHeader), algorithm).to.equal(false);
    }
  });

  it('contains one certificate as bytes and several as an array', () => {
    const [first, second] = [Buffer.from('one').toString('base64'), Buffer.from('two').toString('base64')];
    expect(x5chainOf([first])).to.deep.equal(Buffer.from('one'));
    for (const chain of [[first], [first, second]]) {
      expect(parseX5chain(new Map([[33, x5chainOf(chain)]]))).to.deep.equal(chain);
    }
    for (const value of [[], ['one'], [Buffer.from('one'), 1], 'one', null]) {
      expect(parseX5chain(new Map([[33, value]]))).to.equal(undefined);
    }
  });
});
