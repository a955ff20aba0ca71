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
  let heldCredential: HeldCredential;

  before(async () => {
    issuer = await Issuer.open();
    await issuer.create('/key-chain', { id: 'others', usageType: 'signing' });
    heldCredential = await issuer.issueCredential();
  });
  after(() => issuer.close());
  beforeEach(() => issuer.backend.clearCalls());

  const beginAuthorization = async (configuration = 'badge', wallet = issuer.wallet(), headers = {}) => {
    const { uri, session } = await issuer.offer(configuration);
    const answer = await wallet.begin(uri, { scope: configuration }, headers);
    return { wallet, session, interaction: wallet.expectPresentationStep(answer) };
  };
  const expectError = (answer: Answer, error: string) => {
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([400, error]);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
  };

  describe('leaves the authorization unchanged', () => {
    type Case = [string, string, (wallet: InteractiveWallet, interaction: RequiredInteraction) => Promise<Answer>];
    const vp = (wallet: InteractiveWallet, interaction: RequiredInteraction) => ({
      vp_token: { card: [wallet.bind(interaction, heldCredential)] },
    });
    const cases: Case[] = [
      ['when the presentation is missing', 'badge', (wallet, { authSession }) => wallet.post({ auth_session: authSession })],
      [
        'when it is a code verifier',
        'badge',
        (wallet, { authSession }) => wallet.post({ auth_session: authSession, code_verifier: 'x'.repeat(43) }),
      ],
      ['when it is not JSON', 'badge', (wallet, interaction) => wallet.respond(interaction, 'vp_token')],
      ['when it is not an object', 'badge', (wallet, interaction) => wallet.respond(interaction, [1])],
      ['when it is empty', 'badge', (wallet, interaction) => wallet.respond(interaction, {})],
      [
        'when it also contains an error',
        'badge',
        (wallet, interaction) => wallet.respond(interaction, { ...vp(wallet, interaction), error: 'access_denied' }),
      ],
      ['when it is encrypted without being requested', 'badge', (wallet, interaction) => wallet.respond(interaction, { response: 'x' })],
      // issuance N140
      ['when it lacks the required encryption', 'sealed', (wallet, interaction) => wallet.respond(interaction, vp(wallet, interaction))],
      ['when it does not decrypt', 'sealed', (wallet, interaction) => wallet.respond(interaction, { response: 'a.b.c.d.e' })],
      [
        'when it is encrypted and plain',
        'sealed',
        async (wallet, interaction) =>
          wallet.respond(interaction, { ...vp(wallet, interaction), response: await encryptFor(interaction, vp(wallet, interaction)) }),
      ],
      [
        'when the plaintext is empty',
        'sealed',
        async (wallet, interaction) => wallet.respond(interaction, { response: await encryptFor(interaction, {}) }),
      ],
    ];
    for (const [description, configuration, attempt] of cases) {
      it(description, async () => {
        const { wallet, interaction } = await beginAuthorization(configuration);
        expectError(await attempt(wallet, interaction), 'invalid_request');
        const right = vp(wallet, interaction);
        const response = configuration === 'sealed' ? { response: await encryptFor(interaction, right) } : right;
        wallet.expectCode(await wallet.respond(interaction, response));
      });
    }
  });

  describe('fails the authorization', () => {
    type Attempt = (wallet: InteractiveWallet, interaction: RequiredInteraction) => Promise<Answer> | Answer;
    const cases: [string, RegExp, Attempt, string?][] = [
      [
        // issuance N138
        'with the nonce of another session',
        /nonce_mismatch/,
        async (wallet, interaction) =>
          wallet.present(interaction, heldCredential, { nonce: (await beginAuthorization()).interaction.request.nonce }),
      ],
      [
        'for the origin without its prefix',
        /aud_mismatch/,
        (wallet, interaction) => wallet.present(interaction, heldCredential, { aud: new URL(wallet.issuer).origin }),
      ],
      // issuance N139
      [
        'for another host',
        /aud_mismatch/,
        (wallet, interaction) => wallet.present(interaction, heldCredential, { aud: 'ia:https://other.example' }),
      ],
      [
        'in the format of another draft',
        /aud_mismatch/,
        (wallet, interaction) => wallet.present(interaction, heldCredential, { aud: `iae:${new URL(wallet.issuer).origin}` }),
      ],
      // issuance N139
      [
        'for the tenant',
        /aud_mismatch/,
        (wallet, interaction) => wallet.present(interaction, heldCredential, { aud: `ia:${wallet.issuer}` }),
      ],
      [
        'with an old key binding',
        /kb_iat_window/,
        (wallet, interaction) => wallet.present(interaction, heldCredential, { iat: 1_700_000_000 }),
      ],
      [
        'with the key of another holder',
        /kb_signature/,
        (wallet, interaction) => wallet.present(interaction, { ...heldCredential, holder: newKey() }),
      ],
      [
        'without a key',
        /holder_binding_missing/,
        (wallet, interaction) => wallet.respond(interaction, { vp_token: { card: [heldCredential.text] } }),
      ],
      [
        'with a missing disclosure',
        /missing_claim/,
        (wallet, interaction) => wallet.present(interaction, { ...heldCredential, text: `${heldCredential.text.split('~')[0]}~` }),
      ],
      [
        'with a credential of an untrusted issuer',
        /untrusted_chain/,
        (wallet, interaction) => wallet.present(interaction, heldCredential),
        'wary',
      ],
      [
        'with a response to another query',
        /malformed/,
        (wallet, interaction) => wallet.respond(interaction, { vp_token: { other: ['x'] } }),
      ],
      [
        'with a vp_token of an earlier draft',
        /malformed/,
        (wallet, interaction) => wallet.respond(interaction, { vp_token: heldCredential.text }),
      ],
      [
        'with an mdoc',
        /"reason":"(malformed|format_mismatch)"/,
        (wallet, interaction) => wallet.respond(interaction, { vp_token: { card: ['o2d2ZXJzaW9u'] } }),
      ],
      ['when the user declines', /access_denied/, (wallet, interaction) => wallet.respond(interaction, { error: 'access_denied' })],
      [
        'with an unlisted error code, which is reported as wallet_error',
        /wallet_error/,
        (wallet, interaction) => wallet.respond(interaction, { error: '<script>' }),
        'sealed',
      ],
    ];

    before(async () => {
      await issuer.addPresentationConfig('untrusting', { trustAnchors: [{ keyChainId: 'others' }] });
      await issuer.addBadge('wary', [{ type: 'openid4vp_presentation', presentationConfigId: 'untrusting' }]);
    });

    for (const [description, reason, attempt, configuration] of cases) {
      it(description, async () => {
        const { wallet, interaction, session } = await beginAuthorization(configuration);
        const rejection = await attempt(wallet, interaction);
        expectError(rejection, 'access_denied');
        expect(rejection.text, 'the response contains no reason').to.not.match(reason.source === 'access_denied' ? /user/ : reason);
        expectError(await wallet.present(interaction, heldCredential), 'invalid_session');
        const { report, status, failure } = await issuer.session(session);
        expect(JSON.stringify(report)).to.match(reason);
        expect([status, failure], 'the offer stays redeemable').to.deep.equal(['fetched', undefined]);
        expect(JSON.stringify(report)).to.not.include('script');
      });
    }

    it('with a revoked credential', async () => {
      const revoked = await issuer.issueCredential('card-status');
      const json = { sessionId: revoked.session, status: 1 };
      const { token } = issuer;
      expect((await issuer.service.call('POST', '/session/revoke', { token, json })).status).to.equal(201);
      const { wallet, interaction, session } = await beginAuthorization();
      expectError(await wallet.present(interaction, revoked), 'access_denied');
      expect(JSON.stringify((await issuer.session(session)).report)).to.include('status_revoked');
      const secondRequest = await beginAuthorization();
      wallet.expectCode(await wallet.present(secondRequest.interaction, await issuer.issueCredential('card-status')));
    });

    it('when the offer was withdrawn in the meantime', async () => {
      const { wallet, interaction, session } = await beginAuthorization();
      const { token } = issuer;
      expect((await issuer.service.call('DELETE', `/session/${session}`, { token })).status).to.be.within(200, 204);
      expectError(await wallet.present(interaction, heldCredential), 'access_denied');
    });
  });

  it('may use the endpoint as its audience, as in the example of the current specification text', async () => {
    const { wallet, interaction } = await beginAuthorization();
    wallet.expectCode(await wallet.present(interaction, heldCredential, { aud: `ia:${wallet.endpoint}` }));
    for (const draft of DRAFT_VARIANTS.filter((one) => one !== CURRENT_DRAFT)) {
      const earlierRequest = await beginAuthorization('badge', issuer.wallet(draft));
      expectError(
        await earlierRequest.wallet.present(earlierRequest.interaction, heldCredential, { aud: `iae:${wallet.endpoint}` }),
        'access_denied',
      );
    }
  });

  for (const draft of DRAFT_VARIANTS) {
    it(`is encrypted to a key of this request, with the parameter names of ${draft.name}`, async () => {
      const [ownRequest, otherRequest] = [
        await beginAuthorization('sealed', issuer.wallet(draft)),
        await beginAuthorization('sealed', issuer.wallet(draft)),
      ];
      const { wallet, interaction } = ownRequest;
      expect(interaction.request.response_mode).to.equal(`${draft.responseMode}.jwt`);
      expect(interaction.request.client_metadata.jwks).to.not.deep.equal(otherRequest.interaction.request.client_metadata.jwks);
      const plaintext = { vp_token: { card: [wallet.bind(interaction, heldCredential)] } };
      expectError(
        await wallet.respond(interaction, { response: await encryptFor(otherRequest.interaction, plaintext) }),
        'invalid_request',
      );
      wallet.expectCode(await wallet.respond(interaction, { response: await encryptFor(interaction, plaintext) }));
    });
  }

  it('is requested in a signed request where the configuration names a key', async () => {
    await issuer.addPresentationConfig('signed', { accessKeyChainId: 'access' });
    await issuer.addBadge('formal', [{ type: 'openid4vp_presentation', presentationConfigId: 'signed' }]);
    const { wallet, interaction } = await beginAuthorization('formal');
    expect(Object.keys(interaction.request)).to.deep.equal(['request']);
    verifyWithLeaf(interaction.request.request);
    const { header, payload } = decode(interaction.request.request);
    expect(header['typ']).to.equal('oauth-authz-req+jwt');
    expect(payload).to.include({ response_type: 'vp_token', response_mode: 'ia_post' });
    expect(payload['client_id']).to.match(/^x509_hash:/);
    expect(payload['expected_origins']).to.deep.equal([new URL(wallet.issuer).origin]);
    expect(payload).to.not.have.any.keys('response_uri', 'redirect_uri', 'state');
    expect(payload['dcql_query']).to.deep.include({ credentials: QUERY.credentials });
    wallet.expectCode(await wallet.present({ ...interaction, request: payload }, heldCredential));
  });

  it('is verified against the trust anchors of the configuration at the time of the request', async () => {
    await issuer.addPresentationConfig('fickle');
    await issuer.addBadge('changing', [{ type: 'openid4vp_presentation', presentationConfigId: 'fickle' }]);
    const { wallet, interaction } = await beginAuthorization('changing');
    await issuer.addPresentationConfig('fickle', { trustAnchors: [{ keyChainId: 'others' }] });
    wallet.expectCode(await wallet.present(interaction, heldCredential));
    const laterRequest = await beginAuthorization('changing');
    expectError(await laterRequest.wallet.present(laterRequest.interaction, heldCredential), 'access_denied');
  });

  it('is verified even if its configuration was deleted after the request', async () => {
    await issuer.addPresentationConfig('fleeting');
    await issuer.addBadge('orphan', [{ type: 'openid4vp_presentation', presentationConfigId: 'fleeting' }]);
    const { wallet, interaction } = await beginAuthorization('orphan');
    const { token } = issuer;
    const change = { token, json: { iaeActions: null } };
    const response = await issuer.service.call('PATCH', '/issuer/credentials/orphan', change);
    expect(response.status, response.text).to.equal(200);
    const deletion = await issuer.service.call('DELETE', '/verifier/config/fleeting', { token });
    expect(deletion.status, deletion.text).to.be.within(200, 204);
    wallet.expectCode(await wallet.present(interaction, heldCredential));
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
        const interaction = wallet.expectPresentationStep(await wallet.begin(uri, { scope: `of-${id}` }));
        const [key] = interaction.request.client_metadata.jwks?.keys ?? [];
        const bytes = transcript(interaction.request.nonce, key as never);
        const vp_token = { card: [deviceResponse({ text, holder, docType: DOC_TYPE }, bytes)] };
        const answer = key === undefined ? { vp_token } : { response: await encryptFor(interaction, { vp_token }) };
        return { wallet, answer: await wallet.respond(interaction, answer) };
      };
      const { endpoint } = issuer.wallet();
      const { wallet, answer } = await present((nonce, encryptionKey) => interactiveTranscript({ endpoint, nonce, encryptionKey }));
      wallet.expectCode(answer);

      const wrongTranscripts: readonly ((nonce: string, encryptionKey: never) => Buffer)[] = [
        (_, encryptionKey) => interactiveTranscript({ endpoint, nonce: 'other', encryptionKey }),
        (nonce, encryptionKey) => interactiveTranscript({ endpoint: `${endpoint}x`, nonce, encryptionKey }),
        (nonce, encryptionKey) => redirectTranscript({ clientId: 'x509_hash:x', responseUri: endpoint, nonce, encryptionKey }),
      ];
      for (const transcript of wrongTranscripts) {
        const { status, body } = (await present(transcript)).answer;
        expect([status, body.error]).to.deep.equal([400, 'access_denied']);
      }
    });
  }
});

