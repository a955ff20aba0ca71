import { generateKeyPairSync, hash } from 'node:crypto';
import { expect } from 'chai';
import { parseDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { isUndisclosed, processDisclosures, UNDISCLOSED } from '../../../domain/formats/sd-jwt/disclosures.ts';
import { findSdJwtClaimProblems, prepareSdJwt } from '../../../domain/formats/sd-jwt/issue.ts';
import { assertKeyBindingHeader, assertNonce, verifyTransactionData } from '../../../domain/formats/sd-jwt/key-binding.ts';
import { parseSdJwt } from '../../../domain/formats/sd-jwt/parse.ts';
import {
  assertNoForbiddenDisclosures,
  assertRecipients,
  parseCertificateChain,
  parseHolderKey,
  parseIssuerHeader,
} from '../../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';
import { parsePublicJwk } from '../../../domain/shared/jwk.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';

const textOf = (value: Json) => Buffer.from(JSON.stringify(value)).toString('base64url');
const digestOf = (text: string) => hash('sha256', text, 'base64url');

/** Returns the reason of a rejection, or `taken`. */
function resultOf(work: () => unknown): string {
  try {
    work();
    return 'accepted';
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

const nested = (levels: number, core: Json): Json => (levels === 0 ? core : [nested(levels - 1, core)]);

const deepObject = (levels: number): JsonObject => (levels === 0 ? { x: 1 } : { a: deepObject(levels - 1) });

describe('disclosures of an SD-JWT', () => {
  const [name, city] = [textOf(['salt', 'name', 'Erika']), textOf(['salt', 'city', 'Berlin'])];
  const entry = textOf(['salt', 'DE']);
  const process = (payload: JsonObject, ...disclosures: string[]) => processDisclosures(payload, disclosures);

  it('list the disclosed claims of the top level', () => {
    const payload = { _sd: [digestOf(name)], address: { _sd: [digestOf(city)] } };
    const { claims, disclosedNames } = process(payload, name, city);
    expect([...disclosedNames]).to.deep.equal(['name']);
    expect(claims['address']).to.deep.equal(Object.assign(Object.create(null), { city: 'Berlin' }));
  });

  it('keep a placeholder for a withheld array entry', () => {
    const { claims } = process({ a: [{ '...': digestOf(entry) }, 'FR'] });
    expect(claims['a']).to.deep.equal([UNDISCLOSED, 'FR']);
    expect((claims['a'] as readonly unknown[]).map(isUndisclosed)).to.deep.equal([true, false]);
    expect(process({ a: [{ '...': digestOf(entry) }] }, entry).claims['a']).to.deep.equal(['DE']);
  });

  it('are hashed by SHA-256 by default', () => {
    const { claims } = processDisclosures({ _sd: [digestOf(name)] }, [name]);
    expect(claims).to.deep.equal(processDisclosures({ _sd_alg: 'sha-256', _sd: [digestOf(name)] }, [name]).claims);
    expect(claims).to.have.property('name');
  });

  const cases: readonly (readonly [string, string, JsonObject, readonly string[]])[] = [
    ['with a hash that is not a string', 'unsupported_hash', { _sd_alg: 256 }, []],
    ['with an unknown hash', 'unsupported_hash', { _sd_alg: 'sha-1' }, []],
    ['that are duplicates', 'duplicate_disclosure', { _sd: [digestOf(name)] }, [name, name]],
    ['that are not referenced', 'unreferenced_disclosure', { _sd: [] }, [name]],
    ['that are referenced twice', 'duplicate_digest', { _sd: [digestOf(name)], a: { _sd: [digestOf(name)] } }, [name]],
    ['whose digest is listed twice without a disclosure', 'duplicate_digest', { _sd: ['x', 'x'] }, []],
    ['that are not a list', 'malformed_disclosure', { _sd: [] }, [textOf({ a: 1 })]],
    ['that are empty', 'malformed_disclosure', { _sd: [] }, [textOf([])]],
    ['of a salt alone', 'malformed_disclosure', { _sd: [] }, [textOf(['salt'])]],
    ['with a salt that is not a string', 'malformed_disclosure', { _sd: [] }, [textOf([1, 'name', 'x'])]],
    ['of four parts', 'malformed_disclosure', { _sd: [] }, [textOf(['salt', 'name', 'x', 'y'])]],
    ['with a name that is not a string', 'malformed_disclosure', { _sd: [] }, [textOf(['salt', 1, 'x'])]],
    ['under an _sd that is not a list', 'malformed_sd', { _sd: 'x' }, []],
    ['under a digest that is not a string', 'malformed_sd', { _sd: [1] }, []],
    ['of an array element in _sd', 'wrong_disclosure_length', { _sd: [digestOf(entry)] }, [entry]],
    ['of a property in an array', 'wrong_disclosure_length', { a: [{ '...': digestOf(name) }] }, [name]],
    ['of an entry whose digest is no text', 'malformed_array_digest', { a: [{ '...': 1 }] }, []],
    ['of an array element with other properties', 'malformed_array_digest', { a: [{ '...': 'x', b: 1 }] }, []],
    ['of a claim that already exists', 'claim_exists', { _sd: [digestOf(name)], name: 'x' }, [name]],
    ['of a reserved name', 'reserved_claim_name', { _sd: [digestOf(textOf(['s', '_sd', 1]))] }, [textOf(['s', '_sd', 1])]],
    ['under a name for entries', 'reserved_key', { '...': 'x' }, []],
    ['under another hash below', 'nested_sd_alg', { a: { _sd_alg: 'sha-256' } }, []],
    ['in too deeply nested lists', 'too_deep', { a: nested(33, 1) }, []],
    ['in too deeply nested objects', 'too_deep', { a: [deepObject(32)] }, []],
    ['in lists of the maximum depth', 'accepted', { a: nested(31, 1) }, []],
  ];
  for (const [description, outcome, payload, disclosures] of cases) {
    it(`${description}: ${outcome}`, () => expect(resultOf(() => process(payload, ...disclosures))).to.equal(outcome));
  }

  const forbidden = (payload: JsonObject, ...disclosures: string[]) =>
    resultOf(() => assertNoForbiddenDisclosures(payload, process(payload, ...disclosures)));

  it('never contain a claim that must be visible, nor a part of one', () => {
    const status = textOf(['salt', 'status', {}]);
    expect(forbidden({ _sd: [digestOf(status)] }, status)).to.equal('forbidden_disclosure');
    expect(forbidden({ document: { _sd: [digestOf(status)] } }, status), 'below').to.equal('accepted');
    expect(forbidden({ aud: [{ '...': 'x' }] })).to.equal('forbidden_disclosure');
    expect(forbidden({ cnf: { jwk: [[{ _sd: [] }]] } })).to.equal('forbidden_disclosure');
    expect(forbidden({ aud: null, status: [null, 'x', { a: 1 }] })).to.equal('accepted');
  });
});

describe('protocol claims of an SD-JWT VC', () => {
  it('require an allowed signature algorithm', () => {
    const header = (changes: JsonObject) => () => parseIssuerHeader({ typ: 'dc+sd-jwt', alg: 'ES256', ...changes }, ['ES256']);
    expect(header({})()).to.equal('ES256');
    expect(resultOf(header({ alg: 'none' }))).to.equal('issuer_alg');
    expect(resultOf(header({ crit: ['x'] }))).to.equal('unsupported_crit');
    for (const typ of ['vc+sd-jwt', 'application/vc+sd-jwt', '', 1]) {
      expect(resultOf(header({ typ })), `${typ}`).to.equal('issuer_typ');
    }
  });

  it('include certificates, or a fault', () => {
    expect(parseCertificateChain({ x5c: ['AAAA'] })).to.deep.equal(['AAAA']);
    expect(() => parseCertificateChain({})).to.throw(Refusal, 'no x5c');
    for (const x5c of [null, [], 'AAAA', ['AA-_'], ['AAAA', 1]]) {
      expect(() => parseCertificateChain({ x5c })).to.throw(Refusal, 'x5c is not base64');
    }
  });

  it('may name several audiences', () => {
    const audienceResult = (aud: Json, ...recipients: string[]) => resultOf(() => assertRecipients(aud, recipients));
    expect(audienceResult('a', 'b', 'a')).to.equal('accepted');
    expect(audienceResult(['a', 'b'], 'b')).to.equal('accepted');
    expect(audienceResult([], 'b')).to.equal('credential_audience');
    expect(resultOf(() => assertRecipients('a'))).to.equal('credential_audience');
    expect(resultOf(() => assertRecipients(undefined))).to.equal('accepted');
    for (const aud of [null, 1, [1], {}]) expect(audienceResult(aud, 'b')).to.equal('malformed');
  });

  it('contain a key, whose algorithm may be named in either property', () => {
    const jwkOf = (key: { export(options: { format: 'jwk' }): object }) => key.export({ format: 'jwk' }) as JsonObject;
    const okp = jwkOf(generateKeyPairSync('ed25519').publicKey);
    const ec = jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey);
    const holder = (jwk: Json) => resultOf(() => parseHolderKey({ cnf: { jwk } }));
    for (const alg of ['EdDSA', 'Ed25519']) expect(holder({ ...okp, alg })).to.equal('accepted');
    expect(holder(okp)).to.equal('accepted');
    for (const jwk of [{ ...ec, alg: 'Ed25519' }, { ...ec, alg: 'EdDSA' }, { ...okp, alg: 'ES256' }, { ...ec, alg: null }, [ec], null]) {
      expect(holder(jwk)).to.equal('holder_key_missing');
    }
    expect(resultOf(() => parseHolderKey({ cnf: [ec] }))).to.equal('holder_key_missing');
    expect(resultOf(() => parseHolderKey({}))).to.equal('holder_key_missing');
  });

  it('are parsed from a well-formed SD-JWT VC', () => {
    expect(() => parseSdJwt('e30.e30.AA')).to.throw(Refusal, 'no separator');
    const longText = `${'A'.repeat(500 * 1024)}~`;
    expect(parseSdJwt(`e30.e30.AA~${longText.repeat(3)}`).disclosures).to.have.length(3);
  });

  it('are rejected with the limit in the message when they exceed one', () => {
    const tooLong = `e30.e30.AA~${'A'.repeat(1_572_864)}~`;
    expect(() => parseSdJwt(tooLong)).to.throw(Refusal, 'too long: at most 1572864 characters');
    const manyDisclosures = `e30.e30.AA~${'A~'.repeat(1_001)}`;
    expect(() => parseSdJwt(manyDisclosures)).to.throw(Refusal, 'too many disclosures: at most 1000');
    const header = { alg: 'ES256', x5c: Array(7).fill('AAAA') };
    expect(() => parseSdJwt(`${textOf(header)}.e30.AA~`)).to.throw(Refusal, 'x5c is too long: at most 6');
    const members = textOf(Object.fromEntries(Array.from({ length: 5_001 }, (_, n) => [`a${n}`, 1])));
    expect(() => parseSdJwt(`e30.${members}.AA~`)).to.throw(Refusal, 'more than 5000 properties');
    const disclosure = textOf(['salt', 'name', Array(2_001).fill(1)]);
    expect(() => processDisclosures({ _sd: [] }, [disclosure])).to.throw(Refusal, 'at most 2000 properties');
  });
});

describe('key binding of a holder', () => {
  it('is signed by the algorithm of its key, regardless of the number of allowed algorithms', () => {
    const key = parsePublicJwk(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }));
    if (key === undefined) throw new Error('unreadable');
    const header = (alg: string, typ = 'kb+jwt') => resultOf(() => assertKeyBindingHeader({ alg, typ }, key, ['ES256', 'ES384']));
    expect([header('ES256'), header('ES384'), header('ES512')]).to.deep.equal(['accepted', 'kb_alg', 'kb_alg']);
    expect(header('ES256', 'jwt')).to.equal('kb_typ');
  });

  it('has the nonce of the request, as text', () => {
    const nonce = (payload: JsonObject) => resultOf(() => assertNonce(payload, 'n-1'));
    expect([nonce({ nonce: 'n-1' }), nonce({ nonce: 'n-2' }), nonce({ nonce: 5 }), nonce({ nonce: ['n-1'] }), nonce({})]).to.deep.equal([
      ...['accepted', 'nonce_mismatch', 'kb_claim_type', 'kb_claim_type', 'kb_claim_missing'],
    ]);
  });

  const offering = (...algorithms: Json[]) => textOf({ transaction_data_hashes_alg: algorithms });
  const plain = textOf({ type: 'pay' });
  const confirm = (claims: JsonObject, required: string[], alternatives: string[] = []) =>
    resultOf(() => verifyTransactionData(claims, required, alternatives));
  const hashes = (texts: string[], alg?: string, name = 'sha256') => ({
    transaction_data_hashes: texts.map((text) => hash(name, text, 'base64url')),
    ...(alg !== undefined && { transaction_data_hashes_alg: alg }),
  });

  it('confirms the requested transaction data', () => {
    expect(verifyTransactionData(hashes([plain]), [plain], [])).to.deep.equal([plain]);
    expect(verifyTransactionData(hashes([plain]), [], [plain])).to.deep.equal([plain]);
    expect(verifyTransactionData({}, [], [plain])).to.deep.equal([]);
    expect(verifyTransactionData({ transaction_data_hashes: 'x' }, [], [])).to.deep.equal([]);
    expect(confirm({}, [plain])).to.equal('transaction_data_missing');
    for (const transaction_data_hashes of [[], 'x', [1], null]) {
      expect(confirm({ transaction_data_hashes }, [], [plain])).to.equal('transaction_data_mismatch');
    }
  });

  it('names the hash algorithm if the request named any, and one of those', () => {
    const several = offering('sha-256', 'sha-384');
    expect(confirm(hashes([several], 'sha-256'), [several])).to.equal('accepted');
    expect(confirm(hashes([several], 'sha-384', 'sha384'), [several])).to.equal('accepted');
    expect(confirm(hashes([several]), [several]), 'not named').to.equal('transaction_data_alg');
    expect(confirm(hashes([several], 'sha-512', 'sha512'), [several])).to.equal('transaction_data_alg');
    expect(confirm(hashes([several, plain], 'sha-256'), [several, plain])).to.equal('accepted');
    const weak = offering('md5');
    expect(confirm(hashes([weak], 'md5', 'md5'), [weak])).to.equal('transaction_data_alg');
    for (const empty of [offering(), textOf({ transaction_data_hashes_alg: 'sha-384' }), plain, 'no JSON']) {
      expect(confirm(hashes([empty]), [empty]), 'SHA-256 where none is named').to.equal('accepted');
      expect(confirm(hashes([empty], 'sha-384', 'sha384'), [empty])).to.equal('transaction_data_alg');
    }
  });
});

