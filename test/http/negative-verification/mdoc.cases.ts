import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type Cbor, type CborMap, type EncodedCbor, tdate } from '../../../domain/formats/cbor/values.ts';
import { dcApiTranscript, interactiveTranscript } from '../../../domain/formats/mdoc/session-transcript.ts';
import type { MdocOverrides } from '../../support/mdoc-maker.ts';
import { newKey, now } from '../../support/raw-wallet.ts';
import { flipFirstByte } from '../../support/sd-jwt-maker.ts';
import { type CertificateOptions, certify, DOCUMENT_SIGNER, READER, WEB_SERVER } from '../../support/test-certificates.ts';
import { bending, DOC_TYPE, NAMESPACE, type PresentationCase, type World } from './world.ts';

const bent = bending<MdocOverrides>((world, asked, bend) => world.licence(asked, bend), { format: 'mso_mdoc' });

type Parts = Record<string, Cbor>;
const members = (value: Cbor) => value as Parts;

/** Changes one item after it was hashed. */
const item = (change: (item: Map<string, Cbor>) => void, name = 'family_name'): MdocOverrides => ({
  changeItems: (items) => mapItems(items, (one) => (nameOf(one) === name ? edited(one, change) : one)),
});
const mapItems = (items: ReadonlyMap<string, readonly EncodedCbor[]>, change: (one: EncodedCbor) => EncodedCbor) =>
  new Map([...items].map(([namespace, all]) => [namespace, all.map(change)] as const)) as unknown as CborMap;
const nameOf = ({ content }: EncodedCbor) => (decodeCbor(content) as CborMap).get('elementIdentifier');
function edited({ content }: EncodedCbor, change: (item: Map<string, Cbor>) => void): EncodedCbor {
  const copy = new Map(decodeCbor(content) as ReadonlyMap<string, Cbor>);
  change(copy);
  return embed(encodeCbor(copy));
}

const at = (days: number) => tdate(new Date((now() + days * 86_400) * 1000));
const valid = (signed: Cbor, validFrom: Cbor, validUntil: Cbor): MdocOverrides => ({
  mso: (mso) => mso.set('validityInfo', { signed, validFrom, validUntil }),
});
const device = (change: (deviceSigned: Parts) => Cbor): MdocOverrides => ({
  document: (document) => ({ ...document, deviceSigned: change(members(document['deviceSigned'])) }),
});
const certified = (options: (world: World) => CertificateOptions) => async (world: World) => {
  const leaf = await certify(options(world));
  return { issuer: { key: leaf, chain: [leaf.certificate] } };
};
/** A COSE_Mac0 that is as good as any. */
const MAC: Cbor = [encodeCbor(new Map([[1, 5]])), new Map(), null, Buffer.alloc(32)];

const FORM: readonly PresentationCase[] = [
  ...bent(109, 'malformed', {
    'not base64url': { text: (text) => `${text}!` },
    'padded base64': { text: (text) => `${text}=` },
    'base64 of the other alphabet': { text: () => '+/+/' },
    'no text': { text: () => '' },
    'a byte more': { bytes: (bytes) => Buffer.concat([bytes, Buffer.of(0)]) },
    'a byte less': { bytes: (bytes) => bytes.subarray(0, -1) },
    'half of it': { bytes: (bytes) => bytes.subarray(0, bytes.length / 2) },
    'no CBOR': { bytes: () => Buffer.from('hello') },
    'CBOR of something else': { bytes: () => encodeCbor(['1.0']) },
  }),
  ...[10, 11, 12, '0'].flatMap((status) =>
    bent(110, 'response_status', { [`the status ${JSON.stringify(status)}`]: { response: (response) => ({ ...response, status }) } }),
  ),
  ...bent(110, 'malformed', {
    'no documents': { response: ({ documents: _, ...rest }) => rest },
    'an empty list of documents': { response: (response) => ({ ...response, documents: [] }) },
    'no status': { response: ({ status: _, ...rest }) => rest },
    'proofs without knowledge': { response: (response) => ({ ...response, zkDocuments: response['documents'] ?? [] }) },
  }),
  ...bent(110, 'multiple_documents', {
    'two documents': {
      response(response) {
        const [document] = response['documents'] as Cbor[];
        return { ...response, documents: [document, document] };
      },
    },
  }),
  ...bent(110, 'unsupported_version', { 'a version of the future': { response: (response) => ({ ...response, version: '2.0' }) } }),
];

