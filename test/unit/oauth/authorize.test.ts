import { expect } from 'chai';
import sinon from 'sinon';
import { attestationChallenge } from '../../../application/oauth/challenges.ts';
import type { Decision, ShownConsent } from '../../../application/oauth/decide-authorization.ts';
import type { OAuthRequest } from '../../../application/oauth/oauth-callers.ts';
import { hashCode } from '../../../application/oauth/pre-authorized-code-grant.ts';
import { handleOfRequestUri, REQUEST_URI_PREFIX } from '../../../domain/oauth/authorization.ts';
import { ASSERTION_TYPE } from '../../../domain/oauth/client-assertion.ts';
import { hashSecret, parseHandle } from '../../../domain/oauth/handle.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { type PublicJwk, thumbprint } from '../../../domain/shared/jwk.ts';
import { UPSTREAM } from '../../support/fakes.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, makeJwt, newKey, type Overrides } from '../../support/raw-wallet.ts';
import { WalletProvider } from '../../support/wallet-provider.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, endOf, failureOf, Wallet, WalletWorld } from '../wallet-kit.ts';

describe('PushAuthorization', () => {
  let world: WalletWorld;
  let wallet: Wallet;
  let issuerState: string;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.offers({ id: 'pass' });
    await world.offers({ id: 'visitor', iaeActions: [{ type: 'redirect_to_web', url: 'https://a.example' }] });
    const ids = { credentialConfigurationIds: ['card'] };
    issuerState = (await anOffer(world, { flow: 'authorization_code', ...ids })).session.publicId;
  });

  type Form = Readonly<Record<string, string | undefined>>;
  const push = (changes: Form = {}, request: Partial<OAuthRequest> = {}) =>
    wallet.push({ issuer_state: issuerState, ...changes }, { request });
  const stored = async (requestUri: string) => {
    const { id = '', secret = '' } = parseHandle(handleOfRequestUri(requestUri)) ?? {};
    return { secret, found: (await world.store.read(ACME).authorization(id))?.authorization };
  };

  it('stores the request and its client under the hash of its address', async () => {
    const { secret, found } = await stored(await push());
    expect(found).to.deep.include({ server: 'built-in', stage: 'pushed', version: 1 });
    expect(found?.handles).to.deep.equal({ request_uri: hashSecret(secret) });
    expect(found?.request).to.deep.include({
      clientId: CLIENT_ID,
      redirectUri: AUTHORIZATION_REQUEST.redirect_uri,
      credentialConfigurationIds: ['card'],
      state: 'state of the wallet',
    });
    const keyThumbprint = thumbprint(wallet.key.jwk as PublicJwk);
    expect(found?.holder).to.deep.equal({ clientId: CLIENT_ID, keyThumbprint });
    expect(found?.session?.publicId).to.equal(issuerState);
    expect(found?.expiresAt.getTime()).to.equal(world.clock.time + 1_800_000);
  });

  it('accepts dpop_jkt in place of a proof', async () => {
    const jkt = thumbprint(newKey().jwk as PublicJwk);
    const { found } = await stored(await push({ dpop_jkt: jkt }, { dpop: [] }));
    expect(found?.holder.keyThumbprint).to.equal(jkt);
  });

  it('requires no offer when wallets may begin the flow', async () => {
    const alone = { issuer_state: undefined };
    expect(await endOf(push(alone))).to.equal('invalid_request');
    await world.issues({ builtInAs: { walletInitiated: true } });
    expect((await stored(await push(alone))).found?.session).to.equal(null);
    await world.issues();
  });

  const details = (...entries: object[]) => ({ authorization_details: JSON.stringify(entries) });
  const OPENID = { type: 'openid_credential', credential_configuration_id: 'card' };
  type Refused = readonly [what: string, code: FailureCode, form: Form, request?: Partial<OAuthRequest>];
  const refusals: readonly Refused[] = [
    ['a request_uri', 'invalid_request', { request_uri: 'urn:x' }],
    ['a request object', 'request_not_supported', { request: 'a.b.c' }],
    ['no client', 'invalid_request', { client_id: undefined }],
    ['a client of a thousand characters', 'invalid_request', { client_id: 'x'.repeat(1000) }],
    ['no response type', 'invalid_request', { response_type: undefined }],
    ['another response type', 'unsupported_response_type', { response_type: 'token' }],
    ['another response mode', 'invalid_request', { response_mode: 'fragment' }],
    ['no redirect address', 'invalid_request', { redirect_uri: undefined }],
    ['a redirect address without TLS', 'invalid_request', { redirect_uri: 'http://wallet.example' }],
    ['no challenge', 'invalid_request', { code_challenge: undefined }],
    ['a plain challenge', 'invalid_request', { code_challenge_method: 'plain' }],
    ['a resource that is another issuer', 'invalid_target', { resource: 'https://else.example' }],
    ['nothing that is asked for', 'invalid_scope', { scope: undefined }],
    ['an unknown scope', 'invalid_scope', { scope: 'else' }],
    ['details of another type', 'invalid_authorization_details', details({ type: 'x' })],
    ['details for another issuer', 'invalid_authorization_details', details({ ...OPENID, locations: ['x'] })],
    ['an unknown offer', 'invalid_request', { issuer_state: 'unknown' }],
    ['a scope outside the offer alone', 'invalid_request', { scope: 'pass' }],
    ['details outside the offer', 'invalid_request', details({ ...OPENID, credential_configuration_id: 'pass' })],
    [
      'details outside the offer beside its scope',
      'invalid_request',
      { ...details({ ...OPENID, credential_configuration_id: 'pass' }), scope: 'card' },
    ],
    ['what needs an interaction', 'invalid_request', { issuer_state: undefined, scope: 'visitor' }],
    ['a thumbprint that is invalid', 'invalid_request', { dpop_jkt: 'x' }, { dpop: [] }],
    ['a thumbprint of another key', 'invalid_dpop_proof', { dpop_jkt: 'x' }],
    ['two DPoP proofs', 'invalid_dpop_proof', {}, { dpop: ['a', 'b'] }],
    ['half an assertion', 'invalid_client', { client_assertion: 'a.b.c' }],
    ['two ways to authenticate', 'invalid_client', { client_assertion: 'a.b.c' }, { attestation: ['x'] }],
    ['half an attestation', 'invalid_client_attestation', {}, { attestation: ['x'] }],
  ];
  for (const [what, code, form, request] of refusals) {
    it(`rejects ${what}`, async () => {
      expect(await endOf(push(form, request))).to.equal(code);
    });
  }

  it('ignores scope values outside the offer, with and without details of the offer', async () => {
    // The scope visitor is issued by interactive authorization only, which does not matter here.
    for (const form of [{}, details(OPENID)]) {
      const { found } = await stored(await push({ ...form, scope: 'pass card visitor' }));
      expect(found?.request.credentialConfigurationIds).to.deep.equal(['card']);
      expect(found?.request.scope).to.equal('card');
    }
    const { found } = await stored(await push({ ...details(OPENID), scope: 'pass visitor' }));
    expect(found?.request.credentialConfigurationIds).to.deep.equal(['card']);
    expect(found?.request).to.not.have.property('scope');
  });

  it('rejects an offer that has ended, is pre-authorized, or is for the other server', async () => {
    const over = await anOffer(world, { flow: 'authorization_code', expiresIn: 60 });
    const late = () => endOf(push({ issuer_state: over.session.publicId }));
    expect(await world.later(60, late)).to.equal('invalid_request');
    const { publicId } = (await anOffer(world)).session;
    expect(await endOf(push({ issuer_state: publicId }))).to.equal('invalid_request');
    await world.issues({ chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
    const chained = { flow: 'authorization_code', authorization_server: `${wallet.issuer}/chained-as` };
    const meant = (await anOffer(world, chained)).session.publicId;
    expect(await endOf(push({ issuer_state: meant }))).to.equal('invalid_request');
    expect(await endOf(wallet.push({ issuer_state: meant }, { server: 'chained' }))).to.equal('done');
    await world.issues();
  });

  it('fails for an unknown server or tenant', async () => {
    expect(await endOf(wallet.push({}, { server: 'chained' }))).to.equal('not_found');
    expect(await endOf(new Wallet(world, 'nobody' as TenantId).push())).to.equal('not_found');
    await world.change({ status: 'suspended' });
    expect(await endOf(push())).to.equal('not_found');
    await world.change({ status: 'active' });
  });

  it('rejects a used DPoP proof, and stores nothing', async () => {
    const dpop = [wallet.dpop('par')];
    await push({}, { dpop });
    expect(await endOf(push({}, { dpop }))).to.equal('invalid_dpop_proof');
  });

  it('requires the assertion of a registered client, which is accepted once, and its registered values', async () => {
    const key = newKey();
    const { redirect_uri: registered } = AUTHORIZATION_REQUEST;
    const client = { client_id: CLIENT_ID, jwks: { keys: [key.jwk] }, redirect_uris: [registered] };
    await world.issues({ walletClients: [client] });
    const asserted = () => {
      const times = { iat: world.seconds, exp: world.seconds + 300, jti: world.random.token() };
      const payload = { iss: CLIENT_ID, sub: CLIENT_ID, aud: wallet.issuer, ...times };
      const client_assertion = makeJwt(key, { alg: 'ES256' }, payload);
      return { client_assertion, client_assertion_type: ASSERTION_TYPE };
    };
    const sent = asserted();
    const others = { redirect_uri: 'https://else.example', ...asserted() };
    const ends = [await endOf(push()), await endOf(push(sent)), await endOf(push(sent)), await endOf(push(others))];
    expect(ends).to.deep.equal(['invalid_client', 'done', 'invalid_client', 'invalid_request']);
    await world.issues();
  });

  describe('by an attested wallet', () => {
    let provider: WalletProvider;
    const instance = newKey();

    before(async () => {
      provider = await WalletProvider.make(() => world.seconds);
      world.remote.answer = (url) => {
        const { status, type, body } = provider.answer(new URL(url).pathname);
        return { status, contentType: type, body: Buffer.from(body) };
      };
      await world.issues({ ...provider.configuration(), attestationMaxAgeSeconds: 3600 });
    });

    const attested = (bends: { attestation?: Overrides; pop?: Overrides; challenge?: string } = {}) => {
      const challenge = attestationChallenge(world, ACME, wallet.issuer, world.clock.now());
      const pop = { challenge: bends.challenge ?? challenge, ...bends.pop };
      return {
        attestation: [provider.attestation(instance, bends.attestation)],
        attestationPop: [provider.pop(instance, wallet.issuer, pop)],
      };
    };

    it('stores the wallet instance', async () => {
      const { found } = await stored(await push({}, attested()));
      const expected = { clientId: CLIENT_ID, authenticated: true, instance: thumbprint(instance.jwk as PublicJwk) };
      expect(found?.holder).to.deep.include(expected);
    });

    it('returns a challenge to a wallet without a challenge of this server', async () => {
      const failure = await failureOf(push({}, attested({ challenge: 'abc' })));
      expect(failure.code).to.equal('use_attestation_challenge');
      const { attestationChallenge: challenge = '' } = failure.details;
      expect(await endOf(push({}, attested({ challenge })))).to.equal('done');
    });

    const bent: readonly [what: string, code: FailureCode, make: () => Partial<OAuthRequest>][] = [
      ['no attestation', 'invalid_client', () => ({})],
      [
        'an attestation that is too old',
        'use_fresh_attestation',
        () => attested({ attestation: { payload: { iat: world.seconds - 3601 } } }),
      ],
      [
        'an attestation that has expired',
        'invalid_client_attestation',
        () => attested({ attestation: { payload: { exp: world.seconds - 600 } } }),
      ],
      [
        'an attestation of another wallet',
        'invalid_client_attestation',
        () => attested({ attestation: { payload: { sub: 'https://else.example' } } }),
      ],
      [
        'a proof of possession for another server',
        'invalid_client_attestation',
        () => attested({ pop: { payload: { aud: 'https://else.example' } } }),
      ],
    ];
    for (const [what, code, make] of bent) {
      it(`rejects ${what}`, async () => {
        expect(await endOf(push({}, make()))).to.equal(code);
      });
    }

    it('rejects a used proof of possession', async () => {
      const sent = attested();
      await push({}, sent);
      expect(await endOf(push({}, { ...sent, dpop: [wallet.dpop('par')] }))).to.equal('invalid_client_attestation');
    });
  });
});

