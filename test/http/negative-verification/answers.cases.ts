import { expect } from 'chai';
import { CompactEncrypt, type CompactJWEHeaderParameters, importJWK } from 'jose';
import { MAX_UNDECRYPTED_ATTEMPTS } from '../../../application/verification/response-intake.ts';
import type { RefusalReason } from '../../../domain/shared/refusal.ts';
import { withoutIssuers } from '../../support/failures.ts';
import { encryptResponse, type FetchedRequest, responseForm } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { changePart, digestOf, flipFirstByte, type JsonProperties, jws } from '../../support/sd-jwt-maker.ts';
import type { Answer } from '../../support/test-service.ts';
import { accepted, CARD_QUERY, type Case, kept, LICENCE_QUERY, PASS_QUERY, type PresentationCase, refused, type World } from './world.ts';

const MODES = [{}, { responseMode: 'direct_post' }];
const modeOf = (mode: object) => ('responseMode' in mode ? 'in the clear' : 'encrypted');

/** One shape, in both modes. */
const shape = (row: number, what: string, make: (text: string, asked: FetchedRequest) => unknown): readonly Case[] =>
  MODES.map((configuration) => ({
    row,
    what: `${what}, ${modeOf(configuration)}`,
    configuration,
    run: (world, asked) => world.answer(asked, make(world.card(asked), asked)),
    expected: refused('malformed'),
  }));

const TWO = [CARD_QUERY, PASS_QUERY];
const twoCredentials = (...credential_sets: object[]) => ({ dcql_query: { credentials: TWO, credential_sets } });

const incomplete = (row: number, what: string, configuration: JsonProperties, missing: string): Case => ({
  row,
  what,
  configuration,
  run: (world, asked) => world.answer(asked, { card: [world.card(asked)] }),
  expected: refused('presentation_refused'),
  async also(world, asked) {
    expect((await world.session(asked))['failure'].message).to.include(missing);
    expect(world.told(asked)[0]?.['credentials']).to.deep.include({ id: 'card', error: 'response_refused' });
  },
});

/** What stands in `vp_token` and what has to (OpenID4VP 1.0 sections 6.4 and 8.1). */
export const vpTokenCases: readonly Case[] = [
  ...shape(61, 'vp_token is text', (text) => text),
  ...shape(61, 'vp_token is an array', (text) => [text]),
  ...shape(61, 'vp_token is null', () => null),
  ...shape(61, 'vp_token is a number', () => 1),
  ...shape(62, 'text instead of an array', (text) => ({ card: text })),
  ...shape(62, 'an object instead of an array', (text) => ({ card: { 0: text } })),
  ...shape(63, 'an empty array', () => ({ card: [] })),
  ...shape(64, 'two presentations without multiple', (text) => ({ card: [text, text] })),
  ...shape(65, 'an id that no query has', (text) => ({ card: [text], other: [text] })),
  ...shape(65, 'an id in another case', (text) => ({ Card: [text] })),
  ...shape(67, 'an object as presentation', () => ({ card: [{}] })),
  ...shape(67, 'a number as presentation', () => ({ card: [1] })),
  ...shape(67, 'null as presentation', () => ({ card: [null] })),
  {
    row: 66,
    what: 'an id that stands there twice, in the clear',
    configuration: { responseMode: 'direct_post' },
    run: (world, { payload, ...asked }) => {
      const list = JSON.stringify([world.card({ payload, ...asked })]);
      const form = { vp_token: `{"card":${list},"card":${list}}`, state: payload['state'] };
      return world.service.call('POST', payload['response_uri'], { form });
    },
    expected: refused('malformed'),
  },
  {
    row: 66,
    what: 'an id that stands there twice, once with an escape',
    configuration: { responseMode: 'direct_post' },
    run: (world, { payload, ...asked }) => {
      const list = JSON.stringify([world.card({ payload, ...asked })]);
      const form = { vp_token: `{"card":${list},"c\\u0061rd":${list}}`, state: payload['state'] };
      return world.service.call('POST', payload['response_uri'], { form });
    },
    expected: refused('malformed'),
  },
  incomplete(68, 'a query without answer', { dcql_query: { credentials: TWO } }, 'missing pass'),
  incomplete(69, 'half of an option', twoCredentials({ options: [['card', 'pass']] }), 'credential_sets[0]'),
  incomplete(
    70,
    'the optional set alone',
    twoCredentials({ options: [['pass']] }, { options: [['card']], required: false }),
    'credential_sets[0]',
  ),
  {
    row: 72,
    what: 'two credentials that are swapped',
    configuration: { dcql_query: { credentials: TWO } },
    run: (world, asked) => world.answer(asked, { card: [world.pass(asked)], pass: [world.card(asked)] }),
    expected: refused('presentation_refused'),
    async also(world, asked) {
      expect(withoutIssuers(world.told(asked)[0]?.['credentials'])).to.deep.equal([
        { id: 'card', error: 'type_mismatch' },
        { id: 'pass', error: 'type_mismatch' },
      ]);
    },
  },
  {
    row: 73,
    what: 'a presentation_submission of earlier drafts',
    run: async (world, asked) => {
      const submission = { id: 'x', definition_id: 'y', descriptor_map: [] };
      const vp_token = { card: [world.card(asked)] };
      const response = await encryptResponse(asked, { vp_token, state: asked.payload['state'], presentation_submission: submission });
      return world.service.call('POST', asked.payload['response_uri'], { form: { response } });
    },
    expected: accepted,
  },
  {
    row: 73,
    what: 'a presentation_submission in the form',
    configuration: { responseMode: 'direct_post' },
    run: async (world, asked) => {
      const form = await responseForm(asked, { card: [world.card(asked)] });
      return world.service.call('POST', asked.payload['response_uri'], { form: { ...form, presentation_submission: '{' } });
    },
    expected: accepted,
  },
];

