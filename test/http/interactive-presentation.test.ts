import { expect } from 'chai';
import type { Role } from '../../domain/clients/role.ts';
import { interactiveTranscript, redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { Backend } from '../support/backend.ts';
import { deviceResponse } from '../support/device.ts';
import {
  CURRENT_DRAFT,
  DRAFT_VARIANTS,
  encryptFor,
  type InteractiveWallet,
  Issuer,
  type RequiredInteraction,
} from '../support/interactive-authorization.ts';
import { decode, type HeldCredential, issue, QUERY, verifyWithLeaf } from '../support/present.ts';
import { newKey } from '../support/raw-wallet.ts';
import type { Answer } from '../support/test-service.ts';

describe('A presentation before an issuance', () => {
  let issuer: Issuer;
  let held: HeldCredential;

  before(async () => {
    issuer = await Issuer.open();
    await issuer.create('/key-chain', { id: 'others', usageType: 'signing' });
    held = await issuer.issueCredential();
  });
  after(() => issuer.close());
  beforeEach(() => issuer.backend.clearCalls());

  const ask = async (configuration = 'badge', wallet = issuer.wallet(), headers = {}) => {
    const { uri, session } = await issuer.offer(configuration);
    const answer = await wallet.begin(uri, { scope: configuration }, headers);
    return { wallet, session, asked: wallet.expectPresentationStep(answer) };
  };
  const expectError = (answer: Answer, error: string) => {
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([400, error]);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
  };

  describe('leaves the authorization unchanged', () => {
    type Case = [string, string, (wallet: InteractiveWallet, asked: RequiredInteraction) => Promise<Answer>];
    const vp = (wallet: InteractiveWallet, asked: RequiredInteraction) => ({ vp_token: { card: [wallet.bind(asked, held)] } });
    const cases: Case[] = [
      ['when nothing is presented', 'badge', (wallet, { authSession }) => wallet.post({ auth_session: authSession })],
      [
        'when a verifier comes instead',
        'badge',
        (wallet, { authSession }) => wallet.post({ auth_session: authSession, code_verifier: 'x'.repeat(43) }),
      ],
      ['when it is not JSON', 'badge', (wallet, asked) => wallet.respond(asked, 'vp_token')],
      ['when it is no object', 'badge', (wallet, asked) => wallet.respond(asked, [1])],
      ['when it is empty', 'badge', (wallet, asked) => wallet.respond(asked, {})],
      ['when it is an error, too', 'badge', (wallet, asked) => wallet.respond(asked, { ...vp(wallet, asked), error: 'access_denied' })],
      ['when it is encrypted without being requested', 'badge', (wallet, asked) => wallet.respond(asked, { response: 'x' })],
      // issuance N140
      ['when it is not encrypted, though asked', 'sealed', (wallet, asked) => wallet.respond(asked, vp(wallet, asked))],
      ['when it does not decrypt', 'sealed', (wallet, asked) => wallet.respond(asked, { response: 'a.b.c.d.e' })],
      [
        'when it is encrypted and plain',
        'sealed',
        async (wallet, asked) => wallet.respond(asked, { ...vp(wallet, asked), response: await encryptFor(asked, vp(wallet, asked)) }),
      ],
      [
        'when nothing is in the ciphertext',
        'sealed',
        async (wallet, asked) => wallet.respond(asked, { response: await encryptFor(asked, {}) }),
      ],
    ];
    for (const [what, configuration, attempt] of cases) {
      it(what, async () => {
        const { wallet, asked } = await ask(configuration);
        expectError(await attempt(wallet, asked), 'invalid_request');
        const right = vp(wallet, asked);
        const response = configuration === 'sealed' ? { response: await encryptFor(asked, right) } : right;
        wallet.expectCode(await wallet.respond(asked, response));
      });
    }
  });

  describe('ends the authorization', () => {
    type Attempt = (wallet: InteractiveWallet, asked: RequiredInteraction) => Promise<Answer> | Answer;
    const cases: [string, RegExp, Attempt, string?][] = [
      [
        // issuance N138
        'with the nonce of another session',
        /nonce_mismatch/,
        async (wallet, asked) => wallet.present(asked, held, { nonce: (await ask()).asked.request.nonce }),
      ],
      [
        'for the origin without its prefix (N139)',
        /aud_mismatch/,
        (wallet, asked) => wallet.present(asked, held, { aud: new URL(wallet.issuer).origin }),
      ],
      // issuance N139
      ['for another host', /aud_mismatch/, (wallet, asked) => wallet.present(asked, held, { aud: 'ia:https://other.example' })],
      [
        'in the words of another draft (N139)',
        /aud_mismatch/,
        (wallet, asked) => wallet.present(asked, held, { aud: `iae:${new URL(wallet.issuer).origin}` }),
      ],
      // issuance N139
      ['for the tenant', /aud_mismatch/, (wallet, asked) => wallet.present(asked, held, { aud: `ia:${wallet.issuer}` })],
      ['with an old answer', /kb_iat_window/, (wallet, asked) => wallet.present(asked, held, { iat: 1_700_000_000 })],
      ['with the key of another holder', /kb_signature/, (wallet, asked) => wallet.present(asked, { ...held, holder: newKey() })],
      ['without a key', /holder_binding_missing/, (wallet, asked) => wallet.respond(asked, { vp_token: { card: [held.text] } })],
      [
        'with too little disclosed',
        /missing_claim/,
        (wallet, asked) => wallet.present(asked, { ...held, text: `${held.text.split('~')[0]}~` }),
      ],
      ['with a credential of strangers', /untrusted_chain/, (wallet, asked) => wallet.present(asked, held), 'wary'],
      ['with an answer to another question', /malformed/, (wallet, asked) => wallet.respond(asked, { vp_token: { other: ['x'] } })],
      ['with a vp_token of an earlier draft', /malformed/, (wallet, asked) => wallet.respond(asked, { vp_token: held.text })],
      [
        'with an mdoc',
        /"reason":"(malformed|format_mismatch)"/,
        (wallet, asked) => wallet.respond(asked, { vp_token: { card: ['o2d2ZXJzaW9u'] } }),
      ],
      ['when the user declines', /access_denied/, (wallet, asked) => wallet.respond(asked, { error: 'access_denied' })],
      [
        'when the user of a wallet that should encrypt declines',
        /wallet_error/,
        (wallet, asked) => wallet.respond(asked, { error: '<script>' }),
        'sealed',
      ],
    ];

    before(async () => {
      await issuer.addPresentationConfig('strangers', { trustAnchors: [{ keyChainId: 'others' }] });
      await issuer.addBadge('wary', [{ type: 'openid4vp_presentation', presentationConfigId: 'strangers' }]);
    });

    for (const [what, reason, attempt, configuration] of cases) {
      it(what, async () => {
        const { wallet, asked, session } = await ask(configuration);
        const denied = await attempt(wallet, asked);
        expectError(denied, 'access_denied');
        expect(denied.text, 'the wallet learns no reason').to.not.match(reason.source === 'access_denied' ? /user/ : reason);
        expectError(await wallet.present(asked, held), 'invalid_session');
        const { report, status, failure } = await issuer.session(session);
        expect(JSON.stringify(report)).to.match(reason);
        expect([status, failure], 'the offer is as good as before').to.deep.equal(['fetched', undefined]);
        expect(JSON.stringify(report)).to.not.include('script');
      });
    }

    it('with a revoked credential', async () => {
      const revoked = await issuer.issueCredential('card-status');
      const json = { sessionId: revoked.session, status: 1 };
      const { token } = issuer;
      expect((await issuer.service.call('POST', '/session/revoke', { token, json })).status).to.equal(201);
      const { wallet, asked, session } = await ask();
      expectError(await wallet.present(asked, revoked), 'access_denied');
      expect(JSON.stringify((await issuer.session(session)).report)).to.include('status_revoked');
      const again = await ask();
      wallet.expectCode(await wallet.present(again.asked, await issuer.issueCredential('card-status')));
    });

    it('when the offer was withdrawn in the meantime', async () => {
      const { wallet, asked, session } = await ask();
      const { token } = issuer;
      expect((await issuer.service.call('DELETE', `/session/${session}`, { token })).status).to.be.within(200, 204);
      expectError(await wallet.present(asked, held), 'access_denied');
    });
  });

  it('may use the endpoint as its audience, as in the example of the current specification text', async () => {
    const { wallet, asked } = await ask();
    wallet.expectCode(await wallet.present(asked, held, { aud: `ia:${wallet.endpoint}` }));
    for (const wire of DRAFT_VARIANTS.filter((one) => one !== CURRENT_DRAFT)) {
      const earlier = await ask('badge', issuer.wallet(wire));
      expectError(await earlier.wallet.present(earlier.asked, held, { aud: `iae:${wallet.endpoint}` }), 'access_denied');
    }
  });

  for (const wire of DRAFT_VARIANTS) {
    it(`is encrypted to a key of this request, with the parameter names of ${wire.name}`, async () => {
      const [one, other] = [await ask('sealed', issuer.wallet(wire)), await ask('sealed', issuer.wallet(wire))];
      const { wallet, asked } = one;
      expect(asked.request.response_mode).to.equal(`${wire.responseMode}.jwt`);
      expect(asked.request.client_metadata.jwks).to.not.deep.equal(other.asked.request.client_metadata.jwks);
      const plaintext = { vp_token: { card: [wallet.bind(asked, held)] } };
      expectError(await wallet.respond(asked, { response: await encryptFor(other.asked, plaintext) }), 'invalid_request');
      wallet.expectCode(await wallet.respond(asked, { response: await encryptFor(asked, plaintext) }));
    });
  }

  it('is requested in a signed request where the configuration names a key', async () => {
    await issuer.addPresentationConfig('signed', { accessKeyChainId: 'access' });
    await issuer.addBadge('formal', [{ type: 'openid4vp_presentation', presentationConfigId: 'signed' }]);
    const { wallet, asked } = await ask('formal');
    expect(Object.keys(asked.request)).to.deep.equal(['request']);
    verifyWithLeaf(asked.request.request);
    const { header, payload } = decode(asked.request.request);
    expect(header['typ']).to.equal('oauth-authz-req+jwt');
    expect(payload).to.include({ response_type: 'vp_token', response_mode: 'ia_post' });
    expect(payload['client_id']).to.match(/^x509_hash:/);
    expect(payload['expected_origins']).to.deep.equal([new URL(wallet.issuer).origin]);
    expect(payload).to.not.have.any.keys('response_uri', 'redirect_uri', 'state');
    expect(payload['dcql_query']).to.deep.include({ credentials: QUERY.credentials });
    wallet.expectCode(await wallet.present({ ...asked, request: payload }, held));
  });

  it('is verified against the trust anchors of the configuration at the time of the request', async () => {
    await issuer.addPresentationConfig('fickle');
    await issuer.addBadge('changing', [{ type: 'openid4vp_presentation', presentationConfigId: 'fickle' }]);
    const { wallet, asked } = await ask('changing');
    await issuer.addPresentationConfig('fickle', { trustAnchors: [{ keyChainId: 'others' }] });
    wallet.expectCode(await wallet.present(asked, held));
    const later = await ask('changing');
    expectError(await later.wallet.present(later.asked, held), 'access_denied');
  });

  it('is verified even if its configuration was deleted after the request', async () => {
    await issuer.addPresentationConfig('fleeting');
    await issuer.addBadge('orphan', [{ type: 'openid4vp_presentation', presentationConfigId: 'fleeting' }]);
    const { wallet, asked } = await ask('orphan');
    const { token } = issuer;
    const change = { token, json: { iaeActions: null } };
    const freed = await issuer.service.call('PATCH', '/issuer/credentials/orphan', change);
    expect(freed.status, freed.text).to.equal(200);
    const removed = await issuer.service.call('DELETE', '/verifier/config/fleeting', { token });
    expect(removed.status, removed.text).to.be.within(200, 204);
    wallet.expectCode(await wallet.present(asked, held));
  });
});

const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';

describe('An mdoc that is presented before an issuance', () => {
  const QUERY = {
    credentials: [{ id: 'card', format: 'mso_mdoc', meta: { doctype_value: DOC_TYPE }, claims: [{ path: [NAMESPACE, 'family_name'] }] }],
  };

  let issuer: Issuer;

  before(async () => {
    issuer = await Issuer.open();
    const display = [{ name: 'Licence', locale: 'en' }];
    const claimsByNamespace = { [NAMESPACE]: { family_name: 'Nygård' } };
    const config = { format: 'mso_mdoc', docType: DOC_TYPE, display, claimsByNamespace };
    await issuer.create('/issuer/credentials', { id: 'mdl', config });
  });
  after(() => issuer.close());

  for (const responseMode of ['direct_post', 'direct_post.jwt']) {
    it(`is valid only for this endpoint and this request, like ${responseMode}`, async () => {
      const id = `licence-${responseMode.length}`;
      await issuer.addPresentationConfig(id, { dcql_query: QUERY, responseMode });
      await issuer.addBadge(`of-${id}`, [{ type: 'openid4vp_presentation', presentationConfigId: id }]);
      const { text, holder } = await issue(issuer.service, issuer, 'mdl');
      const present = async (transcript: (nonce: string, encryptionKey: never) => Buffer) => {
        const wallet = issuer.wallet();
        const { uri } = await issuer.offer(`of-${id}`);
        const asked = wallet.expectPresentationStep(await wallet.begin(uri, { scope: `of-${id}` }));
        const [key] = asked.request.client_metadata.jwks?.keys ?? [];
        const bytes = transcript(asked.request.nonce, key as never);
        const vp_token = { card: [deviceResponse({ text, holder, docType: DOC_TYPE }, bytes)] };
        const answer = key === undefined ? { vp_token } : { response: await encryptFor(asked, { vp_token }) };
        return { wallet, answer: await wallet.respond(asked, answer) };
      };
      const { endpoint } = issuer.wallet();
      const { wallet, answer } = await present((nonce, encryptionKey) => interactiveTranscript({ endpoint, nonce, encryptionKey }));
      wallet.expectCode(answer);

      const wrong: readonly ((nonce: string, encryptionKey: never) => Buffer)[] = [
        (_, encryptionKey) => interactiveTranscript({ endpoint, nonce: 'other', encryptionKey }),
        (nonce, encryptionKey) => interactiveTranscript({ endpoint: `${endpoint}x`, nonce, encryptionKey }),
        (nonce, encryptionKey) => redirectTranscript({ clientId: 'x509_hash:x', responseUri: endpoint, nonce, encryptionKey }),
      ];
      for (const transcript of wrong) {
        const { status, body } = (await present(transcript)).answer;
        expect([status, body.error]).to.deep.equal([400, 'access_denied']);
      }
    });
  }
});

describe('The data presented before an issuance', () => {
  let issuer: Issuer;
  let held: HeldCredential;
  let elsewhere: Backend;
  const PATCH = { claimsWebhook: { url: '' } };

  before(async () => {
    issuer = await Issuer.open();
    held = await issuer.issueCredential();
    elsewhere = await Backend.start();
    PATCH.claimsWebhook.url = `${elsewhere.url}/claims`;
    elsewhere.on('/claims', { json: { badge: { role: 'visitor' } } });
  });
  after(async () => {
    await issuer.close();
    await elsewhere.close();
  });
  beforeEach(() => elsewhere.clearCalls());

  const tokenWith = async (...roles: Role[]): Promise<string> => {
    const clientId = `acme-${roles.join('-').replaceAll(':', '-')}`;
    const secret = 'a-secret-of-a-client-0123';
    const json = { clientId, roles, secret };
    const made = await issuer.service.call('POST', '/client', { token: issuer.token, json });
    expect(made.status, made.text).to.equal(201);
    return issuer.service.token(clientId, secret);
  };
  const offerTo = (token: string, configuration: string) =>
    issuer.service.call('POST', '/issuer/offer', {
      token,
      json: {
        response_type: 'uri',
        flow: 'authorization_code',
        credentialConfigurationIds: [configuration],
        credentialClaims: { [configuration]: { type: 'webhook', webhook: PATCH.claimsWebhook } },
      },
    });

  it('is not sent to a backend from an offer of a client without a role for presentations', async () => {
    const offered = await offerTo(await tokenWith('issuance:offer'), 'badge');
    if (offered.status === 201) {
      const wallet = issuer.wallet();
      const answer = await wallet.begin(offered.body.uri, { scope: 'badge' });
      const code = wallet.expectCode(await wallet.present(wallet.expectPresentationStep(answer), held));
      const { body } = await wallet.redeemCode(code, { redirect_uri: '' });
      await wallet.request(body.access_token, 'badge');
    }
    const told = elsewhere.callsTo('/claims').map(({ body }) => body.credentials);
    expect(JSON.stringify(told)).not.to.include('Ada');
    expect([offered.status, offered.body.code], offered.text).to.deep.equal([403, 'forbidden']);
  });

  it('is not redirected by a client that manages only issuance', async () => {
    const token = await tokenWith('issuance:manage');
    const changed = await issuer.service.call('PATCH', '/issuer/credentials/badge', { token, json: PATCH });
    expect([changed.status, changed.body.code], changed.text).to.deep.equal([403, 'forbidden']);
  });
});