const { client_id: clientId, state } = AUTHORIZATION_REQUEST;
const NOBODY = 'nobody' as TenantId;

describe('authorization page of the built-in server', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
  });
  afterEach(() => sinon.restore());

  type Pushed = { readonly clientId: string; readonly requestUri: string; readonly session: SessionId };
  const pushed = async (): Promise<Pushed> => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    return { clientId, requestUri: await wallet.push({ issuer_state: session.publicId }), session: session.id };
  };
  const stored = async ({ requestUri }: Pick<Pushed, 'requestUri'>) => {
    const id = parseHandle(handleOfRequestUri(requestUri))?.id ?? '';
    return (await world.store.read(ACME).authorization(id))?.authorization;
  };
  const show = (browser: Partial<Pushed>, tenantId = ACME) =>
    world.showAuthorization.execute(tenantId, { clientId: undefined, requestUri: undefined, ...browser });
  const consent = async (browser: Pushed) => (await show(browser)) as ShownConsent;
  const fail = (id: SessionId) => {
    const failed = { id, anytime: ['active', 'fetched'], to: 'failed' } as const;
    return world.store.commit(ACME, { session: failed }, world.clock.now());
  };
  const chained = (enabled: boolean) => world.issues(enabled ? { chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } } : {});

  describe('ShowAuthorization', () => {
    it('shows client, credentials and destination of the answer', async () => {
      const { fields, ...said } = await consent(await pushed());
      expect(said).to.deep.equal({
        branding: { name: 'Acme', displays: [{ name: 'Acme', locale: 'en' }] },
        credentials: [{ id: 'card', displays: [{ name: 'Card', locale: 'en' }], claims: [{ fallback: 'name', names: [] }] }],
        clientId,
        isVerified: false,
        destination: 'wallet.example',
        action: `${wallet.issuer}/authorize`,
      });
      expect(fields).to.include({ client_id: clientId }).and.have.property('decision_token');
    });

    it('records only the first visit', async () => {
      const browser = await pushed();
      await show(browser);
      expect(await stored(browser)).to.deep.include({ isOpened: true, version: 2, stage: 'pushed' });
      await show(browser);
      expect(await stored(browser)).to.deep.include({ version: 2 });
    });

    it('can be opened for a minute, and then until the authorization expires', async () => {
      const [late, early] = [await pushed(), await pushed()];
      await show(early);
      expect(await world.later(61, () => endOf(show(late)))).to.equal('invalid_request');
      expect(await world.later(1799, () => endOf(show(early)))).to.equal('done');
      expect(await world.later(1800, () => endOf(show(early)))).to.equal('invalid_request');
    });

    type Bend = (browser: Pushed) => Partial<Pushed> | Promise<Partial<Pushed>>;
    const bends: readonly [what: string, bend: Bend][] = [
      ['no address', ({ clientId }) => ({ clientId })],
      ['an address of another form', (browser) => ({ ...browser, requestUri: 'urn:x' })],
      ['an address of nobody', (browser) => ({ ...browser, requestUri: `${REQUEST_URI_PREFIX}unknown` })],
      ['an address with another secret', (browser) => ({ ...browser, requestUri: `${browser.requestUri.slice(0, -4)}AAAA` })],
      ['another client', (browser) => ({ ...browser, clientId: 'https://else.example' })],
      ['no client', ({ requestUri }) => ({ requestUri })],
      [
        'what was answered',
        async (browser) => {
          await wallet.approve(browser.requestUri);
          return browser;
        },
      ],
      [
        'what was pushed at the chained server',
        async (browser) => {
          await chained(true);
          return { ...browser, requestUri: await wallet.push({}, { server: 'chained' }) };
        },
      ],
    ];
    for (const [what, bend] of bends) {
      it(`shows a page without a button for ${what}`, async () => {
        const browser = await bend(await pushed());
        expect(await endOf(show(browser).finally(() => chained(false)))).to.equal('invalid_request');
      });
    }

    it('fails if concurrent requests always win', async () => {
      const browser = await pushed();
      const commit = sinon.stub(world.store, 'commit').resolves({ done: false, part: 'authorization' });
      expect(await endOf(show(browser))).to.equal('invalid_request');
      expect(commit.callCount).to.equal(3);
    });

    it('fails for an unknown tenant, with any input', async () => {
      const ends = [await endOf(show({}, NOBODY)), await endOf(show(await pushed(), NOBODY))];
      expect(ends).to.deep.equal(['not_found', 'not_found']);
    });
  });

  describe('DecideAuthorization', () => {
    const decide = (decision: Partial<Decision>, tenantId = ACME) =>
      world.decideAuthorization.execute(tenantId, {
        clientId: undefined,
        requestUri: undefined,
        decision: 'approve',
        decisionToken: undefined,
        browserSecrets: new Map(),
        ...decision,
      });
    const shown = async () => {
      const browser = await pushed();
      const { fields } = await consent(browser);
      return { ...browser, decisionToken: fields['decision_token'] };
    };
    const told = ({ location }: { readonly location: string }) => {
      const { searchParams } = new URL(location);
      const { keep: _, error_description: __, ...rest } = Object.fromEntries(searchParams);
      return rest;
    };

    it('ends an approval with a code, which is stored as its hash', async () => {
      const page = await shown();
      const { code = '', ...rest } = told(await decide(page));
      expect(rest).to.deep.equal({ state, iss: wallet.issuer });
      expect(await stored(page)).to.deep.include({ stage: 'done', handles: {} });
      const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
      expect(grant).to.deep.include({ kind: 'authorization_code', sessionId: page.session, consumedAt: null });
      expect(grant?.expiresAt.getTime()).to.equal(world.clock.time + 60_000);
      expect(grant?.authorization?.codeChallenge).to.equal(AUTHORIZATION_REQUEST.code_challenge);
    });

    it('ends a denial with an error, and without a code', async () => {
      const page = await shown();
      const answer = told(await decide({ ...page, decision: 'deny' }));
      expect(answer).to.deep.equal({ error: 'access_denied', state, iss: wallet.issuer });
      expect(await stored(page)).to.deep.include({ stage: 'done', handles: {} });
      expect(await endOf(decide(page))).to.equal('invalid_request');
    });

    it('creates a session for a wallet-initiated flow', async () => {
      await world.issues({ builtInAs: { walletInitiated: true } });
      const code = await wallet.approve(await wallet.push());
      const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
      const session = await world.session(grant?.sessionId ?? '');
      expect(session).to.deep.include({ status: 'fetched', configurationIds: ['card'] });
      await world.issues();
    });

    type Shown = Awaited<ReturnType<typeof shown>>;
    const bends: readonly [what: string, bend: (page: Shown) => Partial<Decision> | Promise<Partial<Decision>>][] = [
      ['no decision', () => ({ decision: undefined })],
      ['another decision', () => ({ decision: 'perhaps' })],
      ['no token of a page', () => ({ decisionToken: undefined })],
      ['the token of another page', async () => ({ decisionToken: (await shown()).decisionToken })],
      ['another client', () => ({ clientId: 'https://else.example' })],
      ['no address', () => ({ requestUri: undefined })],
    ];
    for (const [what, bend] of bends) {
      it(`rejects ${what}, and the page can still be answered`, async () => {
        const page = await shown();
        expect(await endOf(decide({ ...page, ...(await bend(page)) }))).to.equal('invalid_request');
        expect(await endOf(decide(page))).to.equal('done');
      });
    }

    it('rejects an approval of an ended offer', async () => {
      const page = await shown();
      await fail(page.session);
      expect(await endOf(decide(page))).to.equal('invalid_request');
    });

    it('returns one code if a button is pressed twice', async () => {
      const page = await shown();
      const ends = await Promise.all([1, 2].map(() => endOf(decide(page))));
      expect(ends.sort()).to.deep.equal(['done', 'invalid_request']);
    });

    it('accepts an answer until the authorization expires', async () => {
      const [page, other] = [await shown(), await shown()];
      expect(await world.later(1799, () => endOf(decide(page)))).to.equal('done');
      expect(await world.later(1800, () => endOf(decide(other)))).to.equal('invalid_request');
    });

    it('fails for an unknown tenant', async () => {
      expect(await endOf(decide(await shown(), NOBODY))).to.equal('not_found');
    });
  });
});
