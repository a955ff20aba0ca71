import { type Cbor, decodeCbor, encodeCbor, Tagged } from '../../../wallet/src/core/formats/cbor.ts';
import type { Family } from '../core/case.ts';
import { newKey } from '../core/jwt.ts';
import { table } from '../core/table.ts';
import { embedded, type Items, itemOf } from '../targets/mdoc.ts';
import { queryOf, type Verifier } from '../targets/verifier.ts';
import { answerWith, licence, presentsDocument } from './presenting.ts';

type CborMap = Map<Cbor, Cbor>;
const REFUSED = { status: [400] } as const;

const eachItem =
  (change: (item: CborMap) => Cbor) =>
  (items: Items): Items =>
    new Map([...items].map(([space, elements]) => [space, elements.map((element) => embedded(change(itemOf(element))))]));
const setElement =
  (name: string, value: Cbor) =>
  (map: CborMap): CborMap =>
    new Map(map).set(name, value);
const flip = (bytes: Cbor): Buffer => {
  const copy = Buffer.from(bytes as Uint8Array);
  copy[5] = (copy[5] ?? 0) ^ 1;
  return copy;
};
/** A changed MSO with the old signature. */
const mso =
  (change: (content: CborMap) => Cbor) =>
  ([head, chain, payload, signature]: readonly Cbor[]): Cbor => {
    const tagged = decodeCbor(payload as Uint8Array) as Tagged;
    return [head, chain, encodeCbor(embedded(change(decodeCbor(tagged.value as Uint8Array) as CborMap))), signature];
  };
const raw = (text: string) => answerWith((verifier, request) => verifier.answer(request, { [queryOf(request).id]: [text] }), 'mso_mdoc');