describe('The data presented before an issuance', () => {
  let issuer: Issuer;
  let heldCredential: HeldCredential;
  let otherBackend: Backend;
  const PATCH = { claimsWebhook: { url: '' } };

  before(async () => {
    issuer = await Issuer.open();
    heldCredential = await issuer.issueCredential();
    otherBackend = await Backend.start();
    PATCH.claimsWebhook.url = `${otherBackend.url}/claims`;
    otherBackend.on('/claims', { json: { badge: { role: 'visitor' } } });
  });
  after(async () => {
    await issuer.close();
    await otherBackend.close();
  });
  beforeEach(() => otherBackend.clearCalls());

  const tokenWith = async (...roles: Role[]): Promise<string> => {
    const clientId = `acme-${roles.join('-').replaceAll(':', '-')}`;
    const secret = 'a-secret-of-a-client-0123';
    const json = { clientId, roles, secret };
    const creation = await issuer.service.call('POST', '/client', { token: issuer.token, json });
    expect(creation.status, creation.text).to.equal(201);
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
    const offerResponse = await offerTo(await tokenWith('issuance:offer'), 'badge');
    if (offerResponse.status === 201) {
      const wallet = issuer.wallet();
      const answer = await wallet.begin(offerResponse.body.uri, { scope: 'badge' });
      const code = wallet.expectCode(await wallet.present(wallet.expectPresentationStep(answer), heldCredential));
      const { body } = await wallet.redeemCode(code, { redirect_uri: '' });
      await wallet.request(body.access_token, 'badge');
    }
    const passedCredentials = otherBackend.callsTo('/claims').map(({ body }) => body.credentials);
    expect(JSON.stringify(passedCredentials)).not.to.include('Ada');
    expect([offerResponse.status, offerResponse.body.code], offerResponse.text).to.deep.equal([403, 'forbidden']);
  });

  it('is not redirected by a client that manages only issuance', async () => {
    const token = await tokenWith('issuance:manage');
    const change = await issuer.service.call('PATCH', '/issuer/credentials/badge', { token, json: PATCH });
    expect([change.status, change.body.code], change.text).to.deep.equal([403, 'forbidden']);
  });
});