const licenceOf = (world: World, asked: FetchedRequest) => world.licence(asked);

/** Presentations that stand in the wrong place. */
export const misplacedCases: readonly PresentationCase[] = [
  { row: 71, what: 'an mdoc where an SD-JWT VC was asked for', reason: 'malformed', present: licenceOf },
  {
    row: 71,
    what: 'an SD-JWT VC where an mdoc was asked for',
    format: LICENCE_QUERY.format as 'mso_mdoc',
    reason: 'malformed',
    present: (world, asked) => world.card(asked),
  },
];

const ENTRY = { type: 'urn:example:payment', credential_ids: ['card'], amount: '12.50 EUR' };
const SECOND = { ...ENTRY, amount: '1.00 EUR' };

const textsOf = ({ payload }: FetchedRequest): readonly string[] => payload['transaction_data'];
const hashes = (texts: readonly string[], algorithm?: string) => texts.map((text) => digestOf(text, algorithm));
const decoded = (text: string) => Buffer.from(text, 'base64url').toString();

/** Confirms something else than what was asked for. */
const confirming = (
  row: number,
  what: string,
  reason: RefusalReason,
  claims: (texts: readonly string[], world: World) => JsonProperties | Promise<JsonProperties>,
  entries: readonly JsonProperties[] = [ENTRY],
): PresentationCase => ({
  row,
  what,
  reason,
  effect: 'needed',
  configuration: { transaction_data: entries },
  async present(world, asked) {
    return world.card(asked, { kb: await claims(textsOf(asked), world) });
  },
});
const MISMATCH = 'transaction_data_mismatch';
const NAMED = { ...ENTRY, transaction_data_hashes_alg: ['sha-384', 'sha-512'] };

