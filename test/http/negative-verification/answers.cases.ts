import { expect } from 'chai';
import { CompactEncrypt, type CompactJWEHeaderParameters, importJWK } from 'jose';
import { MAX_UNDECRYPTED_ATTEMPTS } from '../../../application/verification/response-intake.ts';
import type { RefusalReason } from '../../../domain/shared/refusal.ts';
import { withoutIssuers } from '../../support/failures.ts';
import { encryptResponse, type FetchedRequest, responseForm } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { changePart, digestOf, flipFirstByte, type JsonProperties, jws } from '../../support/sd-jwt-maker.ts';
import type { Answer } from '../../support/test-service.ts';
import {
  accepted,
  CARD_QUERY,
  type Case,
  LICENCE_QUERY,
  PASS_QUERY,
  type PresentationCase,
  rejected,
  stillOpen,
  type World,
} from './world.ts';

const MODES = [{}, { responseMode: 'direct_post' }];
const modeOf = (mode: object) => ('responseMode' in mode ? 'in the clear' : 'encrypted');

/** One response, with both response modes. */
const responseInBothModes = (row: number, title: string, make: (text: string, request: FetchedRequest) => unknown): readonly Case[] =>
  MODES.map((configuration) => ({
    row,
    title: `${title}, ${modeOf(configuration)}`,
    configuration,
    run: (world, request) => world.answer(request, make(world.card(request), request)),
    expected: rejected('malformed'),
  }));

const TWO = [CARD_QUERY, PASS_QUERY];
const twoCredentials = (...credential_sets: object[]) => ({ dcql_query: { credentials: TWO, credential_sets } });

const incomplete = (row: number, title: string, configuration: JsonProperties, missing: string): Case => ({
  row,
  title,
  configuration,
  run: (world, request) => world.answer(request, { card: [world.card(request)] }),
  expected: rejected('presentation_refused'),
  async assertAfter(world, request) {
    expect((await world.session(request))['failure'].message).to.include(missing);
    expect(world.webhookBodies(request)[0]?.['credentials']).to.deep.include({ id: 'card', error: 'response_refused' });
  },
});

/** Invalid content of `vp_token` (OpenID4VP 1.0 sections 6.4 and 8.1). */
export const vpTokenCases: readonly Case[] = [
  ...responseInBothModes(61, 'vp_token is text', (text) => text),
  ...responseInBothModes(61, 'vp_token is an array', (text) => [text]),
  ...responseInBothModes(61, 'vp_token is null', () => null),
  ...responseInBothModes(61, 'vp_token is a number', () => 1),
  ...responseInBothModes(62, 'text instead of an array', (text) => ({ card: text })),
  ...responseInBothModes(62, 'an object instead of an array', (text) => ({ card: { 0: text } })),
  ...responseInBothModes(63, 'an empty array', () => ({ card: [] })),
  ...responseInBothModes(64, 'two presentations without multiple', (text) => ({ card: [text, text] })),
  ...responseInBothModes(65, 'an id that no query has', (text) => ({ card: [text], other: [text] })),
  ...responseInBothModes(65, 'an id in another case', (text) => ({ Card: [text] })),
  ...responseInBothModes(67, 'an object as presentation', () => ({ card: [{}] })),
  ...responseInBothModes(67, 'a number as presentation', () => ({ card: [1] })),
  ...responseInBothModes(67, 'null as presentation', () => ({ card: [null] })),
  {
    row: 66,
    title: 'a repeated id, in the clear',
    configuration: { responseMode: 'direct_post' },
    run: (world, { payload, ...request }) => {
      const list = JSON.stringify([world.card({ payload, ...request })]);
      const form = { vp_token: `{"card":${list},"card":${list}}`, state: payload['state'] };
      return world.service.call('POST', payload['response_uri'], { form });
    },
    expected: rejected('malformed'),
  },
  {
    row: 66,
    title: 'a repeated id, once with an escape',
    configuration: { responseMode: 'direct_post' },
    run: (world, { payload, ...request }) => {
      const list = JSON.stringify([world.card({ payload, ...request })]);
      const form = { vp_token: `{"card":${list},"c\\u0061rd":${list}}`, state: payload['state'] };
      return world.service.call('POST', payload['response_uri'], { form });
    },
    expected: rejected('malformed'),
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
    title: 'two credentials that are swapped',
    configuration: { dcql_query: { credentials: TWO } },
    run: (world, request) => world.answer(request, { card: [world.pass(request)], pass: [world.card(request)] }),
    expected: rejected('presentation_refused'),
    async assertAfter(world, request) {
      expect(withoutIssuers(world.webhookBodies(request)[0]?.['credentials'])).to.deep.equal([
        { id: 'card', error: 'type_mismatch' },
        { id: 'pass', error: 'type_mismatch' },
      ]);
    },
  },
  {
    row: 73,
    title: 'a presentation_submission of earlier drafts',
    run: async (world, request) => {
      const submission = { id: 'x', definition_id: 'y', descriptor_map: [] };
      const vp_token = { card: [world.card(request)] };
      const response = await encryptResponse(request, { vp_token, state: request.payload['state'], presentation_submission: submission });
      return world.service.call('POST', request.payload['response_uri'], { form: { response } });
    },
    expected: accepted,
  },
  {
    row: 73,
    title: 'a presentation_submission in the form',
    configuration: { responseMode: 'direct_post' },
    run: async (world, request) => {
      const form = await responseForm(request, { card: [world.card(request)] });
      return world.service.call('POST', request.payload['response_uri'], { form: { ...form, presentation_submission: '{' } });
    },
    expected: accepted,
  },
];