export const mdoc: Family<Verifier> = {
  id: 'mdoc',
  title: 'Presentations of mdocs',
  control: presentsDocument,
  cases: [
    ...table<Verifier>(
      { section: 'ISO/IEC 18013-5 section 9.1.3', why: 'an mdoc is shown by its device, for this request', safe: REFUSED },
      {
        'the signature of another device': licence(() => ({ key: newKey() })),
        'a transcript of another nonce': licence({ transcript: { nonce: 'another' } }),
        'a transcript of another verifier': licence({ transcript: { clientId: 'x509_hash:other' } }),
        'a transcript of another place': licence({ transcript: { responseUri: 'https://other.example/response' } }),
        'a transcript of another key': licence(() => ({ transcript: { jwk: newKey().jwk } })),
        'a transcript of a page': licence({ handover: 'OpenID4VPDCAPIHandover' }),
        'no signature of the device': licence({ deviceAuth: () => new Map() }),
        'a broken signature of the device': licence({
          deviceAuth: (signature) => {
            const [head, unprotectedHeader, payload, bytes] = signature as readonly Cbor[];
            return new Map<Cbor, Cbor>([['deviceSignature', [head, unprotectedHeader, payload, flip(bytes)] as Cbor]]);
          },
        }),
        'an empty signature of the device': licence({
          deviceAuth: (signature) =>
            new Map<Cbor, Cbor>([['deviceSignature', [...(signature as readonly Cbor[]).slice(0, 3), Buffer.alloc(0)]]]),
        }),
        'a MAC that nobody asked for': licence({
          deviceAuth: () => new Map<Cbor, Cbor>([['deviceMac', [encodeCbor(new Map([[1, 5]])), new Map(), null, Buffer.alloc(32)]]]),
        }),
        'a signature and a MAC': licence({
          deviceAuth: (signature) =>
            new Map<Cbor, Cbor>([
              ['deviceSignature', signature],
              ['deviceMac', [encodeCbor(new Map([[1, 5]])), new Map(), null, Buffer.alloc(32)]],
            ]),
        }),
        'an alg of the device that is none': licence({ protectedHeader: new Map([[1, 0]]) }),
        'no part of the device': licence({ document: (document) => new Map([...document].filter(([name]) => name !== 'deviceSigned')) }),
        'elements that the device adds by itself': licence((_, request) => {
          const [space, element] = queryOf(request).claims?.[0]?.path ?? ['org.example', 'x'];
          return { deviceNameSpaces: new Map([[space, new Map([[element, 'forged']])]]) };
        }),
      },
    ),
    ...table<Verifier>(
      { section: 'ISO/IEC 18013-5 section 9.1.2', why: 'what the issuer did not sign is not said by it', safe: REFUSED },
      {
        'a changed value': licence({ items: eachItem(setElement('elementValue', 'forged')) }),
        'a changed name': licence({ items: eachItem(setElement('elementIdentifier', 'forged')) }),
        'another number of a digest': licence({
          items: eachItem((item) => new Map(item).set('digestID', Number(item.get('digestID')) + 1)),
        }),
        'another namespace': licence({
          items: (items) => new Map([...items].map(([namespace, elements]) => [`${namespace}.other`, elements])),
        }),
        'an element twice': licence({
          items: (items) => new Map([...items].map(([namespace, elements]) => [namespace, [...elements, ...elements.slice(0, 1)]])),
        }),
        'no elements': licence({ items: () => new Map() }),
        'a broken signature of the issuer': licence({
          issuerAuth: ([head, chain, payload, bytes]) => [head, chain, payload, flip(bytes)] as Cbor,
        }),
        'an issuer without a signature': licence({
          issuerAuth: ([head, chain, payload]) => [head, chain, payload, Buffer.alloc(0)] as Cbor,
        }),
        'an issuer by no algorithm': licence({ issuerAuth: ([, ...otherParts]) => [encodeCbor(new Map([[1, 0]])), ...otherParts] as Cbor }),
        'an issuer without a certificate': licence({ issuerAuth: ([head, , payload, bytes]) => [head, new Map(), payload, bytes] as Cbor }),
        'a certificate of nonsense': licence({
          issuerAuth: ([head, , payload, bytes]) => [head, new Map([[33, Buffer.from('00', 'hex')]]), payload, bytes] as Cbor,
        }),
        'a document that lasts longer': licence({
          issuerAuth: mso((content) => {
            const validity = new Map(content.get('validityInfo') as CborMap).set('validUntil', new Tagged(0, '2099-01-01T00:00:00Z'));
            return new Map(content).set('validityInfo', validity);
          }),
        }),
        'a device key of the thief': licence(() => {
          const key = newKey();
          const coordinates = [key.jwk.x, key.jwk.y].map((part) => Buffer.from(part, 'base64url'));
          const device = new Map<Cbor, Cbor>([
            [1, 2],
            [-1, 1],
            [-2, coordinates[0]],
            [-3, coordinates[1]],
          ]);
          return { key, issuerAuth: mso((content) => new Map(content).set('deviceKeyInfo', new Map([['deviceKey', device]]))) };
        }),
        'another digest algorithm': licence({ issuerAuth: mso((content) => new Map(content).set('digestAlgorithm', 'SHA-1')) }),
      },
    ),
    ...table<Verifier>(
      { section: 'ISO/IEC 18013-5 section 8.3.2.1.2.2', why: 'an answer has one document of the type that was asked for', safe: REFUSED },
      {
        'another type of document': licence({ document: setElement('docType', 'org.example.other') }),
        'two documents': licence({
          response: (response) =>
            new Map(response).set('documents', [...(response.get('documents') as Cbor[]), ...(response.get('documents') as Cbor[])]),
        }),
        'no documents': licence({ response: setElement('documents', []) }),
        'a status of failure': licence({ response: setElement('status', 10) }),
        'no status': licence({ response: (response) => new Map([...response].filter(([name]) => name !== 'status')) }),
        'something behind the answer': licence({ bytes: (bytes) => Buffer.concat([bytes, Buffer.of(0)]) }),
        'an answer that was cut': licence({ bytes: (bytes) => bytes.subarray(0, bytes.length - 1) }),
        'a key twice': licence({
          bytes: (bytes) => Buffer.concat([Buffer.of((bytes[0] ?? 0) + 1), bytes.subarray(1), encodeCbor('status'), Buffer.of(0)]),
        }),
      },
    ),
    ...table<Verifier>(
      { section: 'RFC 8949 section 10', why: 'lengths of strangers are not believed', safe: REFUSED },
      {
        'a hundred thousand levels': raw(Buffer.alloc(100_000, 0x81).toString('base64url')),
        'a list of 2^64 - 1': raw(Buffer.from('9bffffffffffffffff', 'hex').toString('base64url')),
        'a text of two gigabytes': raw(Buffer.from('7a7fffffff00', 'hex').toString('base64url')),
        'text that is no base64url': raw('***'),
        'an SD-JWT': raw('eyJhbGciOiJub25lIn0.e30.~'),
        'a float that is no number': raw(Buffer.from('f97e00', 'hex').toString('base64url')),
      },
    ),
  ],
};