const ITEMS: readonly PresentationCase[] = [
  ...bent(111, 'digest_mismatch', {
    'a value that was changed': item((one) => one.set('elementValue', 'Nygaard')),
    'a value that was changed beside the one that is asked for': item((one) => one.set('elementValue', false), 'age_over_18'),
    'another digestID': item((one) => one.set('digestID', 2)),
    'an unknown digestID': item((one) => one.set('digestID', 99)),
    'another random': item((one) => one.set('random', Buffer.alloc(24))),
    'another namespace': { changeItems: (items) => new Map([['org.example', items.get(NAMESPACE) ?? []]]) as unknown as CborMap },
    'a namespace that is there twice over': {
      changeItems: (items) => new Map([...items, ['org.example', items.get(NAMESPACE) ?? []]]) as unknown as CborMap,
    },
    'an item that was written in another way': {
      changeItems: (items) =>
        mapItems(items, ({ content }) => {
          const long = Buffer.concat([Buffer.of(0xd9, 0, 24, 0x59, 0, content.length), content]);
          return decodeCbor(long) as EncodedCbor;
        }),
    },
  }),
  ...bent(111, 'malformed', {
    'items without tag 24': {
      changeItems: (items) => new Map([...items].map(([name, all]) => [name, all.map(({ content }) => content)])) as unknown as CborMap,
    },
    'a short random': { item: (one) => one.set('random', Buffer.alloc(8)) },
    'a negative digestID': { item: (one) => one.set('digestID', -1) },
  }),
  ...bent(112, 'duplicate_element', {
    'an item twice': { changeItems: (items) => new Map([...items].map(([name, all]) => [name, [...all, all[0]]])) as unknown as CborMap },
    'two values of one element': {
      item: (one) => {
        if (one.get('elementIdentifier') === 'height') one.set('elementIdentifier', 'family_name');
      },
    },
  }),
  // The device signs the type together with the transcript.
  ...bent(
    113,
    'doctype_mismatch',
    { 'another docType of the document': { document: (document) => ({ ...document, docType: 'org.other' }) } },
    { effect: 'spoilsAll' },
  ),
  ...bent(113, 'doctype_mismatch', { 'another docType of the security object': { mso: (mso) => mso.set('docType', 'org.other') } }),
  ...bent(113, 'doctype_mismatch', { 'another docType than was asked for': {} }, { query: { meta: { doctype_value: 'org.other' } } }),
  ...bent(113, 'doctype_mismatch', { 'a docType in other letters': {} }, { query: { meta: { doctype_value: DOC_TYPE.toUpperCase() } } }),
];