const licenceOf = (world: World, request: FetchedRequest) => world.licence(request);

/** Presentations under the wrong credential query. */
export const misplacedCases: readonly PresentationCase[] = [
  { row: 71, title: 'an mdoc instead of an SD-JWT VC', reason: 'malformed', present: licenceOf },
  {
    row: 71,
    title: 'an SD-JWT VC instead of an mdoc',
    format: LICENCE_QUERY.format as 'mso_mdoc',
    reason: 'malformed',
    present: (world, request) => world.card(request),
  },
];

const ENTRY = { type: 'urn:example:payment', credential_ids: ['card'], amount: '12.50 EUR' };
const SECOND = { ...ENTRY, amount: '1.00 EUR' };

const textsOf = ({ payload }: FetchedRequest): readonly string[] => payload['transaction_data'];
const hashes = (texts: readonly string[], algorithm?: string) => texts.map((text) => digestOf(text, algorithm));
const decoded = (text: string) => Buffer.from(text, 'base64url').toString();

/** A confirmation that differs from the requested one. */
const confirming = (
  row: number,
  title: string,
  reason: RefusalReason,
  claims: (texts: readonly string[], world: World) => JsonProperties | Promise<JsonProperties>,
  entries: readonly JsonProperties[] = [ENTRY],
): PresentationCase => ({
  row,
  title,
  reason,
  effect: 'needed',
  configuration: { transaction_data: entries },
  async present(world, request) {
    return world.card(request, { kb: await claims(textsOf(request), world) });
  },
});
const MISMATCH = 'transaction_data_mismatch';
const ENTRY_WITH_ALGORITHMS = { ...ENTRY, transaction_data_hashes_alg: ['sha-384', 'sha-512'] };

/** Confirmations of transaction data by the holder (OpenID4VP 1.0 section 8.4 and appendix B.3.3.1). */
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
  confirming(131, 'an additional hash without an entry', MISMATCH, (texts) => ({
    transaction_data_hashes: [...hashes(texts), digestOf('x')],
  })),
  confirming(
    132,
    'an algorithm that was not requested',
    'transaction_data_alg',
    (texts) => ({ transaction_data_hashes: hashes(texts), transaction_data_hashes_alg: 'sha-256' }),
    [ENTRY_WITH_ALGORITHMS],
  ),
  confirming(
    132,
    'no algorithm in spite of requested ones',
    'transaction_data_alg',
    (texts) => ({ transaction_data_hashes: hashes(texts, 'sha384') }),
    [ENTRY_WITH_ALGORITHMS],
  ),
  confirming(132, 'an algorithm in spite of no requested one', 'transaction_data_alg', (texts) => ({
    transaction_data_hashes: hashes(texts, 'sha384'),
    transaction_data_hashes_alg: 'sha-384',
  })),
  confirming(132, 'an unknown algorithm', 'transaction_data_alg', (texts) => ({
    transaction_data_hashes: hashes(texts),
    transaction_data_hashes_alg: 'sha-1',
  })),
];

