import { createHmac, createPublicKey } from 'node:crypto';
import { type HolderKey, newKey, now } from '../../support/raw-wallet.ts';
import {
  changePart,
  digestOf,
  disclosureOf,
  flipFirstByte,
  type JsonProperties,
  type SdJwtOverrides,
  saltedDisclosure,
} from '../../support/sd-jwt-maker.ts';
import { type CertificateOptions, certify, READER, WEB_SERVER } from '../../support/test-certificates.ts';
import { bending, CARD_QUERY, type PresentationCase, VCT, type World } from './world.ts';

const bent = bending<SdJwtOverrides>((world, asked, bend) => world.card(asked, bend));

const YEAR = 31_536_000;
const bindingOf = (text: string) => text.slice(text.lastIndexOf('~') + 1);
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs with the public key as a secret, which a reader takes for HS256 when it believes the header. */
function hmac({ jwk }: HolderKey): (jwt: string) => string {
  const secret = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  return (jwt) => {
    const input = jwt.slice(0, jwt.lastIndexOf('.'));
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
  };
}
const unsigned = changePart('.', 2, () => '');

/** `r || s` as X.509 would write it (RFC 3279 section 2.2.3). */
const asDer = changePart('.', 2, (signature) => {
  const raw = Buffer.from(signature, 'base64url');
  const integers = [raw.subarray(0, 32), raw.subarray(32)].map((bytes) => {
    const value = Buffer.from(bytes.toString('hex').replace(/^(00)+/, ''), 'hex');
    const content = (value[0] ?? 0) < 0x80 ? value : Buffer.concat([Buffer.of(0), value]);
    return Buffer.concat([Buffer.of(2, content.length), content]);
  });
  const content = Buffer.concat(integers);
  return Buffer.concat([Buffer.of(0x30, content.length), content]).toString('base64url');
});
const shortened = changePart('.', 2, (signature) => Buffer.from(signature, 'base64url').subarray(1).toString('base64url'));
const cracked = changePart('.', 2, flipFirstByte);

/** One more disclosure, with its digest where `place` puts it. */
const extra = (text: string, place = inTop): SdJwtOverrides => ({
  payload: (payload) => place(payload, digestOf(text)),
  changeDisclosures: (disclosures) => [...disclosures, text],
});
const inTop = (payload: JsonProperties, digest: string): JsonProperties => ({ ...payload, _sd: [...payload['_sd'], digest] });
const inArray = (payload: JsonProperties, digest: string): JsonProperties => ({ ...payload, list: [{ '...': digest }] });

/** A claim of the format that comes out of a disclosure instead of standing in sight. */
const hidden = (name: string, value: (payload: JsonProperties) => unknown): SdJwtOverrides => {
  const made: string[] = [];
  return {
    payload(payload) {
      const text = saltedDisclosure(name, value(payload));
      made.push(text);
      const { [name]: _, ...rest } = payload;
      return inTop(rest, digestOf(text));
    },
    changeDisclosures: (disclosures) => [...disclosures, ...made.slice(-1)],
  };
};

/** Disclosures inside disclosures. */
function nested(levels: number): SdJwtOverrides {
  const texts = [saltedDisclosure('leaf', 1)];
  while (texts.length < levels) texts.push(saltedDisclosure('level', { _sd: [digestOf(texts.at(-1) ?? '')] }));
  return {
    payload: (payload) => inTop(payload, digestOf(texts.at(-1) ?? '')),
    changeDisclosures: (disclosures) => [...disclosures, ...texts],
  };
}

const certified = (options: (world: World) => CertificateOptions) => async (world: World) => {
  const leaf = await certify(options(world));
  return { issuer: { key: leaf, chain: [leaf.certificate] } };
};