const ISSUER: readonly PresentationCase[] = [
  ...bent(114, 'credential_expired', { 'an mdoc that has expired': () => valid(at(-30), at(-30), at(-1)) }),
  ...bent(114, 'credential_not_yet_valid', {
    'an mdoc that is not valid yet': () => valid(at(-1), at(1), at(30)),
    'an mdoc that was signed tomorrow': () => valid(at(1), at(-1), at(30)),
  }),
  ...bent(114, 'signed_outside_certificate', {
    'an mdoc that is older than the certificate': () => valid(tdate(new Date('2024-06-01T00:00:00Z')), at(-1), at(30)),
  }),
  ...bent(114, 'malformed', {
    'times without tag': () => valid('2026-01-01T00:00:00Z', at(-1), at(30)),
    'times of another zone': () => ({
      mso: (mso) => {
        const text = encodeCbor('2046-01-01T00:00:00+02:00');
        const until = decodeCbor(Buffer.concat([Buffer.of(0xc0), text]));
        mso.set('validityInfo', { signed: at(-1), validFrom: at(-1), validUntil: until });
      },
    }),
    'no validity': { mso: (mso) => mso.delete('validityInfo') },
  }),
  ...bent(115, 'unsupported_hash', {
    'SHA-1': { mso: (mso) => mso.set('digestAlgorithm', 'SHA-1') },
    'a hash in other letters': { mso: (mso) => mso.set('digestAlgorithm', 'sha-256') },
  }),
  ...bent(116, 'issuer_signature', {
    'a signature by another key': () => ({ issuerKey: newKey() }),
    'a security object that was changed': {
      issuerAuth: ([head, header, payload, signature]) => {
        const changed = Buffer.from(payload as Buffer);
        const place = changed.indexOf('docType') + 12;
        changed.writeUInt8(changed.readUInt8(place) ^ 1, place);
        return [head, header, changed, signature];
      },
    },
    'a signature that is cut': {
      issuerAuth: ([head, header, payload, signature]) => [head, header, payload, (signature as Buffer).subarray(1)],
    },
    'a critical header that came later': {
      issuerAuth: ([, header, payload, signature]) => [
        encodeCbor(
          new Map([
            [1, -7],
            [4, 1],
          ]),
        ),
        header,
        payload,
        signature,
      ],
    },
  }),
  ...bent(116, 'issuer_alg', {
    'no alg': { issuerHeader: (head) => head.delete(1) },
    'alg in the unprotected header': {
      issuerHeader(head, header) {
        head.delete(1);
        header.set(1, -7);
      },
    },
    'a MAC in place of the signature': { issuerAuth: () => MAC },
    'a MAC as alg': { issuerHeader: (head) => head.set(1, 5) },
    'the alg of another curve': { issuerHeader: (head) => head.set(1, -35) },
  }),
  ...bent(116, 'unsupported_crit', {
    'an unknown critical header': {
      issuerHeader(head) {
        head.set(2, [99]);
        head.set(99, 1);
      },
    },
  }),
  ...bent(116, 'issuer_key_unresolved', {
    'no x5chain': { issuerHeader: (_, header) => header.delete(33) },
    'an empty x5chain': { issuerHeader: (_, header) => header.set(33, []) },
    'an x5chain of text': ({ issuer }) => ({ issuerHeader: (_, header) => header.set(33, issuer.chain[0]) }),
  }),
  ...bent(116, 'malformed', {
    'no payload': { issuerAuth: ([head, header, , signature]) => [head, header, null, signature] },
    'three parts': { issuerAuth: ([head, header, payload]) => [head, header, payload] },
  }),
  ...bent(116, 'untrusted_chain', {
    'a chain to an unknown root': async () => {
      const root = await certify({ name: 'Authority', ca: true });
      const leaf = await certify({ name: 'Issuer', by: root });
      return { issuer: { key: leaf, chain: [leaf.certificate] } };
    },
    'a signer that signed itself': certified(() => ({ name: 'Self' })),
  }),
  ...bent(116, 'certificate_expired', {
    'a signer that has expired': certified(({ authority }) => ({ name: 'Old', by: authority, until: '2025-06-01T00:00:00Z' })),
  }),
  ...bent(116, 'certificate_profile', {
    'the certificate of a web server': certified(({ authority }) => ({
      name: 'Web server',
      by: authority,
      purposes: [WEB_SERVER],
      critical: true,
    })),
    'the certificate of a reader': certified(({ authority }) => ({ name: 'Reader', by: authority, purposes: [READER], critical: true })),
    'a licence by a signer of anything': certified(({ authority }) => ({ name: 'Any', by: authority })),
    'a licence by a signer whose extended key usage may be passed over': certified(({ authority }) => ({
      name: 'Not critical',
      by: authority,
      ...DOCUMENT_SIGNER,
      critical: false,
    })),
  }),
  ...bent(116, 'issuer_country_mismatch', {
    'a signer of another country than its authority': certified(({ authority }) => ({
      name: 'Abroad, C=FR',
      by: authority,
      ...DOCUMENT_SIGNER,
    })),
  }),
  ...bent(116, 'issuer_key_unresolved', {
    'a signer whose end is no time': certified(({ authority }) => ({
      name: 'Endless',
      by: authority,
      validity: { notAfter: '271399000000Z' },
    })),
  }),
];

