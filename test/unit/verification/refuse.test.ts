import { expect } from 'chai';
import { MAX_UNDECRYPTED_ATTEMPTS } from '../../../application/verification/response-intake.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import type { RefusalReason } from '../../../domain/shared/refusal.ts';
import { withoutIssuers } from '../../support/failures.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { ACME, type Asked, type Changes, type Encrypted, encrypt, formOf, makeHolder, present, query, World } from './kit.ts';

type Form = Record<string, string>;

let world: World;

async function answer(asked: Asked, form: Form): Promise<string> {
  try {
    await world.receiveResponse.execute(asked.tenantId, asked.publicId, form);
    return 'accepted';
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

/** R400: refused, the session failed, nothing verified is left and the backend saw no value. */
async function expectRefused(asked: Asked, form: Form, reason: string): Promise<void> {
  expect(await answer(asked, form)).to.equal('invalid_request');
  const { status, outcome } = await world.session(asked.session.id, asked.tenantId);
  expect(status).to.equal('failed');
  expect(JSON.stringify([outcome?.failure, outcome?.report])).to.include(reason);
  expect(outcome).to.not.have.property('credentials');
  for (const { body } of world.webhooks.calls) expect(JSON.stringify(body)).to.not.include('values');
}

const reportOf = (outcome: { readonly report?: unknown } | null | undefined) => (outcome?.report ?? []) as JsonObject[];

/** K: refused, and the session is as it was: the right answer still counts. */
async function expectUntouched(asked: Asked, form: Form): Promise<void> {
  expect(await answer(asked, form)).to.equal('invalid_request');
  expect((await world.session(asked.session.id)).status).to.equal('fetched');
  expect(await answer(asked, await formOf(asked, { card: [present(world, asked)] }))).to.equal('accepted');
}

async function ask(config: JsonObject = {}): Promise<Asked> {
  await world.configure(config);
  return world.givenRequest();
}

const flip = (bytes: Uint8Array): Uint8Array => Uint8Array.from(bytes, (byte, at) => (at === 40 ? byte ^ 1 : byte));
const replacePart = (text: string, at: number, change: (part: string) => string) =>
  text
    .split('~')
    .map((part, position) => (position === at ? change(part) : part))
    .join('~');

describe('rejected response', () => {
  beforeEach(async () => {
    world = await World.make();
  });

  describe('leaves the session unchanged', () => {
    const forms: Readonly<Record<string, (asked: Asked, form: Form) => Form | Promise<Form>>> = {
      // N33
      'without vp_token, response or error': ({ request }) => ({ state: request.state }),
      // N38
      'without state': (_, { vp_token = '' }) => ({ vp_token }),
      // N39
      'with a foreign state': (_, form) => ({ ...form, state: 'foreign' }),
      // N46
      'with an error and a foreign state': () => ({ error: 'access_denied', state: 'foreign' }),
    };
    for (const [what, change] of Object.entries(forms)) {
      it(`with ${what}`, async () => {
        const asked = await ask({ responseMode: 'direct_post' });
        await expectUntouched(asked, await change(asked, await formOf(asked, { card: [present(world, asked)] })));
      });
    }
    for (const state of ['foreign', undefined]) {
      // N59
      it(`with the state ${state} inside the JWE`, async () => {
        const asked = await ask();
        const response = await encrypt(asked, { vp_token: { card: [present(world, asked)] }, state });
        await expectUntouched(asked, { response });
      });
    }
    // N40
    it('with the correct state under the address of another session', async () => {
      const asked = await ask({ responseMode: 'direct_post' });
      const other = await world.request();
      await expectUntouched(other, await formOf(asked, { card: [present(world, asked)] }));
      expect((await world.session(asked.session.id)).status).to.equal('fetched');
    });
  });

  // N41
  it('leaves the first result of an answered request unchanged', async () => {
    const asked = await ask();
    const form = await formOf(asked, { card: [present(world, asked)] });
    expect(await answer(asked, form)).to.equal('accepted');
    expect(await answer(asked, form)).to.equal('invalid_request');
    expect((await world.session(asked.session.id)).outcome?.credentials).to.have.length(1);
  });

  // N44
  it('never ends a request that was not fetched', async () => {
    await world.configure();
    const body = { response_type: 'uri', requestId: 'card' } as const;
    const offer = await world.createPresentationRequest.execute(cachedCaller(await world.caller()), body);
    const session = await world.session(offer.session);
    const request = session.request as Asked['request'];
    const asked = { tenantId: ACME, session, publicId: session.publicId, request, claims: {}, text: '' };
    expect(await answer(asked, await formOf(asked, { card: [present(world, asked)] }))).to.equal('accepted');
  });

  describe('ends the session for its envelope:', () => {
    const cases: Readonly<Record<string, [string, (form: Form, asked: Asked) => Form]>> = {
      // N34
      'plain although encryption was asked for': ['direct_post.jwt', (_, { request }) => ({ vp_token: '{}', state: request.state })],
      // N35
      'encrypted although not asked for': ['direct_post', () => ({ response: 'a.b.c.d.e' })],
      // N36
      'vp_token and error': ['direct_post', (form) => ({ ...form, error: 'access_denied' })],
      // N37
      'response and vp_token': ['direct_post.jwt', (form) => ({ ...form, vp_token: '{}' })],
    };
    for (const [what, [responseMode, change]] of Object.entries(cases)) {
      it(what, async () => {
        const asked = await ask({ responseMode });
        const form = await formOf(asked, { card: [present(world, asked)] });
        await expectRefused(asked, change(form, asked), 'response_mode');
      });
    }
    // N49, N73
    it('but not for unknown fields, nor for an old presentation_submission', async () => {
      const asked = await ask({ responseMode: 'direct_post' });
      const form = await formOf(asked, { card: [present(world, asked)] });
      expect(await answer(asked, { ...form, presentation_submission: '{}', x: 'y' })).to.equal('accepted');
    });
  });

  for (const responseMode of ['direct_post', 'direct_post.jwt']) {
    // N45, N48
    it(`ends the session as a wallet error, unencrypted in ${responseMode}`, async () => {
      const asked = await ask({ responseMode, redirectUri: 'https://shop.example/' });
      const form = { error: 'access_denied', state: asked.request.state };
      expect(await answer(asked, form)).to.equal('accepted');
      const { status, outcome } = await world.session(asked.session.id);
      expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'access_denied']);
      expect(outcome).to.have.property('responseCodeHash');
      expect(world.webhooks.calls).to.have.length(0);
    });
  }
  // N47
  it('ends the session as a wallet error whose text is truncated and escaped', async () => {
    const asked = await ask();
    const error_description = `<script>\u0000\u202e${'x'.repeat(100_000)}`;
    await answer(asked, { error: 'nonsense ', error_description, state: asked.request.state });
    const failure = (await world.session(asked.session.id)).outcome?.failure;
    expect(failure?.code).to.equal('wallet_error');
    expect(failure?.message)
      .to.match(/^&lt;script&gt; {2}x+$/)
      .and.have.length.below(400);
  });

  describe('for its encryption', () => {
    type Make = (asked: Asked, payload: JsonObject) => Promise<string>;
    const withKey =
      (changes: Encrypted): Make =>
      (asked, payload) =>
        encrypt(asked, payload, changes);
    const edited =
      (part: number, change: (text: string) => string): Make =>
      async (asked, payload) => {
        const parts = (await encrypt(asked, payload)).split('.');
        return parts.map((text, at) => (at === part ? change(text) : text)).join('.');
      };
    const header = (change: JsonObject) =>
      edited(0, (text) => {
        const known = JSON.parse(Buffer.from(text, 'base64url').toString()) as JsonObject;
        return Buffer.from(JSON.stringify({ ...known, ...change })).toString('base64url');
      });
    const cases: Readonly<Record<string, Make>> = {
      // N50
      'an unknown kid': withKey({ header: { kid: 'unknown' } }),
      // N51
      'the key of another session': async (asked, payload) => {
        const { publicJwk } = (await world.request()).request.encryption ?? { publicJwk: {} };
        return encrypt(asked, payload, { jwk: publicJwk, header: { kid: asked.request.encryption?.publicJwk['kid'] } });
      },
      // N52
      'an enc that was not offered': withKey({ enc: 'A128CBC-HS256' }),
      // N53
      'key agreement with key wrapping': withKey({ alg: 'ECDH-ES+A128KW' }),
      // N54
      'a point that is not on the curve': header({ epk: { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) } }),
      // N55
      'a changed tag': edited(4, (text) => (text.startsWith('A') ? `B${text.slice(1)}` : `A${text.slice(1)}`)),
      // N55
      'a changed ciphertext': edited(3, (text) => (text.startsWith('A') ? `B${text.slice(1)}` : `A${text.slice(1)}`)),
      // N55
      'a changed header': header({ cty: 'json' }),
      // N56
      compression: header({ zip: 'DEF' }),
      // N57
      'a signed JWT': async (asked) => asked.text,
      // N57
      'a nested JWS': async (asked) => encrypt(asked, asked.text),
      // N60
      'an unknown crit': header({ crit: ['x'], x: 1 }),
    };
    for (const [what, make] of Object.entries(cases)) {
      it(what, async () => {
        const asked = await ask();
        const payload = { vp_token: { card: [present(world, asked)] }, state: asked.request.state };
        const form = { response: await make(asked, payload) };
        for (let i = 1; i < MAX_UNDECRYPTED_ATTEMPTS; i++) {
          expect(await answer(asked, form)).to.equal('invalid_request');
          expect((await world.session(asked.session.id)).status, `try ${i}`).to.equal('fetched');
        }
        await expectRefused(asked, form, 'decryption_failed');
      });
    }
    it('leaves the request open for the wallet when other callers send invalid responses', async () => {
      const asked = await ask();
      for (let i = 2; i < MAX_UNDECRYPTED_ATTEMPTS; i++) await answer(asked, { response: asked.text });
      await expectUntouched(asked, { response: asked.text });
    });
    for (const plaintext of ['nonsense', '[]', '"text"', '{"a":1,"a":2}']) {
      // N58
      it(`ends the session with the plaintext ${plaintext}`, async () => {
        const asked = await ask();
        await expectRefused(asked, { response: await encrypt(asked, plaintext) }, 'malformed');
      });
    }
  });

  describe('ends the session for the structure of vp_token:', () => {
    const shapes: Readonly<Record<string, (text: string) => unknown>> = {
      // N61
      'a string': (text) => text,
      // N61
      'an array': (text) => [text],
      // N61
      null: () => null,
      // N62
      'a string instead of an array': (text) => ({ card: text }),
      // N63
      'an empty array': () => ({ card: [] }),
      // N64
      'two presentations without multiple': (text) => ({ card: [text, text] }),
      // N65
      'a key that is not a query': (text) => ({ card: [text], other: [text] }),
      // N67
      'an object as presentation': () => ({ card: [{}] }),
      // N67
      'a number as presentation': () => ({ card: [1] }),
    };
    for (const responseMode of ['direct_post', 'direct_post.jwt']) {
      for (const [what, shape] of Object.entries(shapes)) {
        it(`${what}, ${responseMode}`, async () => {
          const asked = await ask({ responseMode });
          await expectRefused(asked, await formOf(asked, shape(present(world, asked))), 'malformed');
        });
      }
    }
    // N66
    it('a duplicate property', async () => {
      const asked = await ask({ responseMode: 'direct_post' });
      const list = JSON.stringify([present(world, asked)]);
      const form = { vp_token: `{"card":${list},"card":${list}}`, state: asked.request.state };
      await expectRefused(asked, form, 'malformed');
    });
    it('more presentations than any wallet sends', async () => {
      const asked = await ask({ dcql_query: query({ id: 'card', multiple: true }) });
      const form = await formOf(asked, { card: Array.from({ length: 101 }, () => 'x~') });
      await expectRefused(asked, form, 'malformed');
    });
  });

  describe('that is incomplete', () => {
    const two = query({ id: 'card' }, { id: 'other', meta: { vct_values: ['urn:other'] } });
    const sets = (...credential_sets: JsonObject[]) => ({ dcql_query: { ...two, credential_sets } });
    // N68
    it('ends the session when a required query is missing', async () => {
      const asked = await ask({ dcql_query: two });
      await expectRefused(asked, await formOf(asked, { card: [present(world, asked)] }), 'missing other');
      expect(withoutIssuers(world.webhooks.calls[0]?.body.credentials)).to.deep.equal([
        { id: 'card', error: 'response_refused' },
        { id: 'other', error: 'missing' },
      ]);
    });
    // N69
    it('ends the session with half of an option', async () => {
      const asked = await ask(sets({ options: [['card', 'other']] }));
      await expectRefused(asked, await formOf(asked, { card: [present(world, asked)] }), 'credential_sets[0]');
    });
    // N70
    it('ends the session with only the optional set', async () => {
      const asked = await ask(sets({ options: [['other']] }, { options: [['card']], required: false }));
      await expectRefused(asked, await formOf(asked, { card: [present(world, asked)] }), 'credential_sets[0]');
    });
    // N72
    it('ends the session when the credentials are swapped', async () => {
      const asked = await ask({ dcql_query: two });
      const [card, other] = [present(world, asked), present(world, asked, { visible: { vct: 'urn:other' } })];
      await expectRefused(asked, await formOf(asked, { card: [other], other: [card] }), 'type_mismatch');
    });
    it('does not exist when only an optional credential is invalid', async () => {
      const asked = await ask(sets({ options: [['card']] }, { options: [['other']], required: false }));
      const vpToken = { card: [present(world, asked)], other: [present(world, asked)] };
      expect(await answer(asked, await formOf(asked, vpToken))).to.equal('accepted');
      expect(withoutIssuers(world.webhooks.calls[0]?.body.credentials)).to.deep.equal([
        { id: 'card', values: { name: 'Erika' } },
        { id: 'other', error: 'type_mismatch' },
      ]);
    });
    it('does not exist for an array if several presentations may be sent', async () => {
      const asked = await ask({ dcql_query: query({ id: 'card', multiple: true }) });
      const bad = present(world, asked, { kb: { aud: 'other' } });
      const vpToken = { card: [present(world, asked), bad, present(world, asked, { claims: { name: 'Max' } })] };
      expect(await answer(asked, await formOf(asked, vpToken))).to.equal('accepted');
      expect(withoutIssuers(world.webhooks.calls[0]?.body.credentials)).to.deep.equal([
        { id: 'card', values: [{ name: 'Erika' }, { name: 'Max' }] },
      ]);
    });
    it('counts a credential once, for any number of presentations and key bindings', async () => {
      const asked = await ask({ dcql_query: query({ id: 'card', multiple: true }) });
      const first = present(world, asked);
      const credential = first.slice(0, first.lastIndexOf('~') + 1);
      const again = present(world, asked, { credential: () => credential, kb: { iat: world.seconds - 1 } });
      expect(again).to.not.equal(first);
      const vpToken = { card: [first, again, first, present(world, asked)] };
      expect(await answer(asked, await formOf(asked, vpToken))).to.equal('accepted');
      expect(withoutIssuers(world.webhooks.calls[0]?.body.credentials)).to.deep.equal([
        { id: 'card', values: [{ name: 'Erika' }, { name: 'Erika' }] },
      ]);
      const { outcome } = await world.session(asked.session.id);
      const repeated = reportOf(outcome).filter(({ reason }) => reason === 'repeated_credential');
      expect(repeated.map(({ index }) => index)).to.deep.equal([1, 2]);
    });
    it('names the queries if one credential answers several', async () => {
      const asked = await ask({ dcql_query: query({ id: 'card' }, { id: 'name' }) });
      const card = present(world, asked);
      expect(await answer(asked, await formOf(asked, { card: [card], name: [card] }))).to.equal('accepted');
      const { outcome } = await world.session(asked.session.id);
      const said = reportOf(outcome).filter(({ check }) => check === 'one credential for several queries');
      expect(said.map(({ id, input }) => [id, input])).to.deep.equal([
        ['card', 'name'],
        ['name', 'card'],
      ]);
    });
    it('neither returns an uncertified iss nor matches it with a query', async () => {
      const visible = { iss: 'https://ministry.example' };
      const [{ claims: _, ...whole }] = query({ id: 'card' })['credentials'] as [JsonObject];
      const open = await ask({ dcql_query: { credentials: [whole] } });
      const form = await formOf(open, { card: [present(world, open, { visible })] });
      expect(await answer(open, form)).to.equal('accepted');
      expect(JSON.stringify(world.webhooks.calls)).to.not.include('ministry');
      const claims = [{ path: ['iss'], values: ['https://ministry.example'] }];
      const asked = await ask({ dcql_query: query({ id: 'card', claims }) });
      world.webhooks.calls.length = 0;
      const demanded = await formOf(asked, { card: [present(world, asked, { visible })] });
      await expectRefused(asked, demanded, 'missing_claim');
    });
  });

  describe('ends the session for its presentation:', () => {
    const kbOf = (text: string) => text.slice(text.lastIndexOf('~') + 1);
    const jwk = makeHolder();
    const cases: Readonly<Record<string, [RefusalReason, Changes | ((asked: Asked) => Changes | Promise<Changes>)]>> = {
      // N71
      'an mdoc': ['malformed', { text: () => 'o2d2ZXJzaW9uYzEuMA' }],
      // N74
      'without key binding': ['holder_binding_missing', { text: (text) => text.slice(0, text.lastIndexOf('~') + 1) }],
      // N75
      'without the last tilde': ['malformed', { text: (text) => text.slice(0, text.lastIndexOf('~')) }],
      // N76
      'two key bindings': ['malformed', { text: (text) => `${text}~${kbOf(text)}` }],
      // N76
      'an empty disclosure': ['malformed', { credential: (text) => `${text}~` }],
      // N77
      'KB typ JWT': ['kb_typ', { kbHeader: { typ: 'JWT' } }],
      // N77
      'KB typ in capitals': ['kb_typ', { kbHeader: { typ: 'KB+JWT' } }],
      // N78
      'KB alg none': ['kb_alg', { kbHeader: { alg: 'none' } }],
      // N78
      'KB alg HS256': ['kb_alg', { kbHeader: { alg: 'HS256' } }],
      // N79
      'another holder': ['kb_signature', { holder: jwk }],
      // N80
      'a key in the KB header': ['kb_signature', { holder: jwk, kbHeader: { jwk: { ...jwk.jwk } } }],
      // N81
      'another nonce': ['nonce_mismatch', { kb: { nonce: 'other' } }],
      // N81
      'no nonce': ['kb_claim_missing', { kb: { nonce: undefined } }],
      // N81
      'a number as nonce': ['kb_claim_type', { kb: { nonce: 1 } }],
      // N82
      'aud without prefix': ['aud_mismatch', ({ request }) => ({ kb: { aud: request.clientId.slice(10) } })],
      // N82
      'aud is the response_uri': ['aud_mismatch', ({ request }) => ({ kb: { aud: request.responseUri } })],
      // N82
      'aud is an array': ['aud_not_string', ({ request }) => ({ kb: { aud: [request.clientId] } })],
      // N82
      'no aud': ['kb_claim_missing', { kb: { aud: undefined } }],
      // N83
      'aud is an origin': ['aud_mismatch', { kb: { aud: 'origin:https://vidimus.example' } }],
      // N84
      'iat a year ago': ['kb_iat_window', () => ({ kb: { iat: world.seconds - 31_536_000 } })],
      // N84
      'iat in a year': ['kb_iat_window', () => ({ kb: { iat: world.seconds + 31_536_000 } })],
      // N84
      'iat before the request': ['kb_iat_window', () => ({ kb: { iat: world.seconds - 90 } })],
      // N84
      'no iat': ['kb_claim_missing', { kb: { iat: undefined } }],
      // N84
      'iat is a string': ['kb_claim_type', { kb: { iat: '1' } }],
      // N85
      'no sd_hash': ['kb_claim_missing', { kb: { sd_hash: undefined } }],
      // N85
      'another sd_hash': ['sd_hash_mismatch', { kb: { sd_hash: 'x' } }],
      // N86
      'a disclosure removed': ['sd_hash_mismatch', { text: (text) => text.split('~').toSpliced(1, 1).join('~') }],
      // N87
      'a changed issuer payload': [
        'issuer_signature',
        {
          text: (text) =>
            replacePart(text, 0, (jwt) => jwt.split('.').with(1, Buffer.from('{"vct":"urn:card:1"}').toString('base64url')).join('.')),
        },
      ],
      // N88
      'issuer alg none': ['issuer_alg', { header: { alg: 'none' } }],
      // N88
      'issuer alg HS256': ['issuer_alg', { header: { alg: 'HS256' } }],
      // N89
      'typ JWT': ['issuer_typ', { header: { typ: 'JWT' } }],
      // N89
      'the older typ': ['issuer_typ', { header: { typ: 'vc+sd-jwt' } }],
      // N90
      'no x5c': ['issuer_key_unresolved', { header: { x5c: undefined as unknown as null } }],
      // N90
      'an empty x5c': ['issuer_key_unresolved', { header: { x5c: [] } }],
      // N91
      'an unknown root': ['untrusted_chain', async () => ({ issuer: await world.keyChain('foe', 'f', ['signing']) })],
      // N93
      'signed by another key': [
        'issuer_signature',
        async () => {
          const other = await world.keyChain('foe', 'f', ['signing']);
          return { issuer: other, header: { x5c: [...world.issuer.active.certificates] } };
        },
      ],
      // N95
      expired: ['credential_expired', () => ({ visible: { exp: world.seconds - 61 } })],
      // N95
      'not yet valid': ['credential_not_yet_valid', () => ({ visible: { nbf: world.seconds + 61 } })],
      // N96
      'no vct': ['malformed', { visible: { vct: undefined as unknown as null } }],
      // N96
      'a vct in capitals': ['type_mismatch', { visible: { vct: 'URN:CARD:1' } }],
      // N97
      'no cnf': ['holder_key_missing', { visible: { cnf: undefined as unknown as null } }],
      // N97
      'only a kid': ['holder_key_missing', { visible: { cnf: { kid: 'x' } } }],
      // N97
      'a private key': ['holder_key_missing', () => ({ visible: { cnf: { jwk: { ...world.holder.jwk, d: 'x' } } } })],
      // N98
      'an unreferenced disclosure': [
        'unreferenced_disclosure',
        { credential: (text) => `${text}${Buffer.from('["salt","x","y"]').toString('base64url')}~` },
      ],
      // N98
      'a disclosure twice': ['duplicate_disclosure', { credential: (text) => `${text}${text.split('~')[1]}~` }],
      // N100
      'an unknown hash': ['unsupported_hash', { payload: { _sd_alg: 'SHA-256' } }],
      // N102
      'crit in the issuer header': ['unsupported_crit', { header: { crit: ['x'] } }],
      // N102
      'crit in the KB header': ['unsupported_crit', { kbHeader: { crit: ['x'] } }],
      // N103
      'a broken signature': ['kb_signature', { kbSignature: flip }],
      // N103
      'a signature of wrong length': ['kb_signature', { kbSignature: (raw) => raw.subarray(1) }],
      // N103
      'a broken issuer signature': ['issuer_signature', { issuerSignature: flip }],
      // N104
      'the requested claim is withheld': [
        'missing_claim',
        {
          credential: (text) => {
            const [jwt = '', ...rest] = text.split('~');
            const kept = rest.filter((part) => !Buffer.from(part, 'base64url').toString().includes('"name"'));
            return [jwt, ...kept].join('~');
          },
        },
      ],
    };
    for (const [what, [reason, changes]] of Object.entries(cases)) {
      it(`${what}: ${reason}`, async () => {
        const asked = await ask();
        const made = typeof changes === 'function' ? await changes(asked) : changes;
        await expectRefused(asked, await formOf(asked, { card: [present(world, asked, made)] }), reason);
        expect(world.webhooks.calls.map(({ body }) => body.credentials)).to.deep.equal([[{ id: 'card', error: reason }]]);
      });
    }
    // N105
    it('a boolean that is false when true was requested', async () => {
      const asked = await ask({ dcql_query: query({ id: 'card', claims: [{ path: ['over18'], values: [true] }] }) });
      await expectRefused(asked, await formOf(asked, { card: [present(world, asked)] }), 'value_mismatch');
    });
    // N92
    it('a leaf of an issuer that was no longer trusted at the time of the request', async () => {
      await world.configure({ trustAnchors: [{ keyChainId: 'signing' }] });
      const asked = await world.request();
      await expectRefused(asked, await formOf(asked, { card: [present(world, asked)] }), 'untrusted_chain');
    });
    // N106
    it('a presentation for another tenant', async () => {
      const other = 'other' as typeof ACME;
      await world.addTenant(other);
      await world.configure({}, other);
      const elsewhere = await world.request({ tenantId: other });
      const asked = await ask();
      await expectRefused(asked, await formOf(asked, { card: [present(world, elsewhere)] }), 'nonce_mismatch');
    });
    // N107
    it('a presentation for an earlier request', async () => {
      const [earlier, asked] = [await ask(), await world.request()];
      await expectRefused(asked, await formOf(asked, { card: [present(world, earlier)] }), 'nonce_mismatch');
    });
    // N108
    it('an invalid key binding that was optional', async () => {
      const asked = await ask({ dcql_query: query({ id: 'card', require_cryptographic_holder_binding: false }) });
      const form = await formOf(asked, { card: [present(world, asked, { kb: { aud: 'x' } })] });
      await expectRefused(asked, form, 'aud_mismatch');
    });
    for (const aka_vcts of ['urn:other', [], [1], [''], ['urn:card:1', 'urn:other']]) {
      it(`other types that are ${JSON.stringify(aka_vcts)}`, async () => {
        const asked = await ask();
        const form = await formOf(asked, { card: [present(world, asked, { visible: { aka_vcts } })] });
        await expectRefused(asked, form, 'aka_vcts');
      });
    }
    it('a wrong nonce in an optional credential that is invalid anyway', async () => {
      const other = { id: 'other', meta: { vct_values: ['urn:other'] } };
      const credential_sets = [{ options: [['card']] }, { options: [['other']], required: false }];
      const asked = await ask({ dcql_query: { ...query({ id: 'card' }, other), credential_sets } });
      const untrusted = await world.keyChain('foe', 'foe', ['signing']);
      const bad = present(world, asked, { issuer: untrusted, visible: { vct: 'urn:other' }, kb: { nonce: 'other' } });
      const form = await formOf(asked, { card: [present(world, asked)], other: [bad] });
      await expectRefused(asked, form, 'nonce_mismatch');
    });
    it('a wrong nonce even beside a valid presentation', async () => {
      const asked = await ask({ dcql_query: query({ id: 'card', multiple: true }) });
      const card = [present(world, asked), present(world, asked, { kb: { nonce: 'other' } })];
      await expectRefused(asked, await formOf(asked, { card }), 'nonce_mismatch');
    });
  });
});