const BINDING: readonly PresentationCase[] = [
  ...bent(74, 'holder_binding_missing', {
    'no key binding': { text: (text) => text.slice(0, text.lastIndexOf('~') + 1) },
    'nothing but the JWT of the issuer': { text: (text) => `${text.split('~')[0]}~` },
  }),
  ...bent(75, 'malformed', {
    'no last tilde and no key binding': { text: (text) => text.slice(0, text.lastIndexOf('~')) },
    'no tilde at all': { text: (text) => text.split('~')[0] ?? '' },
    'no text': { text: () => '' },
  }),
  ...bent(76, 'malformed', {
    'two key bindings': { text: (text) => `${text}~${bindingOf(text)}` },
    'an empty disclosure': { changeDisclosures: (disclosures) => [...disclosures, ''] },
    'an empty disclosure in front': { changeDisclosures: (disclosures) => ['', ...disclosures] },
    'a tilde after the key binding': { text: (text) => `${text}~` },
  }),
  ...bent(77, 'kb_typ', {
    'a key binding without typ': { kbHeader: { typ: undefined } },
    'a key binding of typ JWT': { kbHeader: { typ: 'JWT' } },
    'a key binding of typ KB+JWT': { kbHeader: { typ: 'KB+JWT' } },
    'a key binding of a whole media type': { kbHeader: { typ: 'application/kb+jwt' } },
  }),
  ...bent(78, 'kb_alg', {
    'a key binding that is not signed': { kbHeader: { alg: 'none' }, kbJwt: unsigned },
    'a key binding with a MAC by the public key': () => {
      const key = newKey();
      return { visible: { cnf: { jwk: key.jwk } }, kbHeader: { alg: 'HS256' }, kbJwt: hmac(key) };
    },
    'a key binding by an algorithm that was not offered': { kbHeader: { alg: 'RS256' } },
    'a key binding by an algorithm of another curve': { kbHeader: { alg: 'ES384' } },
    'a key binding without alg': { kbHeader: { alg: undefined } },
  }),
  ...bent(79, 'kb_signature', { 'a key binding by another key': () => ({ kbKey: newKey() }) }),
  ...bent(80, 'kb_signature', {
    'a key binding that brings its own key': () => {
      const key = newKey();
      return { kbKey: key, kbHeader: { jwk: key.jwk } };
    },
  }),
  ...bent(81, 'nonce_mismatch', { 'another nonce': { kb: { nonce: 'other' } } }, { effect: 'spoilsAll' }),
  ...bent(81, 'kb_claim_missing', { 'no nonce': { kb: { nonce: undefined } } }, { effect: 'spoilsAll' }),
  ...bent(
    81,
    'kb_claim_type',
    { 'a number as nonce': { kb: { nonce: 1 } }, 'a list of nonces': { kb: { nonce: ['x'] } } },
    { effect: 'spoilsAll' },
  ),
  ...bent(82, 'aud_mismatch', {
    'the client identifier without prefix as audience': (_, { payload }) => ({
      kb: { aud: payload['client_id'].slice('x509_hash:'.length) },
    }),
    'the response_uri as audience': (_, { payload }) => ({ kb: { aud: payload['response_uri'] } }),
    'another tenant as audience': async (world) => ({ kb: { aud: (await world.ask({}, 'rival')).payload['client_id'] } }),
    'no text as audience': { kb: { aud: '' } },
  }),
  ...bent(82, 'aud_not_string', {
    'a list as audience': (_, { payload }) => ({ kb: { aud: [payload['client_id']] } }),
    'null as audience': { kb: { aud: null } },
  }),
  ...bent(82, 'kb_claim_missing', { 'no audience': { kb: { aud: undefined } } }),
  ...bent(83, 'aud_mismatch', {
    'an origin as audience of a redirect': ({ service }) => ({ kb: { aud: `origin:${service.address}` } }),
    'the audience of an interactive authorization': ({ service }) => ({ kb: { aud: `ia:${service.address}` } }),
  }),
  ...bent(84, 'kb_iat_window', {
    'a key binding of last year': () => ({ kb: { iat: now() - YEAR } }),
    'a key binding of next year': () => ({ kb: { iat: now() + YEAR } }),
    'a key binding that is older than the request': () => ({ kb: { iat: now() - 90 } }),
    'a key binding that has expired': () => ({ kb: { exp: now() - 90 } }),
    'a key binding that is not valid yet': () => ({ kb: { nbf: now() + 90 } }),
  }),
  ...bent(84, 'kb_claim_missing', { 'a key binding without iat': { kb: { iat: undefined } } }),
  ...bent(84, 'kb_claim_type', { 'a key binding whose iat is text': () => ({ kb: { iat: String(now()) } }) }),
  ...bent(85, 'kb_claim_missing', { 'no sd_hash': { kb: { sd_hash: undefined } } }),
  ...bent(85, 'kb_claim_type', { 'an sd_hash that is no text': { kb: { sd_hash: 1 } } }),
  ...bent(85, 'sd_hash_mismatch', {
    'another sd_hash': { kb: { sd_hash: 'x' } },
    'an sd_hash without the last tilde': { hashedText: (text) => text.slice(0, -1) },
    'an sd_hash over the JWT alone': { hashedText: (text) => text.split('~')[0] ?? '' },
    'an sd_hash by another hash': { hashAlgorithm: 'sha384' },
  }),
  ...bent(86, 'sd_hash_mismatch', {
    'a disclosure that was removed afterwards': { text: (text) => text.split('~').toSpliced(1, 1).join('~') },
    'disclosures in another order': {
      text(text) {
        const [jwt = '', one = '', other = '', ...rest] = text.split('~');
        return [jwt, other, one, ...rest].join('~');
      },
    },
    'a disclosure that was added afterwards': () => {
      let withheld = '';
      return {
        changeDisclosures(disclosures) {
          withheld = disclosures[1] ?? '';
          return disclosures.toSpliced(1, 1);
        },
        text: (text) => text.split('~').toSpliced(1, 0, withheld).join('~'),
      };
    },
  }),
];

