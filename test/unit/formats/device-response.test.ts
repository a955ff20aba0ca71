import { hash } from 'node:crypto';
import { expect } from 'chai';
import { embed, encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import type { Cbor } from '../../../domain/formats/cbor/values.ts';
import { protectedHeaderOf } from '../../../domain/formats/cose/sign1.ts';
import { readMso } from '../../../domain/formats/mdoc/mso.ts';
import { openDeviceResponse } from '../../../domain/formats/mdoc/open.ts';
import { checkDeviceTransactionData } from '../../../domain/formats/mdoc/transaction-data.ts';
import type { Json } from '../../../domain/shared/json.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';

const SIGNED = [protectedHeaderOf('ES256'), new Map(), null, Buffer.alloc(64)];
const ITEM = embed(encodeCbor({ digestID: 0 }));
const DOCUMENT = { docType: 'org.example.badge', issuerSigned: { issuerAuth: SIGNED } };
const RESPONSE = { version: '1.0', documents: [DOCUMENT], status: 0 };
const open = (response: Cbor) => openDeviceResponse(encodeCbor(response).toString('base64url'));
const opened = (changes: Record<string, Cbor>) =>
  open({ ...RESPONSE, documents: [{ ...DOCUMENT, ...changes }] });
const withNameSpaces = (nameSpaces: Cbor) => opened({ issuerSigned: { issuerAuth: SIGNED, nameSpaces } });

describe('The form of a DeviceResponse', () => {
  it('has one document, with what was shown of it', () => {
    const { docType, items, deviceSigned } = withNameSpaces({ a: [ITEM] });
    expect([docType, [...items.keys()], deviceSigned]).to.deep.equal(['org.example.badge', ['a'], undefined]);
    expect(open(RESPONSE).items.size).to.equal(0);
  });

  it('may be signed by its device in one way, or not at all', () => {
    const nameSpaces = embed(encodeCbor(new Map()));
    const authOf = (device: Record<string, Cbor>) =>
      opened({ deviceSigned: { nameSpaces, ...device } }).deviceSigned?.auth;
    expect(authOf({})).to.equal(undefined);
    expect(authOf({ deviceAuth: {} })).to.equal(undefined);
    expect(authOf({ deviceAuth: { deviceMac: SIGNED } })).to.equal('mac');
    expect(authOf({ deviceAuth: { deviceSignature: SIGNED } })).to.have.property('signature');
    expect(() => authOf({ deviceAuth: { deviceSignature: SIGNED, deviceMac: SIGNED } })).to.throw(
      Refusal,
      'malformed: both',
    );
  });

  const wrong: readonly (readonly [string, string, () => unknown])[] = [
    ['is too long', 'at most 1572864 characters', () => openDeviceResponse('A'.repeat(1_572_865))],
    ['is padded', 'not base64url', () => openDeviceResponse(`${encodeCbor(RESPONSE).toString('base64')}=`)],
    ['has no status', 'status', () => open({ version: '1.0', documents: [DOCUMENT] })],
    ['has no documents', 'no documents', () => open({ ...RESPONSE, documents: [] })],
    ['has documents that are no list', 'no documents', () => open({ ...RESPONSE, documents: DOCUMENT })],
    ['has a type that is no text', 'docType', () => opened({ docType: 1 })],
    ['has a namespace that is no text', 'nameSpaces', () => withNameSpaces(new Map([[1, [ITEM]]]))],
    ['has a namespace that is no list', 'nameSpaces', () => withNameSpaces({ a: ITEM })],
    ['has namespaces that are no map', 'nameSpaces is not a map', () => withNameSpaces([])],
    ['has a namespace without items', 'nameSpaces', () => withNameSpaces({ a: [] })],
    ['has an item without a tag', 'nameSpaces', () => withNameSpaces({ a: [ITEM, 1] })],
    [
      'has a device that signs in no form',
      'nameSpaces of deviceSigned',
      () => opened({ deviceSigned: { nameSpaces: {} } }),
    ],
    ['has no issuer', 'issuerSigned is not a map', () => opened({ issuerSigned: undefined })],
  ];
  for (const [what, message, read] of wrong) {
    it(`is refused when it ${what}`, () =>
      expect(read).to.throw(Refusal, message).with.property('reason', 'malformed'));
  }

  it('has one document and no more', () => {
    expect(() => open({ ...RESPONSE, documents: [DOCUMENT, DOCUMENT] }))
      .to.throw(Refusal)
      .with.property('reason', 'multiple_documents');
  });

  it('has a security object inside a byte string', () => {
    expect(() => readMso(encodeCbor({ version: '1.0' }))).to.throw(Refusal, 'the payload has no tag 24');
  });
});

describe('Transaction data that a device confirms', () => {
  const [pay, sign] = ['eyJwYXkiOjF9', 'eyJzaWduIjoxfQ'];
  const hashOf = (text: string, name = 'sha256') => hash(name, text, 'base64url');
  const entry = (text: string, changes: object = {}) => ({
    ...{ namespace: 'org.example.tx', element: 'hash', text, algorithms: [], required: true },
    ...changes,
  });
  const confirm = (value: Json | undefined, ...entries: ReturnType<typeof entry>[]) =>
    checkDeviceTransactionData(value === undefined ? {} : { 'org.example.tx': { hash: value } }, entries);

  it('is what its hash stands for, one or several in any order', () => {
    expect(confirm(hashOf(pay), entry(pay))).to.deep.equal([pay]);
    expect(confirm([hashOf(sign), hashOf(pay)], entry(pay), entry(sign))).to.deep.equal([sign, pay]);
    expect(confirm(undefined)).to.deep.equal([]);
  });

  it('may be left to another credential where that could do so', () => {
    expect(confirm(undefined, entry(pay, { required: false }))).to.deep.equal([]);
    expect(confirm(hashOf(sign), entry(pay, { required: false }), entry(sign))).to.deep.equal([sign]);
  });

  it('is hashed by an algorithm that it names, and by SHA-256 where it names none', () => {
    const strong = entry(pay, { algorithms: ['sha-384', 'md5', 'sha-512'] });
    expect(confirm(hashOf(pay, 'sha384'), strong)).to.deep.equal([pay]);
    expect(confirm(hashOf(pay, 'sha512'), strong)).to.deep.equal([pay]);
    expect(() => confirm(hashOf(pay), strong)).to.throw(Refusal, 'unknown hash');
    expect(() => confirm(hashOf(pay, 'md5'), strong)).to.throw(Refusal, 'unknown hash');
    expect(() => confirm(hashOf(pay, 'sha384'), entry(pay))).to.throw(Refusal, 'unknown hash');
  });

  for (const [what, value, reason] of [
    ['nothing', undefined, 'transaction_data_missing'],
    ['the hash of another entry alone', [hashOf(sign)], 'transaction_data_missing'],
    [
      'a hash of nothing that was asked',
      [hashOf(pay), hashOf(sign), hashOf('x')],
      'transaction_data_mismatch',
    ],
    ['an empty list', [], 'transaction_data_mismatch'],
    ['what is no hash', 1, 'transaction_data_mismatch'],
    ['a list of what is no hash', [hashOf(pay), 1], 'transaction_data_mismatch'],
  ] as const) {
    it(`is refused with ${what}`, () => {
      expect(() => confirm(value as Json | undefined, entry(pay), entry(sign, { required: false })))
        .to.throw(Refusal)
        .with.property('reason', reason);
    });
  }

  it('is looked for in the element of its own type', () => {
    const other = entry(sign, { element: 'signature' });
    expect(() => confirm([hashOf(pay), hashOf(sign)], entry(pay), other)).to.throw(Refusal, 'unknown hash');
    expect(() => confirm(hashOf(pay), entry(pay), other)).to.throw(Refusal, 'org.example.tx signature');
  });
});
