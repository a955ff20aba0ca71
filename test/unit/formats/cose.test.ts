import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type Cbor, Tagged } from '../../../domain/formats/cbor/values.ts';
import { algorithmOfCose, coseAlgorithm } from '../../../domain/formats/cose/algorithms.ts';
import { coseKeyOf, readCoseKey } from '../../../domain/formats/cose/key.ts';
import {
  buildCoseSign1,
  protectedHeaderOf,
  readCoseSign1,
  readX5chain,
  requireCoseAlgorithm,
  sigStructure,
  x5chainOf,
} from '../../../domain/formats/cose/sign1.ts';
import { type PublicJwk, readPublicJwk, SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';

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
  const { publicKey } =
    curve === 'Ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: curve });
  const jwk = readPublicJwk(publicKey.export({ format: 'jwk' }));
  if (jwk === undefined) throw new Error('unreadable');
  return jwk;
}

describe('COSE keys', () => {
  for (const curve of ['P-256', 'P-384', 'P-521', 'Ed25519']) {
    it(`carries a key of ${curve} there and back`, () => {
      const jwk = makeKey(curve);
      expect(readCoseKey(decodeCbor(encodeCbor(coseKeyOf(jwk))))).to.deep.equal(jwk);
    });
  }

  const members = new Map(coseKeyOf(makeKey('P-256')) as ReadonlyMap<number, Cbor>);
  const refused: readonly (readonly [string, number, Cbor])[] = [
    ['a private key', -4, Buffer.alloc(32, 1)],
    ['a compressed point', -3, true],
    ['a short coordinate', -2, Buffer.alloc(31, 1)],
    ['a long coordinate', -3, Buffer.alloc(33, 1)],
    ['an unknown curve', -1, 8],
    ['a curve of the other kind', -1, 6],
    ['another type of key', 1, 4],
    ['an algorithm that contradicts', 3, -35],
  ];
  for (const [what, label, value] of refused) {
    it(`refuses ${what}`, () => {
      expect(readCoseKey(new Map([...members, [label, value]]))).to.equal(undefined);
    });
  }

  it('refuses a half of a key, whatever algorithm it names', () => {
    for (const label of [-2, -3]) {
      const half = new Map([...members, [3, -7] as const]);
      half.delete(label);
      expect(readCoseKey(half)).to.equal(undefined);
    }
  });

  it('accepts an algorithm that agrees, and refuses what is no map', () => {
    expect(readCoseKey(new Map([...members, [3, -9]]))).to.not.equal(undefined);
    for (const value of [undefined, null, 1, [], 'key']) expect(readCoseKey(value)).to.equal(undefined);
  });

  it('does not write keys that it would not read', () => {
    const jwk = makeKey('P-256');
    const { y: _, ...withoutY } = jwk;
    expect(coseKeyOf(withoutY)).to.equal(undefined);
    expect(coseKeyOf({ ...jwk, x: 'AA' })).to.equal(undefined);
    expect(coseKeyOf({ ...jwk, crv: 'P-384' })).to.equal(undefined);
    expect(coseKeyOf({ ...jwk, kty: 'OKP' })).to.equal(undefined);
  });
});

describe('COSE algorithms', () => {
  it('knows two numbers for each name', () => {
    const numbers = [-7, -9, -35, -51, -36, -52, -8, -19];
    const names = ['ES256', 'ES256', 'ES384', 'ES384', 'ES512', 'ES512', 'EdDSA', 'EdDSA'];
    expect(numbers.map(algorithmOfCose)).to.deep.equal(names);
    for (const name of SIGNING_ALGORITHMS) expect(algorithmOfCose(coseAlgorithm(name))).to.equal(name);
    for (const other of [5, -37, -257, 'ES256', undefined])
      expect(algorithmOfCose(other)).to.equal(undefined);
  });
});

describe('COSE_Sign1', () => {
  const protectedBytes = protectedHeaderOf('ES256');
  const signature = Buffer.alloc(64, 7);
  const parts = { protectedBytes, unprotectedHeader: new Map(), payload: Buffer.from('p'), signature };
  const algorithmIn = (header: Cbor, unprotectedHeader: Cbor = new Map()) =>
    requireCoseAlgorithm(
      readCoseSign1([encodeCbor(header), unprotectedHeader, null, signature]),
      ['ES256'],
      'issuer_alg',
    );

  it('reads what it built, tagged or not', () => {
    const built = decodeCbor(encodeCbor(buildCoseSign1(parts)));
    const { protectedHeader, ...read } = readCoseSign1(built);
    expect(read).to.deep.equal(parts);
    expect(protectedHeader.get(1)).to.equal(-7);
    expect(readCoseSign1(new Tagged(18, built)).signature).to.deep.equal(signature);
  });

  it('leaves a detached payload out', () => {
    const { payload: _, ...detached } = parts;
    expect(buildCoseSign1(detached)).to.deep.equal([protectedBytes, new Map(), null, signature]);
    expect(readCoseSign1(buildCoseSign1(detached)).payload).to.equal(undefined);
  });

  for (const [what, value] of [
    ['a COSE_Mac0', new Tagged(17, [protectedBytes, new Map(), null, signature])],
    ['three parts', [protectedBytes, new Map(), null]],
    ['five parts', [protectedBytes, new Map(), null, signature, null]],
    ['a protected header that is no bytes', [new Map(), new Map(), null, signature]],
    ['a signature that is no bytes', [protectedBytes, new Map(), null, 'signature']],
    ['a payload that is text', [protectedBytes, new Map(), 'p', signature]],
    ['a header that is no map', [protectedBytes, [], null, signature]],
    ['an undefined payload', [protectedBytes, new Map(), undefined, signature]],
    ['a protected header that is no CBOR', [Buffer.from('a1', 'hex'), new Map(), null, signature]],
    ['a protected header that is no map', [Buffer.from('80', 'hex'), new Map(), null, signature]],
    ['a label in both headers', [protectedBytes, new Map([[1, -7]]), null, signature]],
  ] as const) {
    it(`refuses ${what}`, () => {
      expect(reasonOf(() => readCoseSign1(value))).to.equal('malformed');
    });
  }

  it('may have a protected header that is empty, in either form', () => {
    for (const empty of ['', 'a0']) {
      const { protectedHeader } = readCoseSign1([Buffer.from(empty, 'hex'), new Map(), null, signature]);
      expect(protectedHeader.size).to.equal(0);
    }
  });

  it('takes the algorithm from the protected header alone', () => {
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

  it('signs an empty header as nothing', () => {
    const nothing = sigStructure(Buffer.alloc(0), Buffer.from('p'));
    expect(nothing.toString('hex')).to.equal('846a5369676e61747572653140404170');
    expect(sigStructure(Buffer.from('a0', 'hex'), Buffer.from('p')).equals(nothing)).to.equal(true);
    for (const other of ['a000', '80', 'a10126']) {
      expect(sigStructure(Buffer.from(other, 'hex'), Buffer.from('p')).equals(nothing), other).to.equal(
        false,
      );
    }
  });

  it('carries one certificate as bytes and several as an array', () => {
    const [one, two] = [Buffer.from('one').toString('base64'), Buffer.from('two').toString('base64')];
    expect(x5chainOf([one])).to.deep.equal(Buffer.from('one'));
    for (const chain of [[one], [one, two]]) {
      expect(readX5chain(new Map([[33, x5chainOf(chain)]]))).to.deep.equal(chain);
    }
    for (const value of [[], ['one'], [Buffer.from('one'), 1], 'one', null]) {
      expect(readX5chain(new Map([[33, value]]))).to.equal(undefined);
    }
  });
});