const ISSUER: readonly PresentationCase[] = [
  ...bent(87, 'issuer_signature', {
    'a payload that was changed': {
      issuerJwt: changePart('.', 1, (text) => {
        const payload = JSON.parse(Buffer.from(text, 'base64url').toString()) as JsonProperties;
        return encode({ ...payload, iat: payload['iat'] - 1 });
      }),
    },
    'a header that was changed': {
      issuerJwt: changePart('.', 0, (text) => {
        const header = JSON.parse(Buffer.from(text, 'base64url').toString()) as JsonProperties;
        return encode({ ...header, kid: 'x' });
      }),
    },
  }),
  ...bent(88, 'issuer_alg', {
    'a credential that is not signed': { header: { alg: 'none' }, issuerJwt: unsigned },
    'a credential with a MAC by the public key': ({ issuer }) => ({ header: { alg: 'HS256' }, issuerJwt: hmac(issuer.key) }),
    'a credential of another curve': { header: { alg: 'ES512' } },
    'a credential without alg': { header: { alg: undefined } },
  }),
  ...bent(89, 'issuer_typ', {
    'a credential without typ': { header: { typ: undefined } },
    'a credential of typ JWT': { header: { typ: 'JWT' } },
    'a credential of the typ of earlier drafts': { header: { typ: 'vc+sd-jwt' } },
    'a credential of the typ of a key binding': { header: { typ: 'kb+jwt' } },
  }),
  ...bent(90, 'issuer_key_unresolved', {
    'no x5c': { header: { x5c: undefined } },
    'an empty x5c': { header: { x5c: [] } },
    'x5c is text': ({ issuer }) => ({ header: { x5c: issuer.chain[0] } }),
    'x5c in base64url': ({ issuer }) => ({ header: { x5c: issuer.chain.map((one) => Buffer.from(one, 'base64').toString('base64url')) } }),
    'a key by jwk': ({ issuer }) => ({ header: { x5c: undefined, jwk: issuer.key.jwk } }),
    'a key by address': { header: { x5c: undefined, x5u: 'http://127.0.0.1/', jku: 'http://127.0.0.1/' } },
  }),
  ...bent(90, 'issuer_signature', {
    'x5c in the wrong order': async ({ authority }) => {
      const middle = await certify({ name: 'Middle', by: authority, ca: true });
      const leaf = await certify({ name: 'Leaf', by: middle });
      return { issuer: { key: leaf, chain: [middle.certificate, leaf.certificate] } };
    },
  }),
  ...bent(91, 'untrusted_chain', {
    'a chain to an unknown root': async () => {
      const root = await certify({ name: 'Authority', ca: true });
      const leaf = await certify({ name: 'Issuer', by: root });
      return { issuer: { key: leaf, chain: [leaf.certificate, root.certificate] } };
    },
    'a leaf by one that is no CA': async ({ issuer, authority }) => {
      const middle = await certify({ name: 'Middle', by: authority });
      const leaf = await certify({ name: 'Leaf', by: middle });
      return { issuer: { key: leaf, chain: [leaf.certificate, middle.certificate, ...issuer.chain] } };
    },
  }),
  ...bent(91, 'certificate_expired', {
    'a leaf that has expired': certified(({ authority }) => ({ name: 'Old', by: authority, until: '2025-06-01T00:00:00Z' })),
    'a leaf that is not valid yet': certified(({ authority }) => ({ name: 'New', by: authority, from: '2045-01-01T00:00:00Z' })),
  }),
  ...bent(91, 'certificate_profile', {
    'a CA that signs credentials': certified(({ authority }) => ({ name: 'CA', by: authority, ca: true })),
    'the certificate of a web server': certified(({ authority }) => ({ name: 'Web server', by: authority, purposes: [WEB_SERVER] })),
    'the certificate of a reader': certified(({ authority }) => ({ name: 'Reader', by: authority, purposes: [READER] })),
    'a leaf under an authority of web servers': async ({ authority }) => {
      const middle = await certify({ name: 'Web', by: authority, ca: true, purposes: [WEB_SERVER] });
      const leaf = await certify({ name: 'Leaf', by: middle });
      return { issuer: { key: leaf, chain: [leaf.certificate, middle.certificate] } };
    },
  }),
  ...bent(91, 'issuer_key_unresolved', {
    'a leaf whose end is no time': certified(({ authority }) => ({
      name: 'Endless',
      by: authority,
      validity: { notAfter: '271399000000Z' },
    })),
  }),
  ...bent(92, 'untrusted_chain', { 'a leaf that signed itself': certified(() => ({ name: 'Self' })) }),
  ...bent(93, 'issuer_signature', { 'another key than the leaf': () => ({ issuerKey: newKey() }) }),
  ...bent(95, 'credential_expired', { 'a credential that has expired': () => ({ visible: { exp: now() - 90 } }) }),
  ...bent(95, 'credential_not_yet_valid', {
    'a credential that is not valid yet': () => ({ visible: { nbf: now() + 90 } }),
    'a credential of the future': () => ({ visible: { iat: now() + 90 } }),
  }),
  ...bent(95, 'malformed', {
    'exp as text': () => ({ visible: { exp: String(now() + YEAR) } }),
    'nbf as a list': { visible: { nbf: [0] } },
    'exp as null': { visible: { exp: null } },
  }),
  ...bent(96, 'malformed', { 'no vct': { visible: { vct: undefined } }, 'a vct that is no text': { visible: { vct: [VCT] } } }),
  ...bent(96, 'type_mismatch', {
    'a vct that was not requested': { visible: { vct: 'urn:card:2' } },
    'a vct in other letters': { visible: { vct: 'URN:card:1' } },
  }),
  ...bent(97, 'holder_key_missing', {
    'no cnf': { visible: { cnf: undefined } },
    'a cnf that is a kid': { visible: { cnf: { kid: 'x' } } },
    'a cnf that is an address': { visible: { cnf: { jku: 'https://issuer.example', kid: 'x' } } },
    'a private key in cnf': () => {
      const key = newKey();
      const jwk = key.privateKey.export({ format: 'jwk' });
      return { visible: { cnf: { jwk } }, kbKey: key };
    },
    'a symmetric key in cnf': { visible: { cnf: { jwk: { kty: 'oct', k: 'AAAA' } } } },
  }),
];