/** What the holder confirms with the presentation (OpenID4VP 1.0 section 8.4 and appendix B.3.3.1). */
export const transactionDataCases: readonly PresentationCase[] = [
  confirming(127, 'no hashes', 'transaction_data_missing', () => ({})),
  confirming(127, 'an empty list of hashes', MISMATCH, () => ({ transaction_data_hashes: [] })),
  confirming(127, 'a hash that is not a list', MISMATCH, (texts) => ({ transaction_data_hashes: hashes(texts)[0] })),
  confirming(128, 'a hash over the decoded JSON', MISMATCH, (texts) => ({ transaction_data_hashes: hashes(texts.map(decoded)) })),
  confirming(128, 'a hash over text that was encoded again', MISMATCH, (texts) => ({
    transaction_data_hashes: hashes(
      texts.map((text) => Buffer.from(JSON.stringify(JSON.parse(decoded(text)), null, 1)).toString('base64url')),
    ),
  })),
  confirming(128, 'a hash in hex', MISMATCH, (texts) => ({
    transaction_data_hashes: hashes(texts).map((hash) => Buffer.from(hash, 'base64url').toString('hex')),
  })),
  confirming(129, 'the hash of another session', MISMATCH, async (_, world) => ({
    transaction_data_hashes: hashes(textsOf(await world.ask({ transaction_data: [SECOND] }))),
  })),
  confirming(130, 'one hash for two entries', MISMATCH, (texts) => ({ transaction_data_hashes: hashes(texts.slice(0, 1)) }), [
    ENTRY,
    SECOND,
  ]),
  confirming(130, 'one hash twice for two entries', MISMATCH, ([first = '']) => ({ transaction_data_hashes: hashes([first, first]) }), [
    ENTRY,
    SECOND,
  ]),
  confirming(131, 'a hash that belongs to nothing', MISMATCH, (texts) => ({ transaction_data_hashes: [...hashes(texts), digestOf('x')] })),
  confirming(
    132,
    'an algorithm that was not asked for',
    'transaction_data_alg',
    (texts) => ({ transaction_data_hashes: hashes(texts), transaction_data_hashes_alg: 'sha-256' }),
    [NAMED],
  ),
  confirming(
    132,
    'no algorithm though some were asked for',
    'transaction_data_alg',
    (texts) => ({ transaction_data_hashes: hashes(texts, 'sha384') }),
    [NAMED],
  ),
  confirming(132, 'an algorithm though none was asked for', 'transaction_data_alg', (texts) => ({
    transaction_data_hashes: hashes(texts, 'sha384'),
    transaction_data_hashes_alg: 'sha-384',
  })),
  confirming(132, 'an algorithm that is unknown', 'transaction_data_alg', (texts) => ({
    transaction_data_hashes: hashes(texts),
    transaction_data_hashes_alg: 'sha-1',
  })),
];

const twoWithTransactionData = (entry: JsonProperties, credential_sets?: readonly JsonProperties[]) => ({
  transaction_data: [entry],
  dcql_query: { credentials: [CARD_QUERY, PASS_QUERY], ...(credential_sets && { credential_sets }) },
});

/** The same where several credentials are presented. */
export const transactionDataResponseCases: readonly Case[] = [
  {
    row: 133,
    what: 'the hash in a credential that may not confirm',
    configuration: twoWithTransactionData(ENTRY),
    run: (world, asked) => {
      const kb = { transaction_data_hashes: hashes(textsOf(asked)) };
      return world.answer(asked, { card: [world.card(asked)], pass: [world.pass(asked, { kb })] });
    },
    expected: refused('presentation_refused'),
  },
  {
    row: 133,
    what: 'the hash in a credential that may not confirm, the other one being left out',
    configuration: twoWithTransactionData(ENTRY, [{ options: [['pass'], ['card']] }]),
    run: (world, asked) => {
      const kb = { transaction_data_hashes: hashes(textsOf(asked)) };
      return world.answer(asked, { pass: [world.pass(asked, { kb })] });
    },
    expected: refused('presentation_refused'),
  },
  {
    row: 133,
    what: 'the hash in none of two that may confirm',
    configuration: twoWithTransactionData({ ...ENTRY, credential_ids: ['card', 'pass'] }),
    run: (world, asked) => world.answer(asked, { card: [world.card(asked)], pass: [world.pass(asked)] }),
    expected: refused('presentation_refused'),
  },
  {
    row: 133,
    what: 'the hash in a credential that is discarded',
    configuration: twoWithTransactionData({ ...ENTRY, credential_ids: ['card', 'pass'] }, [
      { options: [['pass']] },
      { options: [['card']], required: false },
    ]),
    run: (world, asked) => {
      const kb = { transaction_data_hashes: hashes(textsOf(asked)), aud: 'other' };
      return world.answer(asked, { card: [world.card(asked, { kb })], pass: [world.pass(asked)] });
    },
    expected: refused('presentation_refused'),
  },
];

