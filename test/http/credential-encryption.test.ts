import { expect } from 'chai';
import fc from 'fast-check';
import type { JWK } from 'jose';
import { Backend } from '../support/backend.ts';
import { decryptMessage, encryptMessage, responseKey } from '../support/message-encryption.ts';
import { callInParallel } from '../support/raced-services.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for the encryption 0123456789';
/** One tenant for each encryption setting. */
const TENANTS = {
  acme: {},
  half: { responseEncryption: 'off' },
  strict: { requestEncryption: 'required', responseEncryption: 'required' },
  plain: { requestEncryption: 'off', responseEncryption: 'off' },
};
type TenantName = keyof typeof TENANTS;

describe('encrypted credential messages', () => {
  let service: TestService;
  let backend: Backend;
  const wallets = new Map<TenantName, { wallet: RawWallet; accessToken: string }>();
  const answerKey = responseKey();
  const responseEncryption = { jwk: answerKey.jwk, enc: 'A256GCM' };

  before(async () => {
    backend = await Backend.start();
    backend.on('/later', { json: { deferred: true, interval: 7 } });
    service = await startTestService({ MASTER_SECRET });
    for (const [tenant, settings] of Object.entries(TENANTS)) await addTenant(tenant as TenantName, settings);
  });
  after(async () => {
    await service.close();
    await backend.close();
  });

  const addTenant = async (tenant: TenantName, overrides: object) => {
    const { token } = await createTenant(service, tenant);
    const call = async (path: string, json: object) => {
      const answer = await service.call('POST', path, { token, json });
      expect(answer.status, answer.text).to.equal(201);
      return answer.body;
    };
    await call('/issuer/config', { display: [{ name: tenant, locale: 'en' }], batchSize: 3, ...overrides });
    const card = { config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] }, vct: 'urn:card:1' };
    await call('/issuer/credentials', { ...card, id: 'card', claims: { name: 'Ada' } });
    const claimsWebhook = { url: `${backend.url}/later` };
    await call('/issuer/credentials', { ...card, id: 'later', claimsWebhook });
    const { uri } = await call('/issuer/offer', {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card', 'later'],
    });
    const wallet = new RawWallet(service, tenant);
    wallets.set(tenant, { wallet, accessToken: await wallet.accessToken(uri) });
  };
  const walletOf = (tenant: TenantName) => {
    const wallet = wallets.get(tenant);
    if (wallet === undefined) throw new Error('no such tenant');
    return wallet;
  };
  const metadata = async (tenant: TenantName, from = service) =>
    (await from.call('GET', `/.well-known/openid-credential-issuer/${tenant}`)).body;
  const publishedKey = async (tenant: TenantName, from = service): Promise<JWK> =>
    (await metadata(tenant, from)).credential_request_encryption.jwks.keys[0];
  const body = async (tenant: TenantName, overrides: object = {}, nonce?: string) => {
    const { wallet } = walletOf(tenant);
    return {
      credential_configuration_id: 'card',
      proofs: { jwt: [keyProof(newKey(), wallet.issuer, nonce ?? (await wallet.nonce()))] },
      ...overrides,
    };
  };
  const send = (tenant: TenantName, text: string, type = 'application/jwt'): Promise<Answer> => {
    const { wallet, accessToken } = walletOf(tenant);
    const headers = { ...wallet.authorization(accessToken), 'Content-Type': type };
    return wallet.request(accessToken, 'card', { text, headers });
  };
  const sendEncrypted = async (tenant: TenantName, message: unknown, header?: Record<string, unknown>) =>
    send(tenant, await encryptMessage(await publishedKey(tenant), message, header));
  const expectError = (answer: Answer, error: string, status = 400) => {
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([status, error]);
    expect(answer.headers.get('content-type')).to.match(/^application\/json/);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
  };
  const decryptResponse = async (answer: Answer, status = 200) => {
    expect(answer.status, answer.text).to.equal(status);
    expect(answer.headers.get('content-type')).to.equal('application/jwt');
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    return decryptMessage(answer.text, answerKey.privateJwk);
  };

  describe('the metadata', () => {
    it('publishes a key and its algorithms, as the tenant configures', async () => {
      const { credential_request_encryption: request, credential_response_encryption: response } = await metadata('acme');
      const [key] = request.jwks.keys;
      expect(request.jwks.keys).to.have.length(1);
      expect(Object.keys(key).sort()).to.deep.equal(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
      expect(key).to.include({ kty: 'EC', crv: 'P-256', use: 'enc', alg: 'ECDH-ES' });
      expect(request).to.deep.include({ enc_values_supported: ['A128GCM', 'A256GCM'], encryption_required: false });
      expect(response).to.deep.equal({
        alg_values_supported: ['ECDH-ES'],
        enc_values_supported: ['A128GCM', 'A256GCM'],
        zip_values_supported: ['DEF'],
        encryption_required: false,
      });
      const strictMetadata = await metadata('strict');
      expect(strictMetadata.credential_request_encryption.encryption_required).to.equal(true);
      expect(strictMetadata.credential_response_encryption.encryption_required).to.equal(true);
      expect(await metadata('half')).to.not.have.property('credential_response_encryption');
      expect(await metadata('plain')).to.not.have.any.keys('credential_request_encryption', 'credential_response_encryption');
    });

    it('publishes another key for each tenant', async () => {
      const kids = await Promise.all((['acme', 'half', 'strict'] as const).map((name) => publishedKey(name)));
      expect(new Set(kids.map(({ kid }) => kid)).size).to.equal(3);
    });
  });

  describe('a request', () => {
    for (const enc of ['A128GCM', 'A256GCM']) {
      for (const zip of [undefined, 'DEF']) {
        it(`is accepted with ${enc}${zip ? ', compressed' : ''}, and answered in the clear by default`, async () => {
          const header = { enc, cty: 'json', ...(zip && { zip }) };
          const answer = await sendEncrypted('acme', await body('acme'), header);
          expect(answer.status, answer.text).to.equal(200);
          expect(answer.headers.get('content-type')).to.match(/^application\/json/);
          expect(answer.body.credentials).to.have.length(1);
        });
      }
    }

    it('is accepted in the clear where encryption is optional', async () => {
      for (const tenant of ['acme', 'half', 'plain'] as const) {
        const answer = await send(tenant, JSON.stringify(await body(tenant)), 'application/json; charset=utf-8');
        expect(answer.status, answer.text).to.equal(200);
      }
    });

    it('is rejected in the clear where encryption is required', async () => {
      const plaintext = JSON.stringify(await body('strict'));
      expectError(await send('strict', plaintext, 'application/json'), 'invalid_encryption_parameters');
      expectError(await send('strict', '{', 'application/json'), 'invalid_encryption_parameters');
    });

    it('needs a published media type', async () => {
      const key = await publishedKey('acme');
      const jwe = await encryptMessage(key, await body('plain'));
      expectError(await send('plain', jwe), 'invalid_credential_request');
      for (const type of ['text/plain', 'application/jose', 'application/jwt+x']) {
        expectError(await send('acme', jwe, type), 'invalid_credential_request');
        expectError(await send('strict', jwe, type), 'invalid_credential_request');
      }
      expectError(await send('acme', jwe, 'application/json'), 'invalid_credential_request');
    });

    type Undecryptable = [string, () => Promise<string>];
    const encryptRequest = async (change: JWK, header?: Record<string, unknown>) =>
      encryptMessage({ ...(await publishedKey('acme')), ...change }, await body('acme'), header);
    const undecryptable: Undecryptable[] = [
      ['an unknown kid', () => encryptRequest({ kid: 'unknown' })],
      ['no kid', () => encryptRequest({}, { kid: undefined })],
      ['an enc that is not offered', () => encryptRequest({}, { enc: 'A192GCM' })],
      ['an alg that is not offered', () => encryptRequest({}, { alg: 'ECDH-ES+A256KW' })],
      ['a nested JWT', () => encryptRequest({}, { cty: 'JWT' })],
      ['the key of another tenant', async () => encryptMessage(await publishedKey('strict'), await body('acme'))],
      ['another key under our kid', async () => encryptRequest({ ...responseKey().jwk, kid: (await publishedKey('acme')).kid } as JWK)],
      ['a broken tag', async () => `${(await encryptRequest({})).slice(0, -4)}AAAA`],
      ['nothing', async () => ''],
      ['the JSON itself', async () => JSON.stringify(await body('acme'))],
      ['a JWS', async () => keyProof(newKey(), 'x', 'y')],
      ['a decompression bomb', async () => encryptMessage(await publishedKey('acme'), `"${'x'.repeat(64 * 1024 * 1024)}"`, { zip: 'DEF' })],
    ];
    for (const [description, text] of undecryptable) {
      it(`is rejected with ${description}`, async () => expectError(await send('acme', await text()), 'invalid_encryption_parameters'));
    }

    it('is limited in size before it is decrypted', async () => {
      const encryptedRequest = await encryptRequest({}, {});
      const answer = await send('acme', `${encryptedRequest}${'A'.repeat(600 * 1024)}`);
      expectError(answer, 'invalid_credential_request', 413);
    });

    for (const text of ['{', '[]', '5', '""', '{"a":1,"a":2}', `${'['.repeat(40)}${']'.repeat(40)}`]) {
      it(`of ${text.slice(0, 20)} is decrypted and then rejected`, async () =>
        expectError(await sendEncrypted('acme', text), 'invalid_credential_request'));
    }

    it('to a key of a former master secret is still decrypted', async () => {
      const secrets = `a new master secret 0123456789 abcdef,${MASTER_SECRET}`;
      const renewedService = await startTestService({ MASTER_SECRET: secrets });
      try {
        const { token } = await createTenant(renewedService, 'acme');
        const json = { config: { format: 'dc+sd-jwt', display: [{ name: 'Card' }] }, vct: 'urn:card:1', id: 'card' };
        await renewedService.call('POST', '/issuer/credentials', { token, json });
        const [oldKey, publishedByRenewed] = [await publishedKey('acme'), await publishedKey('acme', renewedService)];
        expect(publishedByRenewed.kid).to.not.equal(oldKey.kid);
        const wallet = new RawWallet(renewedService, 'acme');
        const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
        const { uri } = (await renewedService.call('POST', '/issuer/offer', { token, json: offer })).body;
        const accessToken = await wallet.accessToken(uri);
        for (const key of [oldKey, publishedByRenewed]) {
          const proofs = { jwt: [keyProof(newKey(), wallet.issuer, await wallet.nonce())] };
          const text = await encryptMessage(key, { credential_configuration_id: 'card', proofs });
          const headers = { ...wallet.authorization(accessToken), 'Content-Type': 'application/jwt' };
          const answer = await wallet.request(accessToken, 'card', { text, headers });
          expect(answer.status, answer.text).to.equal(200);
        }
      } finally {
        await renewedService.close();
      }
    });
  });

  describe('a response', () => {
    for (const enc of ['A128GCM', 'A256GCM']) {
      for (const zip of [undefined, 'DEF']) {
        it(`is encrypted with ${enc}${zip ? ', compressed' : ''}, under the kid of the wallet`, async () => {
          const encryptionParameters = { jwk: answerKey.jwk, enc, ...(zip && { zip }) };
          const extension = { credential_response_encryption: encryptionParameters };
          const { header, body: answer } = await decryptResponse(await sendEncrypted('acme', await body('acme', extension)));
          expect(header).to.include({ alg: 'ECDH-ES', enc, kid: 'w-1' });
          expect(header['zip']).to.equal(zip);
          expect(Object.keys(answer)).to.deep.equal(['credentials', 'notification_id']);
          expect(answer.credentials[0].credential).to.match(/^ey/);
        });
      }
    }

    it('has no kid when the key of the wallet has none', async () => {
      const { kid: _, ...jwk } = answerKey.jwk;
      const extension = { credential_response_encryption: { ...responseEncryption, jwk } };
      const { header } = await decryptResponse(await sendEncrypted('acme', await body('acme', extension)));
      expect(header).to.not.have.property('kid');
    });

    // issuance N130
    it('that defers the credential is encrypted, and so is each later one', async () => {
      const extension = { credential_configuration_id: 'later', credential_response_encryption: responseEncryption };
      const { body: answer } = await decryptResponse(await sendEncrypted('strict', await body('strict', extension)), 202);
      expect(answer).to.include({ interval: 7 });
      const { wallet, accessToken } = walletOf('strict');
      const poll = async (message: object) =>
        service.call('POST', '/strict/deferred_credential', {
          text: await encryptMessage(await publishedKey('strict'), message),
          headers: { ...wallet.authorization(accessToken, { path: 'deferred_credential' }), 'Content-Type': 'application/jwt' },
        });
      const { transaction_id } = answer;
      const pollResponse = await poll({ transaction_id, credential_response_encryption: responseEncryption });
      expect((await decryptResponse(pollResponse, 202)).body).to.deep.equal({ transaction_id, interval: 7 });
      expectError(await poll({ transaction_id }), 'invalid_encryption_parameters');
    });

    it('that is an error is always in the clear', async () => {
      const encryption = { credential_response_encryption: responseEncryption };
      const cases: [object, string][] = [
        [{ proofs: undefined }, 'invalid_proof'],
        [{ proofs: { jwt: ['x'] } }, 'invalid_proof'],
        [{ credential_configuration_id: 'nothing' }, 'unknown_credential_configuration'],
        [{ credential_configuration_id: undefined }, 'invalid_credential_request'],
      ];
      for (const [extension, error] of cases) {
        expectError(await sendEncrypted('strict', await body('strict', { ...extension, ...encryption })), error);
      }
      const staleRequest = await body('strict', encryption, 'invented');
      expectError(await sendEncrypted('strict', staleRequest), 'invalid_nonce');
    });

    it('must be requested by an encrypted request where encryption is required', async () => {
      expectError(await sendEncrypted('strict', await body('strict')), 'invalid_encryption_parameters');
      const extension = { credential_response_encryption: responseEncryption };
      await decryptResponse(await sendEncrypted('strict', await body('strict', extension)));
    });

    it('cannot be requested encrypted by a plain request, or where encryption is not offered', async () => {
      const extension = { credential_response_encryption: responseEncryption };
      for (const tenant of ['acme', 'plain'] as const) {
        const text = JSON.stringify(await body(tenant, extension));
        expectError(await send(tenant, text, 'application/json'), 'invalid_encryption_parameters');
      }
      expectError(await sendEncrypted('half', await body('half', extension)), 'invalid_encryption_parameters');
    });

    const { alg: _alg, ...withoutAlg } = answerKey.jwk;
    const parameters: [string, unknown][] = [
      ['an enc that is not offered', { ...responseEncryption, enc: 'A128CBC-HS256' }],
      ['no enc', { jwk: answerKey.jwk }],
      ['a key without alg', { ...responseEncryption, jwk: withoutAlg }],
      ['a key of another alg', { ...responseEncryption, jwk: { ...answerKey.jwk, alg: 'RSA-OAEP-256' } }],
      ['a private key', { ...responseEncryption, jwk: { ...answerKey.jwk, d: answerKey.privateJwk.d } }],
      ['a key off the curve', { ...responseEncryption, jwk: { ...answerKey.jwk, y: answerKey.jwk.x } }],
      ['no key', { enc: 'A256GCM' }],
      ['an unknown zip', { ...responseEncryption, zip: 'ZSTD' }],
      ['null', null],
      ['a list', [responseEncryption]],
    ];
    for (const [description, encryption] of parameters) {
      it(`is rejected with ${description}, before the proofs are checked`, async () => {
        const extension = { credential_response_encryption: encryption, proofs: undefined };
        expectError(await sendEncrypted('acme', await body('acme', extension)), 'invalid_encryption_parameters');
      });
    }
  });

  it('are checked in the order of the specification', async () => {
    const invalidEncryption = { credential_response_encryption: { enc: 'none' } };
    const unknownConfiguration = { ...invalidEncryption, credential_configuration_id: 'nothing' };
    expectError(await sendEncrypted('acme', unknownConfiguration), 'unknown_credential_configuration');
    expectError(await sendEncrypted('acme', { ...invalidEncryption }), 'invalid_credential_request');
    const noProofs = { ...invalidEncryption, credential_configuration_id: 'card' };
    expectError(await sendEncrypted('acme', noProofs), 'invalid_encryption_parameters');
    const { wallet } = walletOf('strict');
    const headers = { 'Content-Type': 'application/jwt' };
    const answer = await wallet.request('', 'card', { text: 'nonsense', headers });
    expect(answer.status, 'the token is verified first').to.equal(401);
  });

  it('consume a nonce once, also with 30 concurrent requests', async () => {
    const { wallet } = walletOf('strict');
    const nonce = await wallet.nonce();
    const extension = { credential_response_encryption: responseEncryption };
    const responses = await callInParallel(30, async () => sendEncrypted('strict', await body('strict', extension, nonce)));
    const failures = responses.filter(({ status }) => status !== 200);
    expect(failures).to.have.length(29);
    for (const answer of failures) expectError(answer, 'invalid_nonce');
  });

  it('fail as the specification defines, regardless of the plaintext', async () => {
    const key = await publishedKey('acme');
    const property = fc.oneof(fc.jsonValue(), fc.constant('card'), fc.constant(responseEncryption));
    const names = ['credential_configuration_id', 'credential_identifier', 'proofs', 'credential_response_encryption'];
    const message = fc.oneof(fc.dictionary(fc.constantFrom(...names), property), fc.jsonValue());
    await fc.assert(
      fc.asyncProperty(message, fc.constantFrom(undefined, 'DEF'), async (plaintext, zip) => {
        const answer = await send('acme', await encryptMessage(key, plaintext, { ...(zip && { zip }) }));
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.error).to.match(/^(invalid|unknown)_/);
      }),
      { numRuns: 60 },
    );
  });
});