const DISCLOSURES: readonly PresentationCase[] = [
  ...bent(98, 'duplicate_digest', {
    'a digest twice': { payload: (payload) => inTop(payload, payload['_sd'][0]) },
    'a decoy twice': { payload: (payload) => inArray(inTop(payload, digestOf('decoy')), digestOf('decoy')) },
  }),
  ...bent(98, 'duplicate_disclosure', {
    'a disclosure twice': { changeDisclosures: (disclosures) => [...disclosures, disclosures[0] ?? ''] },
  }),
  ...bent(98, 'unreferenced_disclosure', {
    'a disclosure without digest': { changeDisclosures: (disclosures) => [...disclosures, saltedDisclosure('x', 'y')] },
    'a disclosure inside one that was withheld': () => {
      const inner = saltedDisclosure('x', 'y');
      const outer = saltedDisclosure('outer', { _sd: [digestOf(inner)] });
      const { payload } = extra(outer);
      return { payload: payload ?? {}, changeDisclosures: (disclosures) => [...disclosures, inner] };
    },
  }),
  ...bent(98, 'wrong_disclosure_length', {
    'an element of an array as claim': () => extra(saltedDisclosure('x')),
    'a claim as element of an array': () => extra(saltedDisclosure('x', 'y'), inArray),
  }),
  ...bent(98, 'malformed_disclosure', {
    'a disclosure of four': () => extra(disclosureOf('salt', 'a', 'b', 'c')),
    'a disclosure of one': () => extra(disclosureOf('salt')),
    'a disclosure that is an object': () => extra(encode({ salt: 'x' })),
    'a salt that is not a string': () => extra(disclosureOf(1, 'a', 'b')),
    'a claim name that is not a string': () => extra(disclosureOf('salt', 1, 'b')),
  }),
  ...bent(
    98,
    'reserved_claim_name',
    Object.fromEntries(
      ['_sd', '...', '_sd_alg', '__proto__'].map((name) => [`a claim of the name ${name}`, () => extra(saltedDisclosure(name, []))]),
    ),
  ),
  ...bent(98, 'claim_exists', {
    'a claim that stands there already': () => ({ visible: { nickname: 'Eri' }, ...extra(saltedDisclosure('nickname', 'Rika')) }),
  }),
  ...bent(98, 'malformed_sd', { '_sd is text': { payload: { _sd: 'x' } } }),
  ...bent(98, 'malformed_array_digest', { 'a digest with company': { payload: { list: [{ '...': 'x', other: 1 }] } } }),
  ...bent(98, 'reserved_key', { 'a member of the name ...': { payload: { address: { '...': 'x' } } } }),
  ...bent(99, 'forbidden_disclosure', {
    'a hidden exp': () => hidden('exp', () => now() + YEAR),
    'a hidden cnf': () => hidden('cnf', ({ cnf }) => cnf),
    'a hidden vct': () => hidden('vct', ({ vct }) => vct),
    'a hidden status': () => hidden('status', () => ({ status_list: { idx: 0, uri: 'https://x.example' } })),
    'a hidden iss': () => hidden('iss', () => 'https://issuer.example'),
    'a hidden nbf': () => hidden('nbf', () => 0),
    'a key that is partly hidden': { payload: (payload) => ({ ...payload, cnf: { ...payload['cnf'], _sd: ['x'] } }) },
  }),
  ...bent(100, 'unsupported_hash', {
    'an unknown hash': { payload: { _sd_alg: 'md5' } },
    'a shortened hash': { payload: { _sd_alg: 'sha-256-64' } },
    'a hash in capitals': { payload: { _sd_alg: 'SHA-256' } },
    'a hash that is not a string': { payload: { _sd_alg: null } },
  }),
  ...bent(100, 'nested_sd_alg', { 'a hash inside': { payload: { address: { _sd_alg: 'sha-256' } } } }),
  ...bent(101, 'too_deep', { '40 levels of disclosures': () => nested(40) }),
  ...bent(101, 'malformed', {
    '10 000 disclosures': () => {
      const many = Array.from({ length: 10_000 }, (_, index) => disclosureOf('', `c${index}`, 1));
      return { changeDisclosures: (disclosures) => [...disclosures, ...many] };
    },
  }),
];