const authorized =
  (keyAuthorizations: Parts) =>
  (mso: Map<string, Cbor>): void => {
    mso.set('deviceKeyInfo', { ...members(mso.get('deviceKeyInfo')), keyAuthorizations });
  };

const DEVICE: readonly PresentationCase[] = [
  ...bent(117, 'device_auth_missing', {
    'no deviceSigned': { document: ({ deviceSigned: _, ...rest }) => rest },
    'no deviceAuth': device(({ deviceAuth: _, ...rest }) => rest),
    'an empty deviceAuth': { deviceAuth: () => ({}) },
  }),
  ...bent(117, 'malformed', {
    'a signature and a MAC': { deviceAuth: (deviceSignature) => ({ deviceSignature, deviceMac: MAC }) },
    'a payload in the signature of the device': {
      deviceAuth: ([head, header, , signature]) => ({ deviceSignature: [head, header, Buffer.from('payload'), signature] }),
    },
  }),
  ...bent(118, 'device_signature', {
    'another device': () => ({ holder: newKey() }),
    'a signature that was changed': {
      deviceAuth([head, header, payload, signature]) {
        const changed = Buffer.from(flipFirstByte((signature as Buffer).toString('base64url')), 'base64url');
        return { deviceSignature: [head, header, payload, changed] };
      },
    },
    'elements that came later': device((deviceSigned) => ({
      ...deviceSigned,
      nameSpaces: embed(encodeCbor({ 'org.example': { later: 1 } })),
    })),
  }),
  ...bent(118, 'device_alg', {
    'no alg of the device': { deviceHeader: (head) => head.delete(1) },
    'an alg of the device that does not fit': { deviceHeader: (head) => head.set(1, -35) },
  }),
  ...bent(118, 'holder_key_missing', {
    'no device key': { mso: (mso) => mso.set('deviceKeyInfo', {}) },
    'a private device key': {
      mso(mso) {
        const { deviceKey } = members(mso.get('deviceKeyInfo'));
        const key = new Map([...(deviceKey as CborMap), [-4, Buffer.alloc(32)] as const]);
        mso.set('deviceKeyInfo', { deviceKey: key as CborMap });
      },
    },
  }),
  ...bent(119, 'device_signature', {
    'a transcript of another nonce': (world, asked) => ({ transcript: world.transcript(asked, { nonce: 'other' }) }),
    'a transcript without prefix': (world, asked) => ({
      transcript: world.transcript(asked, { clientId: asked.payload['client_id'].slice(10) }),
    }),
    'a transcript of another address': (world, asked) => ({
      transcript: world.transcript(asked, { responseUri: `${asked.payload['response_uri']}/` }),
    }),
    'a transcript of another request': async (world) => ({ transcript: world.transcript(await world.ask()) }),
    'a transcript of another tenant': async (world) => ({ transcript: world.transcript(await world.ask({}, 'rival')) }),
    'an empty transcript': { transcript: encodeCbor([null, null, null]) },
  }),
  ...bent(
    120,
    'device_signature',
    {
      'a transcript without thumbprint': (world, asked) => ({ transcript: world.transcript(asked, { encryptionKey: undefined }) }),
      'a transcript of another key': (world, asked) => ({ transcript: world.transcript(asked, { encryptionKey: newKey().jwk as never }) }),
    },
    { configuration: { responseMode: 'direct_post.jwt' } },
  ),
  ...bent(121, 'device_signature', {
    'a transcript of the Digital Credentials API': ({ service }, { payload }) => ({
      transcript: dcApiTranscript({
        origin: service.address,
        nonce: payload['nonce'],
        encryptionKey: payload['client_metadata'].jwks?.keys[0],
      }),
    }),
    'a transcript of an interactive authorization': (_, { payload }) => ({
      transcript: interactiveTranscript({
        endpoint: payload['response_uri'],
        nonce: payload['nonce'],
        encryptionKey: payload['client_metadata'].jwks?.keys[0],
      }),
    }),
  }),
  ...bent(123, 'device_alg', { 'a MAC that was not offered': { deviceAuth: () => ({ deviceMac: MAC }) } }),
  ...bent(124, 'key_authorization', {
    'an element of the device that nobody allowed': { deviceNameSpaces: { [NAMESPACE]: { family_name: 'Device' } } },
    'an element of the device beside those that are allowed': {
      mso: authorized({ dataElements: { [NAMESPACE]: ['height'] } }),
      deviceNameSpaces: { [NAMESPACE]: { height: 1, family_name: 'Device' } },
    },
    'an element of the device in another namespace': {
      mso: authorized({ nameSpaces: ['org.example'] }),
      deviceNameSpaces: { [NAMESPACE]: { family_name: 'Device' } },
    },
  }),
  ...bent(125, 'missing_claim', {
    'a claim that only the device vouches for': {
      mso: authorized({ nameSpaces: [NAMESPACE] }),
      changeItems: (items) =>
        new Map([...items].map(([name, all]) => [name, all.filter((one) => nameOf(one) !== 'family_name')])) as unknown as CborMap,
      deviceNameSpaces: { [NAMESPACE]: { family_name: 'Device' } },
    },
    'a claim that was withheld': {
      changeItems: (items) =>
        new Map([...items].map(([name, all]) => [name, all.filter((one) => nameOf(one) !== 'family_name')])) as unknown as CborMap,
    },
    'no namespaces': {
      document(document) {
        const { nameSpaces: _, ...rest } = members(document['issuerSigned']);
        return { ...document, issuerSigned: rest };
      },
    },
  }),
  ...bent(125, 'value_mismatch', { 'another value': {} }, { query: { claims: [{ path: [NAMESPACE, 'age_over_18'], values: [false] }] } }),
  ...bent(126, 'malformed', {
    '40 levels of arrays': { bytes: () => Buffer.concat([Buffer.alloc(40, 0x81), Buffer.of(0)]) },
    '100 000 levels of arrays': { bytes: () => Buffer.alloc(100_000, 0x81) },
    'an array of 2^64 - 1': { bytes: () => Buffer.concat([Buffer.of(0x9b), Buffer.alloc(8, 0xff)]) },
    'a byte string of 2 GiB': { bytes: () => Buffer.from('5a7fffffff00', 'hex') },
    'a map of 2^32': { bytes: () => Buffer.from('bb0000000100000000', 'hex') },
    '100 000 empty maps': { bytes: () => Buffer.concat([Buffer.from('9a000186a0', 'hex'), Buffer.alloc(100_000, 0xa0)]) },
    'a key that stands there twice': {
      bytes(bytes) {
        const status = encodeCbor({ status: 0 }).subarray(1);
        return Buffer.concat([Buffer.of(bytes.readUInt8(0) + 1), bytes.subarray(1), status]);
      },
    },
    'a key that stands in an item twice': {
      changeItems: (items) =>
        mapItems(items, ({ content }) => {
          const again = encodeCbor({ digestID: 0 }).subarray(1);
          return embed(Buffer.concat([Buffer.of(content.readUInt8(0) + 1), content.subarray(1), again]));
        }),
    },
  }),
];

/** Presentations of mdocs (OpenID4VP 1.0 appendix B.2, ISO/IEC 18013-5 section 9). */
export const mdocCases: readonly PresentationCase[] = [...FORM, ...ITEMS, ...ISSUER, ...DEVICE];