const twoWithTransactionData = (entry: JsonProperties, credential_sets?: readonly JsonProperties[]) => ({
  transaction_data: [entry],
  dcql_query: { credentials: [CARD_QUERY, PASS_QUERY], ...(credential_sets && { credential_sets }) },
});

/** Transaction data in a request for several credentials. */
export const transactionDataResponseCases: readonly Case[] = [
  {
    row: 133,
    title: 'the hash in a credential that may not confirm',
    configuration: twoWithTransactionData(ENTRY),
    run: (world, request) => {
      const kb = { transaction_data_hashes: hashes(textsOf(request)) };
      return world.answer(request, { card: [world.card(request)], pass: [world.pass(request, { kb })] });
    },
    expected: rejected('presentation_refused'),
  },
  {
    row: 133,
    title: 'the hash in a credential that may not confirm, the other one being left out',
    configuration: twoWithTransactionData(ENTRY, [{ options: [['pass'], ['card']] }]),
    run: (world, request) => {
      const kb = { transaction_data_hashes: hashes(textsOf(request)) };
      return world.answer(request, { pass: [world.pass(request, { kb })] });
    },
    expected: rejected('presentation_refused'),
  },
  {
    row: 133,
    title: 'the hash in none of two that may confirm',
    configuration: twoWithTransactionData({ ...ENTRY, credential_ids: ['card', 'pass'] }),
    run: (world, request) => world.answer(request, { card: [world.card(request)], pass: [world.pass(request)] }),
    expected: rejected('presentation_refused'),
  },
  {
    row: 133,
    title: 'the hash in a credential that is discarded',
    configuration: twoWithTransactionData({ ...ENTRY, credential_ids: ['card', 'pass'] }, [
      { options: [['pass']] },
      { options: [['card']], required: false },
    ]),
    run: (world, request) => {
      const kb = { transaction_data_hashes: hashes(textsOf(request)), aud: 'other' };
      return world.answer(request, { card: [world.card(request, { kb })], pass: [world.pass(request)] });
    },
    expected: rejected('presentation_refused'),
  },
];

type Make = (world: World, request: FetchedRequest, payload: JsonProperties) => Promise<string> | string;

const keyOf = ({ payload }: FetchedRequest): JsonProperties => payload['client_metadata'].jwks.keys[0];

/** Encrypts with a modified header. */
async function encryptTo(jwk: JsonProperties, plaintext: unknown, header: JsonProperties): Promise<string> {
  const text = typeof plaintext === 'string' ? plaintext : JSON.stringify(plaintext);
  const all = { alg: 'ECDH-ES', enc: 'A256GCM', kid: jwk['kid'], ...header };
  const definedHeader = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  const options = { crit: Object.fromEntries((header['crit'] ?? []).map((name: string) => [name, true])) };
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader(definedHeader as CompactJWEHeaderParameters)
    .encrypt(await importJWK({ ...jwk, alg: all.alg }, all.alg), options);
}
const withHeader =
  (header: JsonProperties): Make =>
  (_, request, payload) =>
    encryptTo(keyOf(request), payload, header);
const plaintext =
  (make: (request: FetchedRequest) => string): Make =>
  (_, request) =>
    encryptTo(keyOf(request), make(request), {});
const edited =
  (index: number, change: (text: string) => string): Make =>
  async (_, request, payload) =>
    changePart('.', index, change)(await encryptResponse(request, payload));
const header = (change: (header: JsonProperties) => JsonProperties) =>
  edited(0, (text) => {
    const protectedHeader = JSON.parse(Buffer.from(text, 'base64url').toString()) as JsonProperties;
    return Buffer.from(JSON.stringify({ ...protectedHeader, ...change(protectedHeader) })).toString('base64url');
  });

const respond = (make: Make) => async (world: World, request: FetchedRequest) => {
  const payload = { vp_token: { card: [world.card(request)] }, state: request.payload['state'] };
  const form = { response: await make(world, request, payload) };
  return world.service.call('POST', request.payload['response_uri'], { form });
};
/** The first responses that cannot be decrypted leave the request open. */
const respondUntilClosed = (make: Make) => async (world: World, request: FetchedRequest) => {
  const respondOnce = respond(make);
  for (let i = 1; i < MAX_UNDECRYPTED_ATTEMPTS; i++) await respondOnce(world, request);
  return respondOnce(world, request);
};
const closingCases = (row: number, cases: Readonly<Record<string, Make>>, code = 'decryption_failed') =>
  Object.entries(cases).map(
    ([title, make]): Case => ({
      row,
      title,
      run: code === 'decryption_failed' ? respondUntilClosed(make) : respond(make),
      expected: rejected(code),
    }),
  );