const REST: readonly PresentationCase[] = [
  ...bent(102, 'unsupported_crit', {
    'crit of the issuer': { header: { crit: ['urn:x'], 'urn:x': 1 } },
    'an unencoded payload of the issuer': { header: { b64: false } },
    'crit of the key binding': { kbHeader: { crit: ['urn:x'], 'urn:x': 1 } },
    'an empty crit': { kbHeader: { crit: [] } },
  }),
  ...bent(103, 'issuer_signature', {
    'a signature of the issuer in DER': { issuerJwt: asDer },
    'a shortened signature of the issuer': { issuerJwt: shortened },
    'a changed signature of the issuer': { issuerJwt: cracked },
  }),
  ...bent(103, 'kb_signature', {
    'a signature of the holder in DER': { kbJwt: asDer },
    'a shortened signature of the holder': { kbJwt: shortened },
    'a changed signature of the holder': { kbJwt: cracked },
    'a key binding without signature': { kbJwt: unsigned },
  }),
  ...bent(104, 'missing_claim', {
    'a claim that was withheld': {
      changeDisclosures: (disclosures) => disclosures.filter((one) => !Buffer.from(one, 'base64url').toString().includes('"name"')),
    },
    'a claim that is not there': { hidden: { name: undefined } },
  }),
  ...bent(104, 'value_mismatch', { 'a number where text was asked for': {} }, { query: { claims: [{ path: ['age'], values: ['42'] }] } }),
  ...bent(
    104,
    'claim_set_unsatisfied',
    { 'a set of claims that is not whole': {} },
    {
      query: {
        claims: [
          { id: 'n', path: ['name'] },
          { id: 'x', path: ['absent'] },
        ],
        claim_sets: [['n', 'x']],
      },
    },
  ),
  ...bent(
    105,
    'value_mismatch',
    { 'false where true was asked for': {}, '1 where true was asked for': { hidden: { over18: 1 } } },
    { query: { claims: [{ path: ['over18'], values: [true] }] } },
  ),
  ...bent(106, 'aud_mismatch', {
    'made for another tenant with our nonce': async (world) => ({ kb: { aud: (await world.ask({}, 'rival')).payload['client_id'] } }),
  }),
  {
    row: 106,
    what: 'made for another tenant',
    reason: 'nonce_mismatch',
    effect: 'spoilsAll',
    present: async (world) => world.card(await world.ask({}, 'rival')),
  },
  {
    row: 107,
    what: 'made for an earlier request',
    reason: 'nonce_mismatch',
    effect: 'spoilsAll',
    present: async (world) => world.card(await world.ask()),
  },
  ...bent(
    108,
    'aud_mismatch',
    { 'a wrong key binding that nobody demanded': { kb: { aud: 'x' } } },
    { query: { ...CARD_QUERY, require_cryptographic_holder_binding: false } },
  ),
  ...bent(
    108,
    'kb_signature',
    { 'a key binding by another key that nobody demanded': () => ({ kbKey: newKey() }) },
    { query: { ...CARD_QUERY, require_cryptographic_holder_binding: false } },
  ),
];

/** Presentations of SD-JWT VCs (RFC 9901, OpenID4VP 1.0 appendix B.3). */
export const sdJwtCases: readonly PresentationCase[] = [...BINDING, ...ISSUER, ...DISCLOSURES, ...REST];
