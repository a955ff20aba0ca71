import { CompactEncrypt, type CompactJWEHeaderParameters, importJWK } from 'jose';
import { UNDECRYPTED_TRIES } from '../../../application/verification/undecrypted-tries.ts';
import { type Asked, encrypt } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { flipped, jws, type Members, part } from '../../support/sd-jwt-maker.ts';
import type { Answer } from '../../support/test-service.ts';
import { type Case, kept, refused, type World } from './world.ts';

type Make = (world: World, asked: Asked, payload: Members) => Promise<string> | string;

const keyOf = ({ payload }: Asked): Members => payload['client_metadata'].jwks.keys[0];

/** Other people's encryption, its header being bent. */
async function sealedBy(jwk: Members, plaintext: unknown, header: Members): Promise<string> {
  const text = typeof plaintext === 'string' ? plaintext : JSON.stringify(plaintext);
  const all = { alg: 'ECDH-ES', enc: 'A256GCM', kid: jwk['kid'], ...header };
  const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  const options = { crit: Object.fromEntries((header['crit'] ?? []).map((name: string) => [name, true])) };
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader(kept as CompactJWEHeaderParameters)
    .encrypt(await importJWK({ ...jwk, alg: all.alg }, all.alg), options);
}
const bent =
  (header: Members): Make =>
  (_, asked, payload) =>
    sealedBy(keyOf(asked), payload, header);
const plaintext =
  (make: (asked: Asked) => string): Make =>
  (_, asked) =>
    sealedBy(keyOf(asked), make(asked), {});
const edited =
  (at: number, change: (text: string) => string): Make =>
  async (_, asked, payload) =>
    part('.', at, change)(await encrypt(asked, payload));
const header = (change: (header: Members) => Members) =>
  edited(0, (text) => {
    const known = JSON.parse(Buffer.from(text, 'base64url').toString()) as Members;
    return Buffer.from(JSON.stringify({ ...known, ...change(known) })).toString('base64url');
  });

const respond = (make: Make) => async (world: World, asked: Asked) => {
  const payload = { vp_token: { card: [world.card(asked)] }, state: asked.payload['state'] };
  const form = { response: await make(world, asked, payload) };
  return world.service.call('POST', asked.payload['response_uri'], { form });
};
/** The first few of what does not decrypt leave the request open. */
const insist = (make: Make) => async (world: World, asked: Asked) => {
  const once = respond(make);
  for (let i = 1; i < UNDECRYPTED_TRIES; i++) await once(world, asked);
  return once(world, asked);
};
const closed = (row: number, cases: Readonly<Record<string, Make>>, code = 'decryption_failed') =>
  Object.entries(cases).map(
    ([what, make]): Case => ({
      row,
      what,
      run: code === 'decryption_failed' ? insist(make) : respond(make),
      expected: refused(code),
    }),
  );

const RSA = 'RSA-OAEP-256';

/** Responses that were to be encrypted to the key of the request (OpenID4VP 1.0 section 8.3). */
export const encryptionCases: readonly Case[] = [
  ...closed(50, {
    'an unknown kid': bent({ kid: 'unknown' }),
    'no kid': bent({ kid: undefined }),
    'a kid that is no text': bent({ kid: 5 }),
  }),
  ...closed(51, {
    'the key of another session': async (world, _, payload) => encrypt(await world.ask(), payload),
    'the key of another session under the kid of this one': async (world, asked, payload) =>
      sealedBy(keyOf(await world.ask()), payload, { kid: keyOf(asked)['kid'] }),
    'a key that nobody asked for': (_, asked, payload) =>
      sealedBy(newKey().jwk, payload, { kid: keyOf(asked)['kid'] }),
  }),
  ...closed(52, {
    'an enc that was not offered': bent({ enc: 'A128CBC-HS256' }),
    'an enc between the offered ones': bent({ enc: 'A192GCM' }),
  }),
  ...closed(53, {
    'key agreement with key wrapping': bent({ alg: 'ECDH-ES+A128KW' }),
    'dir in the header': header(() => ({ alg: 'dir' })),
    'RSA in the header': header(() => ({ alg: RSA })),
    'an encrypted key beside direct agreement': edited(1, () => 'AAAA'),
    'a symmetric key': async (_, asked, payload) =>
      new CompactEncrypt(Buffer.from(JSON.stringify(payload)))
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: keyOf(asked)['kid'] })
        .encrypt(Buffer.alloc(32)),
  }),
  ...closed(54, {
    'an epk of another curve': header(() => ({ epk: newKey('P-384').jwk })),
    'an epk that is not on the curve': header(() => ({
      epk: { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) },
    })),
    'an epk with a private key': header(({ epk }) => ({ epk: { ...epk, d: 'A'.repeat(43) } })),
    'an epk of another kind': header(() => ({ epk: { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) } })),
    'no epk': header(() => ({ epk: undefined })),
  }),
  ...closed(55, {
    'a changed tag': edited(4, flipped),
    'a shortened tag': edited(4, (text) => text.slice(0, 16)),
    'a changed ciphertext': edited(3, flipped),
    'a changed iv': edited(2, flipped),
    'a changed header': header(() => ({ cty: 'json' })),
    'an apu that came later': header(() => ({ apu: 'AAAA' })),
  }),
  ...closed(56, { compression: header(() => ({ zip: 'DEF' })) }),
  ...closed(57, {
    'a signed JWT': (world, _, payload) => jws({ alg: 'ES256' }, payload, world.issuer.key),
    'a signed JWT inside': plaintext(() => jws({ alg: 'ES256' }, { vp_token: {} }, newKey())),
    'a JWT announced by cty': bent({ cty: 'JWT' }),
    'the request itself': (_, asked) => asked.text,
  }),
  ...closed(
    58,
    {
      'a plaintext that is not JSON': plaintext(() => 'nonsense'),
      'an array as plaintext': plaintext(() => '[]'),
      'text as plaintext': plaintext(() => '"text"'),
      'a member that stands there twice': plaintext(
        ({ payload }) => `{"state":"${payload['state']}","state":"${payload['state']}","vp_token":{}}`,
      ),
    },
    'malformed',
  ),
  ...['wrong', 5, null].map(
    (state): Case => ({
      row: 59,
      what: `the state ${state} inside`,
      run: respond((_, asked, payload) => encrypt(asked, { ...payload, state })),
      expected: kept(),
    }),
  ),
  {
    row: 59,
    what: 'the right state inside and another one outside',
    run: async (world, asked): Promise<Answer> => {
      const { state, response_uri } = asked.payload;
      const response = await encrypt(asked, { vp_token: { card: [world.card(asked)] }, state });
      return world.service.call('POST', response_uri, { form: { response, state: 'wrong' } });
    },
    expected: kept(),
  },
  ...closed(60, { 'an unknown extension': bent({ crit: ['urn:x'], 'urn:x': true }) }),
];
