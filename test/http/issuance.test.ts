import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { dpopProof, keyProof, makeJwt, newKey, now, PRE_AUTHORIZED, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CLAIMS = { given_name: 'Ada', family_name: 'Lovelace' };

const CREDENTIAL = {
  id: 'pid',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Person ID', locale: 'en' }] },
  vct: 'urn:eudi:pid:1',
  claims: CLAIMS,
  disclosureFrame: { _sd: ['given_name', 'family_name'] },
  statusManagement: true,
  schema: { type: 'object', required: ['given_name'], properties: { given_name: { type: 'string' } } },
};

describe('issuing through HTTP', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    for (const id of ['pid', 'other']) {
      const creation = await service.call('POST', '/issuer/credentials', { token, json: { ...CREDENTIAL, id } });
      expect(creation.status, creation.text).to.equal(201);
    }
    const config = { display: [{ name: 'Acme', locale: 'en' }], batchSize: 3 };
    expect((await service.call('POST', '/issuer/config', { token, json: config })).status).to.equal(201);
    wallet = new RawWallet(service, 'acme');
  });
  after(() => service.close());

  const offer = async (overrides: object = {}): Promise<{ uri: string; session: string }> => {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['pid'], ...overrides };
    const answer = await service.call('POST', '/issuer/offer', { token, json });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const statusOf = async (session: string): Promise<string> => (await service.call('GET', `/session/${session}`, { token })).body.status;
  const expectError = (answer: Answer, status: number, error: string) =>
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([status, error]);

  it('moves a session from active to fetched to completed', async () => {
    const { uri, session } = await offer();
    expect(await statusOf(session)).to.equal('active');
    const accessToken = await wallet.accessToken(uri);
    expect(await statusOf(session)).to.equal('fetched');
    const credentialResponse = await wallet.request(accessToken, 'pid');
    expect(credentialResponse.status, credentialResponse.text).to.equal(200);
    expect(credentialResponse.headers.get('cache-control')).to.equal('no-store');
    expect(Object.keys(credentialResponse.body)).to.deep.equal(['credentials', 'notification_id']);
    const [{ credential }] = credentialResponse.body.credentials;
    const [jwt, ...disclosures] = credential.split('~');
    const header = JSON.parse(Buffer.from(jwt.split('.')[0], 'base64url').toString());
    const payload = JSON.parse(Buffer.from(jwt.split('.')[1], 'base64url').toString());
    expect(header.typ).to.equal('dc+sd-jwt');
    expect(header.x5c, 'the anchor is not included').to.have.length(1);
    expect(disclosures.filter(Boolean)).to.have.length(2);
    expect(payload).to.include({ iss: `${service.address}/acme`, vct: 'urn:eudi:pid:1' });
    expect(payload.iat % 3600).to.equal(0);
    expect(Object.keys(payload.cnf.jwk).sort()).to.deep.equal(['crv', 'kty', 'x', 'y']);
    expect(await statusOf(session)).to.equal('completed');
  });

  // issuance N143
  it('issues a batch to different keys without linkable values', async () => {
    const accessToken = await wallet.accessToken((await offer()).uri);
    const nonce = await wallet.nonce();
    const keys = [newKey(), newKey(), newKey()];
    const proofs = { jwt: keys.map((key) => keyProof(key, wallet.issuer, nonce)) };
    const answer = await wallet.request(accessToken, 'pid', { body: { credential_configuration_id: 'pid', proofs } });
    expect(answer.status, answer.text).to.equal(200);
    const credentials = answer.body.credentials.map((entry: { credential: string }) => entry.credential) as string[];
    expect(credentials).to.have.length(3);
    const disclosures = credentials.flatMap((credential) => credential.split('~').slice(1, -1));
    expect(new Set(disclosures).size, 'each salt is different').to.equal(6);
    const payloads = credentials.map((credential) => JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString()));
    expect(payloads.map(({ cnf }) => cnf.jwk)).to.deep.equal(keys.map(({ jwk }) => jwk));
    expect(new Set(payloads.map(({ status }) => status.status_list.idx)).size).to.equal(3);
    for (const { iat, nbf, exp } of payloads) {
      for (const time of [iat, nbf, exp]) expect((time ?? 0) % 3600, 'the times do not show the minute of issuance').to.equal(0);
    }
  });

  it('serves several requests with one token and completes after the last credential', async () => {
    const { uri, session } = await offer({ credentialConfigurationIds: ['pid', 'other'] });
    const accessToken = await wallet.accessToken(uri);
    expect((await wallet.request(accessToken, 'pid')).status).to.equal(200);
    expect(await statusOf(session)).to.equal('fetched');
    expect((await wallet.request(accessToken, 'other')).status).to.equal(200);
    expect(await statusOf(session)).to.equal('completed');
    expect((await wallet.request(accessToken, 'pid')).status, 'the token stays valid').to.equal(200);
  });

  describe('an offer request', () => {
    const invalidOffers: [string, object, string][] = [
      ['an unknown configuration', { credentialConfigurationIds: ['nothing'] }, 'credentialConfigurationIds.0'],
      ['a configuration twice', { credentialConfigurationIds: ['pid', 'pid'] }, 'credentialConfigurationIds.1'],
      ['no configuration', { credentialConfigurationIds: [] }, 'credentialConfigurationIds'],
      ['a transaction code with the other flow', { flow: 'authorization_code', tx_code: '1234' }, 'tx_code'],
      ['a description of 301 characters', { tx_code: '1234', tx_code_description: 'x'.repeat(301) }, 'tx_code_description'],
      ['claims of a foreign configuration', { credentialClaims: { other: { type: 'inline', claims: {} } } }, 'credentialClaims.other'],
      [
        'claims that override the protocol',
        { credentialClaims: { pid: { type: 'inline', claims: { given_name: 'A', cnf: {} } } } },
        'credentialClaims.pid.claims.cnf',
      ],
      [
        'claims against the schema',
        { credentialClaims: { pid: { type: 'inline', claims: { given_name: 5 } } } },
        'credentialClaims.pid.claims.given_name',
      ],
      ['another authorization server', { authorization_server: 'https://elsewhere.example' }, 'authorization_server'],
      ['an unknown response type', { response_type: 'carrier-pigeon' }, 'response_type'],
    ];
    for (const [description, change, path] of invalidOffers) {
      it(`with ${description} is rejected with its path`, async () => {
        const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['pid'], ...change };
        const answer = await service.call('POST', '/issuer/offer', { token, json });
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.headers.get('content-type')).to.equal('application/problem+json');
        expect(answer.body).to.include({ code: 'invalid_input', status: 400 });
        expect(answer.body.errors[0].path).to.equal(path);
      });
    }
  });

  describe('the token endpoint', () => {
    it('answers as RFC 6749 defines and binds the token', async () => {
      const answer = await wallet.redeem(await wallet.code((await offer()).uri));
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      expect(answer.body).to.include({ token_type: 'DPoP' });
      const payload = JSON.parse(Buffer.from(answer.body.access_token.split('.')[1], 'base64url').toString());
      expect(payload.cnf.jkt).to.be.a('string');
    });

    it('accepts a code once and answers used, unknown and foreign codes alike', async () => {
      const code = await wallet.code((await offer()).uri);
      expect((await wallet.redeem(code)).status).to.equal(200);
      const otherWallet = new RawWallet(service, wallet.tenant);
      const responses = [await otherWallet.redeem(code), await wallet.redeem('unknown')];
      await createTenant(service, 'foreign');
      const ownCode = await wallet.code((await offer()).uri);
      responses.push(await new RawWallet(service, 'foreign').redeem(ownCode));
      for (const answer of responses) expectError(answer, 400, 'invalid_grant');
      expect(new Set(responses.map((answer) => answer.text)).size).to.equal(1);
      expect((await wallet.redeem(ownCode)).status, 'the rejected requests had no effect').to.equal(200);
    });

    it('does not return the tokens of the wallet to a client that only saw the offer', async () => {
      const code = await wallet.code((await offer({ tx_code: '493536' })).uri);
      const tokenResponse = await wallet.redeem(code, { tx_code: '493536' });
      const otherWallet = new RawWallet(service, wallet.tenant);
      expectError(await otherWallet.redeem(code), 400, 'invalid_grant');
      expectError(await otherWallet.redeem(code, { tx_code: '000000' }), 400, 'invalid_grant');
      expect((await wallet.request(tokenResponse.body.access_token, 'pid')).status).to.equal(200);
      expectError(await otherWallet.redeem(code, { tx_code: '493536' }), 400, 'invalid_grant');
      expect((await wallet.request(tokenResponse.body.access_token, 'pid')).status).to.equal(200);
    });

    it('repeats the answer to the wallet that redeemed the code until it has a credential', async () => {
      const code = await wallet.code((await offer()).uri);
      const firstResponse = await wallet.redeem(code);
      const secondResponse = await wallet.redeem(code);
      expect(secondResponse.status, secondResponse.text).to.equal(200);
      expect(secondResponse.body.refresh_token).to.equal(firstResponse.body.refresh_token);
      expect((await wallet.request(secondResponse.body.access_token, 'pid')).status).to.equal(200);
      expectError(await wallet.redeem(code), 400, 'invalid_grant');
    });

    it('returns 404 for an unknown tenant, regardless of the request', async () => {
      const answer = await service.call('POST', '/no-such-tenant/token', { form: {} });
      expect(answer.status, answer.text).to.equal(404);
    });

    it('requires the transaction code and invalidates the offer at the fifth wrong one', async () => {
      const { uri } = await offer({ tx_code: '493536', tx_code_description: 'Six digits' });
      const grants = (await wallet.offer(uri))['grants'] as Record<string, Record<string, unknown>>;
      expect(grants[PRE_AUTHORIZED]?.['tx_code']).to.deep.equal({ input_mode: 'numeric', length: 6, description: 'Six digits' });
      const code = await wallet.code(uri);
      expectError(await wallet.redeem(code), 400, 'invalid_request');
      expectError(await wallet.redeem(code, { tx_code: '000000' }), 400, 'invalid_grant');
      expect((await wallet.redeem(code, { tx_code: '493536' })).status).to.equal(200);

      const second = await wallet.code((await offer({ tx_code: '493536' })).uri);
      for (let i = 0; i < 5; i++) expectError(await wallet.redeem(second, { tx_code: `00000${i}` }), 400, 'invalid_grant');
      expectError(await wallet.redeem(second, { tx_code: '493536' }), 400, 'invalid_grant');
    });

    it('compares at most five concurrent guesses', async () => {
      const code = await wallet.code((await offer({ tx_code: '4935' })).uri);
      await Promise.all(Array.from({ length: 40 }, (_, i) => wallet.redeem(code, { tx_code: `${1000 + i}` })));
      expectError(await wallet.redeem(code, { tx_code: '4935' }), 400, 'invalid_grant');
    });

    it('narrows the scope to authorization_details and returns identifiers', async () => {
      const { uri } = await offer({ credentialConfigurationIds: ['pid', 'other'] });
      const details = [{ type: 'openid_credential', credential_configuration_id: 'pid', extra: 1 }];
      const code = await wallet.code(uri);
      const unknownDetails = [{ type: 'openid_credential', credential_configuration_id: 'nothing' }];
      expectError(
        await wallet.redeem(code, { authorization_details: JSON.stringify(unknownDetails) }),
        400,
        'invalid_authorization_details',
      );
      const answer = await wallet.redeem(code, { authorization_details: JSON.stringify(details) });
      expect(answer.status, answer.text).to.equal(200);
      const [{ credential_identifiers: identifiers }] = answer.body.authorization_details;
      const accessToken = answer.body.access_token;
      expectError(await wallet.request(accessToken, 'other'), 403, 'insufficient_scope');
      expectError(
        await wallet.request(accessToken, 'x', { body: { credential_identifier: 'other' } }),
        400,
        'unknown_credential_identifier',
      );
      const proofs = { jwt: [keyProof(newKey(), wallet.issuer, await wallet.nonce())] };
      const credentialResponse = await wallet.request(accessToken, 'pid', { body: { credential_identifier: identifiers[0], proofs } });
      expect(credentialResponse.status, credentialResponse.text).to.equal(200);
    });

    type Case = [string, () => Promise<Answer>, number, string];
    const url = () => `${wallet.issuer}/token`;
    const post = (options: object) => service.call('POST', '/acme/token', options);
    const withProof = async (changes: object) =>
      wallet.redeem(await wallet.code((await offer()).uri), {}, { DPoP: dpopProof(wallet.dpopKey, url(), changes) });
    const cases: Case[] = [
      ['a JSON body', () => post({ json: { grant_type: PRE_AUTHORIZED } }), 400, 'invalid_request'],
      ['no grant type', () => post({ form: { code: 'x' } }), 400, 'invalid_request'],
      ['the password grant', () => post({ form: { grant_type: 'password' } }), 400, 'unsupported_grant_type'],
      ['tx_code with another grant', () => post({ form: { grant_type: 'authorization_code', tx_code: '1' } }), 400, 'invalid_request'],
      [
        'a repeated parameter',
        () => post({ text: `grant_type=${PRE_AUTHORIZED}&grant_type=x`, headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }),
        400,
        'invalid_request',
      ],
      ['a body over the limit', () => post({ form: { grant_type: 'x'.repeat(70_000) } }), 413, 'invalid_request'],
      [
        'a transaction code that is not required',
        async () => wallet.redeem(await wallet.code((await offer()).uri), { tx_code: '1234' }),
        400,
        'invalid_request',
      ],
      ['no DPoP proof', async () => wallet.redeem(await wallet.code((await offer()).uri), {}, {}), 400, 'invalid_dpop_proof'],
      ['a proof for another address', () => withProof({ payload: { htu: `${service.address}/other/token` } }), 400, 'invalid_dpop_proof'],
      ['a proof without signature algorithm', () => withProof({ header: { alg: 'none' } }), 400, 'invalid_dpop_proof'],
      [
        'authorization_details that are not an array',
        async () => wallet.redeem(await wallet.code((await offer()).uri), { authorization_details: '{}' }),
        400,
        'invalid_authorization_details',
      ],
    ];
    for (const [description, attempt, status, error] of cases) {
      it(`rejects ${description}`, async () => expectError(await attempt(), status, error));
    }

    it('rejects a replayed proof and consumes nothing', async () => {
      const proof = dpopProof(wallet.dpopKey, url());
      expect((await wallet.redeem(await wallet.code((await offer()).uri), {}, { DPoP: proof })).status).to.equal(200);
      const code = await wallet.code((await offer()).uri);
      expectError(await wallet.redeem(code, {}, { DPoP: proof }), 400, 'invalid_dpop_proof');
      expect((await wallet.redeem(code)).status).to.equal(200);
    });

    it('ignores unknown parameters and answers GET with 405', async () => {
      expect((await wallet.redeem(await wallet.code((await offer()).uri), { flavour: 'vanilla' })).status).to.equal(200);
      const answer = await service.call('GET', '/acme/token');
      expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'POST']);
    });
  });

  describe('a wallet at the credential endpoint', () => {
    let accessToken: string;
    const url = () => `${wallet.issuer}/credential`;

    beforeEach(async () => {
      accessToken = await wallet.accessToken((await offer()).uri);
    });

    const rejectedHeaders: [string, () => Promise<Record<string, string>> | Record<string, string>, number, string | undefined][] = [
      ['no token', () => ({}), 401, undefined],
      ['an unknown scheme', () => ({ Authorization: `Basic ${accessToken}` }), 401, undefined],
      ['a bound token as bearer', () => ({ Authorization: `Bearer ${accessToken}` }), 401, 'invalid_token'],
      ['no proof', () => ({ Authorization: `DPoP ${accessToken}` }), 401, 'invalid_dpop_proof'],
      ['an invented token', () => wallet.authorization('a.b.c'), 401, 'invalid_token'],
      ['a token with a changed signature', () => wallet.authorization(`${accessToken.slice(0, -6)}AAAAAA`), 401, 'invalid_token'],
      ['another key', () => wallet.authorization(accessToken, { key: newKey() }), 401, 'invalid_token'],
      ['typ jwt', () => wallet.authorization(accessToken, { header: { typ: 'jwt' } }), 401, 'invalid_dpop_proof'],
      ['alg HS256', () => wallet.authorization(accessToken, { header: { alg: 'HS256' } }), 401, 'invalid_dpop_proof'],
      [
        'a private jwk',
        () => wallet.authorization(accessToken, { header: { jwk: { ...wallet.dpopKey.jwk, d: 'x' } } }),
        401,
        'invalid_dpop_proof',
      ],
      ...['jti', 'htm', 'htu', 'iat', 'ath'].map((name): [string, () => Record<string, string>, number, string] => [
        `no ${name}`,
        () => wallet.authorization(accessToken, { payload: { [name]: undefined } }),
        401,
        'invalid_dpop_proof',
      ]),
      ['htm GET', () => wallet.authorization(accessToken, { payload: { htm: 'GET' } }), 401, 'invalid_dpop_proof'],
      ['another path', () => wallet.authorization(accessToken, { payload: { htu: `${wallet.issuer}/token` } }), 401, 'invalid_dpop_proof'],
      ['a proof one hour old', () => wallet.authorization(accessToken, { payload: { iat: now() - 3600 } }), 401, 'invalid_dpop_proof'],
      [
        'a proof with a time in the future',
        () => wallet.authorization(accessToken, { payload: { iat: now() + 65 } }),
        401,
        'invalid_dpop_proof',
      ],
      [
        'the hash of another token',
        () => wallet.authorization(accessToken, { payload: { ath: createHash('sha256').update('x').digest('base64url') } }),
        401,
        'invalid_dpop_proof',
      ],
    ];
    for (const [description, headers, status, error] of rejectedHeaders) {
      it(`with ${description} is rejected`, async () => {
        const answer = await wallet.request(accessToken, 'pid', { headers: await headers() });
        expect(answer.status, answer.text).to.equal(status);
        const challenge = answer.headers.get('www-authenticate') ?? '';
        expect(challenge).to.match(/^DPoP /);
        if (error === undefined) expect(challenge).not.to.contain('error=');
        else expect(challenge).to.contain(`error="${error}"`);
      });
    }

    it('may write the URL differently, have a clock that is ahead and add properties', async () => {
      for (const payload of [
        { htu: `${url().replace('localhost', 'LOCALHOST')}?x=1#y` },
        { htu: url().replace('/acme', '/%61cme') },
        { iat: now() + 8 },
        { more: 'members' },
      ]) {
        const answer = await wallet.request(accessToken, 'pid', { headers: wallet.authorization(accessToken, { payload }) });
        expect(answer.status, answer.text).to.equal(200);
      }
    });

    it('cannot use a proof twice', async () => {
      const headers = wallet.authorization(accessToken);
      expect((await wallet.request(accessToken, 'pid', { headers })).status).to.equal(200);
      const retry = await wallet.request(accessToken, 'pid', { headers });
      expect(retry.status).to.equal(401);
      expect(retry.headers.get('www-authenticate')).to.contain('invalid_dpop_proof');
    });

    it('cannot use the token at another tenant', async () => {
      const otherWallet = new RawWallet(service, 'foreign');
      const headers = {
        Authorization: `DPoP ${accessToken}`,
        DPoP: dpopProof(wallet.dpopKey, `${otherWallet.issuer}/credential`, { token: accessToken }),
      };
      const answer = await otherWallet.request(accessToken, 'pid', { headers });
      expect(answer.status, answer.text).to.equal(401);
    });

    const proofOf =
      (changes: object, key = newKey()) =>
      async () => ({ jwt: [keyProof(key, wallet.issuer, await wallet.nonce(), changes)] });
    const withProofs = (proofs: () => unknown) => async () => ({ credential_configuration_id: 'pid', proofs: await proofs() });
    const repeatedKey = newKey();
    const rejectedBodies: [string, () => unknown, number, string][] = [
      ['both names', () => ({ credential_configuration_id: 'pid', credential_identifier: 'pid' }), 400, 'invalid_credential_request'],
      ['no name', () => ({ proofs: {} }), 400, 'invalid_credential_request'],
      ['an unknown configuration', () => ({ credential_configuration_id: 'nothing' }), 400, 'unknown_credential_configuration'],
      ['an unknown identifier', () => ({ credential_identifier: 'nothing' }), 400, 'unknown_credential_identifier'],
      ['a configuration beyond the token', () => ({ credential_configuration_id: 'other' }), 403, 'insufficient_scope'],
      ['no proofs', () => ({ credential_configuration_id: 'pid' }), 400, 'invalid_proof'],
      ['the draft-style proof', () => ({ credential_configuration_id: 'pid', proof: { proof_type: 'jwt' } }), 400, 'invalid_proof'],
      ['empty proofs', withProofs(() => ({})), 400, 'invalid_proof'],
      ['an empty array', withProofs(() => ({ jwt: [] })), 400, 'invalid_proof'],
      ['two proof types', withProofs(() => ({ jwt: ['x'], attestation: ['y'] })), 400, 'invalid_proof'],
      ['an unknown proof type', withProofs(() => ({ smoke: ['x'] })), 400, 'invalid_proof'],
      ['more proofs than a batch', withProofs(() => ({ jwt: ['a', 'b', 'c', 'd'] })), 400, 'invalid_credential_request'],
      ['a proof that is not a JWT', withProofs(() => ({ jwt: ['x'] })), 400, 'invalid_proof'],
      ['a proof of the wrong typ', withProofs(proofOf({ header: { typ: 'JWT' } })), 400, 'invalid_proof'],
      ['a proof of alg none', withProofs(proofOf({ header: { alg: 'none' } })), 400, 'invalid_proof'],
      ['a proof with a private key', withProofs(proofOf({ header: { jwk: { ...repeatedKey.jwk, d: 'x' } } })), 400, 'invalid_proof'],
      ['a proof with two keys', withProofs(proofOf({ header: { kid: 'x' } })), 400, 'invalid_proof'],
      ['a proof for the endpoint', withProofs(proofOf({ payload: { aud: 'https://x.example/credential' } })), 400, 'invalid_proof'],
      ['a proof with a trailing slash', withProofs(() => proofOf({ payload: { aud: `${wallet.issuer}/` } })()), 400, 'invalid_proof'],
      ['a proof without nonce', withProofs(proofOf({ payload: { nonce: undefined } })), 400, 'invalid_proof'],
      ['an old proof', withProofs(proofOf({ payload: { iat: now() - 3600 } })), 400, 'invalid_proof'],
      [
        'an issuer that is not a string in an anonymous proof',
        withProofs(proofOf({ payload: { iss: { name: 'wallet' } } })),
        400,
        'invalid_proof',
      ],
      ['a proof signed by another key', withProofs(proofOf({ header: { jwk: newKey().jwk } })), 400, 'invalid_proof'],
      ['an invented nonce', withProofs(() => ({ jwt: [keyProof(newKey(), wallet.issuer, 'invented')] })), 400, 'invalid_nonce'],
      [
        'a broken signature and a wrong nonce',
        withProofs(() => ({ jwt: [keyProof(newKey(), wallet.issuer, 'invented', { header: { jwk: newKey().jwk } })] })),
        400,
        'invalid_proof',
      ],
      [
        'one key in two proofs',
        withProofs(async () => {
          const nonce = await wallet.nonce();
          return {
            jwt: [
              keyProof(repeatedKey, wallet.issuer, nonce),
              keyProof(repeatedKey, wallet.issuer, nonce, { payload: { iat: now() - 1 } }),
            ],
          };
        }),
        400,
        'invalid_proof',
      ],
      [
        'response encryption in the clear',
        async () => ({ credential_configuration_id: 'pid', proofs: await proofOf({})(), credential_response_encryption: {} }),
        400,
        'invalid_encryption_parameters',
      ],
    ];
    for (const [description, body, status, error] of rejectedBodies) {
      it(`with ${description} is rejected, and a valid request is accepted afterwards`, async () => {
        expectError(await wallet.request(accessToken, 'pid', { body: await body() }), status, error);
        const retry = await wallet.request(accessToken, 'pid');
        expect(retry.status, retry.text).to.equal(200);
      });
    }

    const rejectedTexts: [string, string, string][] = [
      ['broken JSON', '{"credential_configuration_id":', 'the body is not JSON'],
      ['an array', '[]', 'the body must be a JSON object'],
      [
        'a repeated property',
        '{"credential_configuration_id":"pid","credential_configuration_id":"pid"}',
        "the body has the property 'credential_configuration_id' twice in one object (line 1, column 38)",
      ],
    ];
    for (const [description, text, expectedMessage] of rejectedTexts) {
      it(`with ${description} is rejected`, async () => {
        const answer = await wallet.request(accessToken, 'pid', { text });
        expectError(answer, 400, 'invalid_credential_request');
        expect(answer.body.error_description).to.equal(expectedMessage);
      });
    }

    it('with another media type is rejected', async () => {
      const headers = { ...wallet.authorization(accessToken), 'Content-Type': 'text/plain' };
      const answer = await wallet.request(accessToken, 'pid', { text: '{}', headers });
      expectError(answer, 400, 'invalid_credential_request');
    });

    it("gets invalid_nonce for a used, a foreign and another tenant's nonce", async () => {
      const nonce = await wallet.nonce();
      expect((await wallet.request(accessToken, 'pid', { nonce })).status).to.equal(200);
      expectError(await wallet.request(accessToken, 'pid', { nonce }), 400, 'invalid_nonce');
      const foreignNonce = await new RawWallet(service, 'foreign').nonce();
      expectError(await wallet.request(accessToken, 'pid', { nonce: foreignNonce }), 400, 'invalid_nonce');
    });

    it('cannot use another token of the service as an access token', async () => {
      expectError(await wallet.request(token, 'pid', { headers: wallet.authorization(token) }), 401, 'invalid_token');
      const selfSignedToken = makeJwt(wallet.dpopKey, { typ: 'at+jwt', alg: 'ES256', jwk: wallet.dpopKey.jwk }, { iss: wallet.issuer });
      expectError(await wallet.request(selfSignedToken, 'pid', { headers: wallet.authorization(selfSignedToken) }), 401, 'invalid_token');
    });
  });

  describe('documents', () => {
    it('are served at both well-known addresses and contain only what the protocols define', async () => {
      const insertedMetadata = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
      const suffixedMetadata = await service.call('GET', '/acme/.well-known/openid-credential-issuer');
      expect(insertedMetadata.status, insertedMetadata.text).to.equal(200);
      expect(suffixedMetadata.text).to.equal(insertedMetadata.text);
      expect(insertedMetadata.headers.get('content-type')).to.equal('application/json');
      expect(insertedMetadata.body).to.have.keys([
        'credential_issuer',
        'credential_endpoint',
        'nonce_endpoint',
        'credential_request_encryption',
        'credential_response_encryption',
        'deferred_credential_endpoint',
        'notification_endpoint',
        'batch_credential_issuance',
        'display',
        'credential_configurations_supported',
      ]);
      expect(insertedMetadata.body.credential_issuer).to.equal(`${service.address}/acme`);
      expect(insertedMetadata.body.credential_configurations_supported.pid).to.have.keys([
        'format',
        'scope',
        'vct',
        'credential_signing_alg_values_supported',
        'cryptographic_binding_methods_supported',
        'proof_types_supported',
        'credential_metadata',
      ]);
      const server = await service.call('GET', '/.well-known/oauth-authorization-server/acme');
      expect(server.text).to.equal((await service.call('GET', '/acme/.well-known/oauth-authorization-server')).text);
      expect(server.body).to.include({ issuer: `${service.address}/acme`, token_endpoint: `${service.address}/acme/token` });
      expect(insertedMetadata.text + server.text).not.to.match(/null|\[\]/);
    });

    it('return 404 for unknown tenants and accept only reads', async () => {
      for (const path of [
        '/.well-known/openid-credential-issuer/no-such-tenant',
        '/no-such-tenant/.well-known/oauth-authorization-server',
        '/no-such-tenant/credential-offer/x',
        '/acme/credential-offer/x',
        '/acme/vct/nothing',
      ]) {
        expect((await service.call('GET', path)).status, path).to.equal(404);
      }
      expect((await service.call('POST', '/.well-known/openid-credential-issuer/acme')).status).to.equal(405);
      expect((await service.call('GET', '/acme/nonce')).status).to.equal(405);
      expect((await service.call('POST', '/no-such-tenant/nonce')).status).to.equal(404);
    });

    it('contain type metadata for configurations without a configured type', async () => {
      const { vct: _vct, ...without } = CREDENTIAL;
      await service.call('POST', '/issuer/credentials', { token, json: { ...without, id: 'hosted' } });
      const metadata = await service.call('GET', '/acme/.well-known/openid-credential-issuer');
      const { vct } = metadata.body.credential_configurations_supported.hosted;
      expect((await service.call('GET', vct)).body).to.deep.include({ vct, name: 'Person ID' });
    });

    it('include a nonce that no cache stores', async () => {
      const answer = await service.call('POST', '/acme/nonce', { json: { any: 'thing' } });
      expect([answer.status, answer.headers.get('cache-control')]).to.deep.equal([200, 'no-store']);
    });
  });

  it('accepts bearer tokens for five minutes when the tenant does not require DPoP', async () => {
    const { token: admin } = await createTenant(service, 'bearer');
    await service.call('POST', '/issuer/config', { token: admin, json: { display: [{ name: 'B' }], dPopRequired: false } });
    await service.call('POST', '/issuer/credentials', { token: admin, json: CREDENTIAL });
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['pid'] };
    const { uri } = (await service.call('POST', '/issuer/offer', { token: admin, json })).body;
    const bearer = new RawWallet(service, 'bearer');
    const answer = await bearer.redeem(await bearer.code(uri), {}, {});
    expect(answer.body).to.include({ token_type: 'Bearer', expires_in: 300 });
    const credentialResponse = await bearer.request('', 'pid', { headers: { Authorization: `Bearer ${answer.body.access_token}` } });
    expect(credentialResponse.status, credentialResponse.text).to.equal(200);
  });
});