const RSA = 'RSA-OAEP-256';

/** Responses with invalid encryption (OpenID4VP 1.0 section 8.3). */
export const encryptionCases: readonly Case[] = [
  ...closingCases(50, {
    'an unknown kid': withHeader({ kid: 'unknown' }),
    'no kid': withHeader({ kid: undefined }),
    'a kid that is no text': withHeader({ kid: 5 }),
  }),
  ...closingCases(51, {
    'the key of another session': async (world, _, payload) => encryptResponse(await world.ask(), payload),
    'the key of another session under the kid of this one': async (world, request, payload) =>
      encryptTo(keyOf(await world.ask()), payload, { kid: keyOf(request)['kid'] }),
    'a key that was not requested': (_, request, payload) => encryptTo(newKey().jwk, payload, { kid: keyOf(request)['kid'] }),
  }),
  ...closingCases(52, {
    'an enc that was not offered': withHeader({ enc: 'A128CBC-HS256' }),
    'an enc between the offered ones': withHeader({ enc: 'A192GCM' }),
  }),
  ...closingCases(53, {
    'key agreement with key wrapping': withHeader({ alg: 'ECDH-ES+A128KW' }),
    'dir in the header': header(() => ({ alg: 'dir' })),
    'RSA in the header': header(() => ({ alg: RSA })),
    'an encrypted key beside direct agreement': edited(1, () => 'AAAA'),
    'a symmetric key': async (_, request, payload) =>
      new CompactEncrypt(Buffer.from(JSON.stringify(payload)))
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: keyOf(request)['kid'] })
        .encrypt(Buffer.alloc(32)),
  }),
  ...closingCases(54, {
    'an epk of another curve': header(() => ({ epk: newKey('P-384').jwk })),
    'an epk that is not on the curve': header(() => ({ epk: { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) } })),
    'an epk with a private key': header(({ epk }) => ({ epk: { ...epk, d: 'A'.repeat(43) } })),
    'an epk of another kind': header(() => ({ epk: { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) } })),
    'no epk': header(() => ({ epk: undefined })),
  }),
  ...closingCases(55, {
    'a changed tag': edited(4, flipFirstByte),
    'a shortened tag': edited(4, (text) => text.slice(0, 16)),
    'a changed ciphertext': edited(3, flipFirstByte),
    'a changed iv': edited(2, flipFirstByte),
    'a changed header': header(() => ({ cty: 'json' })),
    'an apu that came later': header(() => ({ apu: 'AAAA' })),
  }),
  ...closingCases(56, { compression: header(() => ({ zip: 'DEF' })) }),
  ...closingCases(57, {
    'a signed JWT': (world, _, payload) => jws({ alg: 'ES256' }, payload, world.issuer.key),
    'a signed JWT inside': plaintext(() => jws({ alg: 'ES256' }, { vp_token: {} }, newKey())),
    'a JWT announced by cty': withHeader({ cty: 'JWT' }),
    'the request itself': (_, request) => request.text,
  }),
  ...closingCases(
    58,
    {
      'a plaintext that is not JSON': plaintext(() => 'nonsense'),
      'an array as plaintext': plaintext(() => '[]'),
      'text as plaintext': plaintext(() => '"text"'),
      'a repeated property': plaintext(({ payload }) => `{"state":"${payload['state']}","state":"${payload['state']}","vp_token":{}}`),
    },
    'malformed',
  ),
  ...['wrong', 5, null].map(
    (state): Case => ({
      row: 59,
      title: `the state ${state} inside`,
      run: respond((_, request, payload) => encryptResponse(request, { ...payload, state })),
      expected: stillOpen(),
    }),
  ),
  {
    row: 59,
    title: 'the right state inside and another one outside',
    run: async (world, request): Promise<Answer> => {
      const { state, response_uri } = request.payload;
      const response = await encryptResponse(request, { vp_token: { card: [world.card(request)] }, state });
      return world.service.call('POST', response_uri, { form: { response, state: 'wrong' } });
    },
    expected: stillOpen(),
  },
  ...closingCases(60, { 'an unknown extension': withHeader({ crit: ['urn:x'], 'urn:x': true }) }),
];