type Make = (world: World, asked: FetchedRequest, payload: JsonProperties) => Promise<string> | string;

const keyOf = ({ payload }: FetchedRequest): JsonProperties => payload['client_metadata'].jwks.keys[0];

/** Other people's encryption, its header being bent. */
async function sealedBy(jwk: JsonProperties, plaintext: unknown, header: JsonProperties): Promise<string> {
  const text = typeof plaintext === 'string' ? plaintext : JSON.stringify(plaintext);
  const all = { alg: 'ECDH-ES', enc: 'A256GCM', kid: jwk['kid'], ...header };
  const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  const options = { crit: Object.fromEntries((header['crit'] ?? []).map((name: string) => [name, true])) };
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader(kept as CompactJWEHeaderParameters)
    .encrypt(await importJWK({ ...jwk, alg: all.alg }, all.alg), options);
}
const bent =
  (header: JsonProperties): Make =>
  (_, asked, payload) =>
    sealedBy(keyOf(asked), payload, header);
const plaintext =
  (make: (asked: FetchedRequest) => string): Make =>
  (_, asked) =>
    sealedBy(keyOf(asked), make(asked), {});
const edited =
  (at: number, change: (text: string) => string): Make =>
  async (_, asked, payload) =>
    changePart('.', at, change)(await encryptResponse(asked, payload));
const header = (change: (header: JsonProperties) => JsonProperties) =>
  edited(0, (text) => {
    const known = JSON.parse(Buffer.from(text, 'base64url').toString()) as JsonProperties;
    return Buffer.from(JSON.stringify({ ...known, ...change(known) })).toString('base64url');
  });

const respond = (make: Make) => async (world: World, asked: FetchedRequest) => {
  const payload = { vp_token: { card: [world.card(asked)] }, state: asked.payload['state'] };
  const form = { response: await make(world, asked, payload) };
  return world.service.call('POST', asked.payload['response_uri'], { form });
};
/** The first few of what does not decrypt leave the request open. */
const insist = (make: Make) => async (world: World, asked: FetchedRequest) => {
  const once = respond(make);
  for (let i = 1; i < MAX_UNDECRYPTED_ATTEMPTS; i++) await once(world, asked);
  return once(world, asked);
};
const closed = (row: number, cases: Readonly<Record<string, Make>>, code = 'decryption_failed') =>
  Object.entries(cases).map(
    ([what, make]): Case => ({ row, what, run: code === 'decryption_failed' ? insist(make) : respond(make), expected: refused(code) }),
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
    'the key of another session': async (world, _, payload) => encryptResponse(await world.ask(), payload),
    'the key of another session under the kid of this one': async (world, asked, payload) =>
      sealedBy(keyOf(await world.ask()), payload, { kid: keyOf(asked)['kid'] }),
    'a key that was not requested': (_, asked, payload) => sealedBy(newKey().jwk, payload, { kid: keyOf(asked)['kid'] }),
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
    'an epk that is not on the curve': header(() => ({ epk: { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) } })),
    'an epk with a private key': header(({ epk }) => ({ epk: { ...epk, d: 'A'.repeat(43) } })),
    'an epk of another kind': header(() => ({ epk: { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) } })),
    'no epk': header(() => ({ epk: undefined })),
  }),
  ...closed(55, {
    'a changed tag': edited(4, flipFirstByte),
    'a shortened tag': edited(4, (text) => text.slice(0, 16)),
    'a changed ciphertext': edited(3, flipFirstByte),
    'a changed iv': edited(2, flipFirstByte),
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
      run: respond((_, asked, payload) => encryptResponse(asked, { ...payload, state })),
      expected: kept(),
    }),
  ),
  {
    row: 59,
    what: 'the right state inside and another one outside',
    run: async (world, asked): Promise<Answer> => {
      const { state, response_uri } = asked.payload;
      const response = await encryptResponse(asked, { vp_token: { card: [world.card(asked)] }, state });
      return world.service.call('POST', response_uri, { form: { response, state: 'wrong' } });
    },
    expected: kept(),
  },
  ...closed(60, { 'an unknown extension': bent({ crit: ['urn:x'], 'urn:x': true }) }),
];
