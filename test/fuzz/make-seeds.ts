import 'reflect-metadata';
import { readFileSync, writeFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { NodeEncryption } from '../../adapters/crypto/encryption.ts';
import { encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type Cbor, fullDate, Tagged } from '../../domain/formats/cbor/values.ts';
import { coseKey, coseSign1, presentMdoc } from '../support/mdoc-maker.ts';
import { makeJwt, newKey } from '../support/raw-wallet.ts';
import { digestOf, makeSdJwt, presentSdJwt, saltedDisclosure } from '../support/sd-jwt-maker.ts';
import { certify, DOCUMENT_SIGNER, pem, WEB_SERVER } from '../support/test-certificates.ts';
import { trustList } from '../support/trust-list.ts';
import { AUDIENCE, NONCE, SECONDS, STATUS_URI, TRANSCRIPT } from './constants.ts';

/** Writes the signed inputs that fuzzing begins with. Signatures are different each time, so this is done once. */
const file = new URL('seeds.json', import.meta.url);
const seeds = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
const write = (name: string, content: string | Uint8Array) => {
  seeds[name] = Buffer.from(content).toString('base64');
};

const validity = { from: '2020-01-01T00:00:00Z', until: '2049-01-01T00:00:00Z' };
const ca = await certify({ name: 'Authority, C=DE', ca: true, ...validity });
const issuer = await certify({ name: 'Issuer, C=DE', by: ca, dns: ['issuer.example'], ...DOCUMENT_SIGNER, ...validity });
const holder = newKey();
const signer = { key: issuer, chain: [issuer.certificate] };

const languages = [saltedDisclosure('de'), saltedDisclosure('en')];
const street = saltedDisclosure('street', 'Main Street');
const base = {
  issuer: signer,
  holder,
  visible: {
    vct: 'urn:example:pid',
    iss: 'https://issuer.example',
    exp: SECONDS + 86_400,
    status: { status_list: { idx: 3, uri: STATUS_URI } },
    address: { country: 'DE', _sd: [digestOf(street)] },
    languages: languages.map((text) => ({ '...': digestOf(text) })),
  },
  hidden: { given_name: 'Erika', age: 42, adult: true, places: ['Berlin', 'Bonn'] },
  audience: AUDIENCE,
  nonce: NONCE,
  now: SECONDS,
};
const show = (texts: readonly string[]) => [...texts, street, ...languages];
write('sd-jwt', presentSdJwt(base, { changeDisclosures: show }));
write('sd-jwt-unbound', makeSdJwt(base));

const elements = {
  'org.iso.18013.5.1': {
    family_name: 'Mustermann',
    birth_date: fullDate('1980-01-01'),
    portrait: Buffer.from('ffd8ffe0', 'hex'),
    age_over_18: true,
    issuing_country: 'DE',
    driving_privileges: [{ vehicle_category_code: 'B', issue_date: new Tagged(1004, '2020-01-01') }],
  } as Record<string, Cbor>,
};
const docType = 'org.iso.18013.5.1.mDL';
const mdoc = { issuer: signer, holder, docType, elements, transcript: TRANSCRIPT, now: SECONDS };
const keyAuthorizations = { nameSpaces: ['own'], dataElements: { other: ['hash'] } };
const deviceNameSpaces = { own: { hash: Buffer.alloc(32, 7) }, other: { hash: 'x' } };
write('mdoc', presentMdoc(mdoc));
write(
  'mdoc-device-elements',
  presentMdoc(mdoc, { mso: (mso) => mso.set('deviceKeyInfo', { deviceKey: coseKey(holder), keyAuthorizations }), deviceNameSpaces }),
);

write('certificate', Buffer.from(issuer.certificate, 'base64'));
const server = await certify({ name: 'Server, O=Example\\, Inc., L=Köln', purposes: [WEB_SERVER], ...validity });
write('certificate-server', Buffer.from(server.certificate, 'base64'));
write('certificates', pem(issuer) + pem(ca));

const lst = deflateSync(Buffer.from('c9449a6b2e', 'hex'));
const header = { alg: 'ES256', x5c: signer.chain };
write(
  'status-jwt',
  makeJwt(
    issuer,
    { ...header, typ: 'statuslist+jwt' },
    { sub: STATUS_URI, iat: SECONDS, exp: SECONDS + 600, ttl: 300, status_list: { bits: 2, lst: lst.toString('base64url') } },
  ),
);
const claims = new Map<number, Cbor>([
  [2, STATUS_URI],
  [6, SECONDS],
  [4, SECONDS + 600],
  [65534, 300],
  [65533, { bits: 2, lst }],
]);
const typedHeaders = new Map<number, Cbor>([
  [1, -7],
  [16, 'application/statuslist+cwt'],
  [33, Buffer.from(issuer.certificate, 'base64')],
]);
write('status-cwt', encodeCbor(new Tagged(18, coseSign1(encodeCbor(claims), issuer, { protected: typedHeaders }))));

const services = ['Issuance', 'Revocation'].map((kind) => ({ type: `PID/${kind}`, certificates: [ca.certificate] }));
write('trust-list', trustList({ entities: [{ name: 'Provider', services }], signer: issuer }, SECONDS));
write(
  'registration-certificate',
  makeJwt(
    issuer,
    { ...header, typ: 'rc-wrp+jwt' },
    {
      sub: { legal_name: 'Party', id: 'VATDE-1' },
      intermediary: { sub: 'VATDE-2', sname: 'Go-between' },
      intended_use_id: 'use-1',
      iat: SECONDS,
      exp: SECONDS + 86_400,
      credentials: [{ format: 'dc+sd-jwt', meta: { vct_values: ['urn:example:pid'] }, claim: [{ path: ['age'], values: [1] }] }],
      status: { status_list: { idx: 1, uri: STATUS_URI } },
    },
  ),
);

const attestation = makeJwt(
  issuer,
  { ...header, typ: 'key-attestation+jwt' },
  {
    iat: SECONDS,
    exp: SECONDS + 600,
    nonce: NONCE,
    attested_keys: [{ ...holder.jwk, kid: 'one' }, newKey().jwk],
    key_storage: ['iso_18045_high'],
    user_authentication: ['iso_18045_high'],
  },
);
write('key-attestation', attestation);
const proof = { aud: AUDIENCE, iat: SECONDS, nonce: NONCE, iss: 'wallet' };
const proofHeader = { alg: 'ES256', typ: 'openid4vci-proof+jwt' };
write('proof', makeJwt(holder, { ...proofHeader, jwk: holder.jwk }, proof));
write('proof-attested', makeJwt(holder, { ...proofHeader, kid: 'one', key_attestation: attestation }, proof));
write(
  'dpop',
  makeJwt(
    holder,
    { alg: 'ES256', typ: 'dpop+jwt', jwk: holder.jwk },
    { ...{ jti: 'jti-1', htm: 'POST', htu: `${AUDIENCE}/token?x#y`, iat: SECONDS, exp: SECONDS + 60, nbf: SECONDS } },
  ),
);
const wallet = makeJwt(
  issuer,
  { ...header, typ: 'oauth-client-attestation+jwt' },
  { ...{ sub: 'wallet', iss: 'https://provider.example', iat: SECONDS, exp: SECONDS + 600, nbf: SECONDS, cnf: { jwk: holder.jwk } } },
);
const pop = makeJwt(
  holder,
  { alg: 'ES256', typ: 'oauth-client-attestation-pop+jwt' },
  { ...{ iss: 'wallet', aud: AUDIENCE, jti: 'jti-1', iat: SECONDS, nbf: SECONDS, exp: SECONDS + 60, challenge: NONCE } },
);
write('client-attestation', `${wallet}\n${pop}`);
const assertion = { iss: 'wallet', sub: 'wallet', aud: AUDIENCE, jti: 'jti-1', iat: SECONDS, exp: SECONDS + 60 };
write('client-assertion', makeJwt(holder, { alg: 'ES256', typ: 'JWT', kid: 'one' }, assertion));
write(
  'foreign-token',
  makeJwt(
    issuer,
    { alg: 'ES256', typ: 'at+jwt', kid: 'one' },
    {
      ...{ iss: 'https://as.example', sub: 'user', aud: [AUDIENCE], iat: SECONDS, exp: SECONDS + 600, jti: 'j', client_id: 'wallet' },
      ...{ scope: 'pid', cnf: { jkt: 'x'.repeat(43) }, nonce: NONCE, azp: 'wallet', issuer_state: 'state' },
      authorization_details: [
        { type: 'openid_credential', credential_configuration_id: 'pid', credential_identifiers: ['p1', 'p2'], locations: [AUDIENCE] },
      ],
    },
  ),
);

const encryption = new NodeEncryption();
const pair = encryption.generate();
const answer = JSON.stringify({ state: 'state-1', vp_token: { pid: ['x~'] } });
write('jwe', await encryption.encrypt(answer, pair.publicJwk, { enc: 'A128GCM' }));
write('jwe-deflated', await encryption.encrypt(answer, pair.publicJwk, { enc: 'A256GCM', zip: 'DEF' }));
const keys = { issuer: issuer.jwk, holder: holder.jwk, encryption: { publicJwk: pair.publicJwk, d: pair.d } };
write('keys', `${JSON.stringify(keys)}\n`);

writeFileSync(file, `${JSON.stringify(seeds, null, 2)}\n`);