describe('disclosure frame applied to claims', () => {
  const faults = (claims: JsonObject, frame?: object) =>
    findSdJwtClaimProblems(claims, frame && parseDisclosureFrame(frame)).map(({ path }) => path);
  const frameOf = (levels: number): object => (levels === 0 ? {} : { a: frameOf(levels - 1) });

  it('is rejected if it does not fit the claims', () => {
    expect(faults({ a: { b: 1 } }, { a: { _sd: ['b'] } })).to.deep.equal([]);
    expect(faults({ a: 'text' }, { a: { _sd: ['b'] } })).to.deep.equal(['.a']);
    expect(faults({ a: null }, { a: {} })).to.deep.equal(['.a']);
    expect(faults({ a: ['x'] }, { a: { _sd: ['0'] } })).to.deep.equal(['.a']);
    expect(faults({ a: { b: 1 } }, { a: { _sd: [0] } })).to.deep.equal(['.a']);
    expect(faults({ a: [{ b: 1 }, 'x'] }, { a: { 0: { _sd: ['b'] } } })).to.deep.equal([]);
    expect(faults({ a: [{ b: 1 }, 'x'] }, { a: { 1: { _sd: ['b'] } } })).to.deep.equal(['.a.1']);
    expect(faults({ a: ['x'] }, { a: { '00': { _sd: ['b'] }, 7: { _sd: ['b'] } } }), 'no such position').to.deep.equal([]);
    expect(faults({}, { a: { _sd: ['b'] }, toString: { _sd: ['b'] } }), 'an unknown property').to.deep.equal([]);
    expect(faults({ exp: 1 })).to.deep.equal(['.exp']);
    expect(faults({ a: [{ '...': 1 }] })).to.deep.equal(['.a....']);
  });

  it('is rejected if no verifier could read the result, with the limit in the message', () => {
    const messageOf = (claims: JsonObject, frame?: object) =>
      findSdJwtClaimProblems(claims, frame && parseDisclosureFrame(frame)).map(({ path, message }) => [path, message]);
    const portrait = 'A'.repeat(1_050_000);
    expect(messageOf({ portrait }, { _sd: ['portrait'] })).to.deep.equal([]);
    expect(messageOf({ portrait })).to.deep.equal([]);
    const [[path, message] = []] = messageOf({ portrait: `${portrait}${portrait}` }, { _sd: ['portrait'] });
    expect(path).to.equal('');
    expect(message).to.match(/the maximum is 1409024.* at most 1572864/);
    const names = Array.from({ length: 1_001 }, (_, n) => `a${n}`);
    const claims = Object.fromEntries(names.map((name) => [name, 1]));
    expect(messageOf(claims, { _sd: names }).join()).to.match(/1001 disclosures; the maximum is 1000/);
    expect(messageOf(claims, { _sd: names.slice(1) })).to.deep.equal([]);
    const commas = { text: ','.repeat(2_500) };
    expect(messageOf(commas)).to.deep.equal([]);
    expect(messageOf(commas, { _sd: ['text'] }).join()).to.match(/2000 in one disclosure/);
    expect(messageOf({ list: Array(5_000).fill(1) }).join()).to.match(/4900 in what is always visible/);
  });

  it('is rejected if the claims or the frame are nested too deeply', () => {
    expect(faults(deepObject(23))).to.deep.equal([]);
    expect(faults(deepObject(24))).to.have.length(1);
    expect(faults({ a: nested(23, 1) })).to.deep.equal([]);
    expect(faults({ a: nested(24, 1) })).to.deep.equal(['.a']);
    expect(() => parseDisclosureFrame(frameOf(23))).to.not.throw();
    expect(() => parseDisclosureFrame(frameOf(24))).to.throw(Failure, 'nested at most');
  });

  it('adds the configured number of decoys, and one for each absent optional property', () => {
    const issue = (claims: JsonObject, frame: Parameters<typeof prepareSdJwt>[0]['frame']) => {
      const contents = { header: {}, alwaysVisible: {}, claims, random: (length: number) => Buffer.alloc(length, 7) };
      const { signingInput, disclosures } = prepareSdJwt(frame === undefined ? contents : { ...contents, frame });
      return { payload: parseSdJwt(`${signingInput}.AA~`).issuer.payload, disclosures };
    };
    const padded = { ...parseDisclosureFrame({ _sd: ['a', 'b'], _sd_decoy: 1 }), padded: new Set(['a', 'b']) };
    const disclosed = issue({ a: 1, c: 2 }, padded);
    expect(disclosed.payload['_sd']).to.have.length(3);
    expect([disclosed.disclosures.length, disclosed.payload['_sd_alg'], disclosed.payload['c']]).to.deep.equal([1, 'sha-256', 2]);
    expect(issue({ a: 1, b: 2 }, padded).payload['_sd']).to.have.length(3);
    expect(issue({}, padded).payload['_sd']).to.have.length(3);
    const list = issue({ l: ['x', 'y'] }, parseDisclosureFrame({ l: { _sd: [0], _sd_decoy: 2 } }));
    expect(list.payload['l']).to.have.length(4);
    expect((list.payload['l'] as Json[])[1]).to.equal('y');
    expect(issue({ a: null, b: { c: null } }, parseDisclosureFrame({ _sd: ['a'], b: { _sd: ['c'] } })).disclosures).to.have.length(2);
  });

  it('does not allow decoys to replace claims of the issuer', () => {
    const contents = { header: {}, claims: { vct2: 1 }, random: (length: number) => Buffer.alloc(length) };
    expect(() => prepareSdJwt({ ...contents, alwaysVisible: { vct2: 2 } })).to.throw(Failure, 'is set by the issuer');
    expect(() => prepareSdJwt({ ...contents, alwaysVisible: { other: 2 } })).to.not.throw();
  });

  for (const [description, frame] of [
    ['more decoys than a hundred', { _sd_decoy: 101 }],
    ['half a decoy', { _sd_decoy: 0.5 }],
    ['decoys as text', { _sd_decoy: '5' }],
    ['a reserved name for a child', { a: { '...': {} } }],
  ] as const) {
    it(`is rejected with ${description}`, () => expect(() => parseDisclosureFrame(frame)).to.throw(Failure));
  }

  it('is accepted with a hundred decoys', () => {
    expect(parseDisclosureFrame({ _sd_decoy: 100 }).decoys).to.equal(100);
    expect(parseDisclosureFrame({ a: { vct: {} } }).children.size, 'names of the protocol below').to.equal(1);
  });
});
