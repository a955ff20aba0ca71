import { expect } from 'chai';
import { renderFailure } from '../../../adapters/http/output/failures.ts';
import { thumbprint } from '../../../domain/shared/jwk.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { certify, pem, WEB_SERVER } from '../../support/test-certificates.ts';
import { PUBLIC_URL } from '../verification/kit.ts';
import { type ClientRequest, ClientWorld, SERVER } from './kit.ts';

let client: ClientWorld;

const seconds = () => client.world.seconds;
const BROKEN = 'invalid_client_attestation';

describe('wallet with an attestation', () => {
  beforeEach(async () => {
    client = await ClientWorld.make();
  });

  it('is identified by its product and its instance key', async () => {
    const { kind, clientId, instance, used } = await client.authenticate();
    expect([kind, clientId]).to.deep.equal(['attested', client.provider.clientId]);
    expect(instance).to.equal(thumbprint(client.instance.jwk as never));
    expect(used.map((value) => value.kind)).to.deep.equal(['client_jti']);
    expect(used[0]?.expiresAt.getTime()).to.be.greaterThan(client.now.getTime() + 300_000);
  });

  it('consumes the same value for the same proof, and another value for another proof', async () => {
    const pop = { payload: { jti: 'one' } };
    const [first] = (await client.authenticate({ pop })).used;
    const [retried] = (await client.authenticate({ pop })).used;
    const [second] = (await client.authenticate()).used;
    expect(first?.hash).to.equal(retried?.hash);
    expect(first?.hash).to.not.equal(second?.hash);
  });

  const acceptedCases: readonly [string, () => ClientRequest][] = [
    ['no client_id', () => ({ form: {} })],
    ['no iss, as in the current draft', () => ({ attestation: { payload: { iss: undefined } }, pop: { payload: { iss: undefined } } })],
    ['aud in an array with one element', () => ({ pop: { payload: { aud: [SERVER] } } })],
    ['a clock 50 seconds ahead', () => ({ pop: { payload: { iat: seconds() + 50 } } })],
    ['a proof from 290 seconds ago', () => ({ pop: { payload: { iat: seconds() - 290 } } })],
    ['unknown claims', () => ({ attestation: { payload: { wallet_colour: 'green' } } })],
    ['no iat in the attestation', () => ({ attestation: { payload: { iat: undefined } } })],
    ['an nbf in the past', () => ({ attestation: { payload: { nbf: seconds() } } })],
    ['an exp 59 seconds ago', () => ({ attestation: { payload: { exp: seconds() - 59 } } })],
    ['a proof that expired 59 seconds ago', () => ({ pop: { payload: { exp: seconds() - 59 } } })],
    ['a proof that expires in a minute', () => ({ pop: { payload: { exp: seconds() + 60 } } })],
  ];
  for (const [description, request] of acceptedCases) {
    it(`is accepted with ${description}`, async () => {
      expect(await client.outcome(request())).to.equal('attested');
    });
  }

  it('is accepted with a CA between its signer and the anchor', async () => {
    const between = await certify({ name: 'Between', by: client.provider.root, ca: true });
    const signer = await certify({ name: 'Below', by: between });
    const x5c = [signer.certificate, between.certificate];
    expect(await client.outcome({ attestation: { signer, header: { x5c } } })).to.equal('attested');
    expect(await client.outcome({ attestation: { signer } })).to.equal(BROKEN);
  });

  const attestation = (payload: object, header: object = {}): ClientRequest => ({
    attestation: { payload: { ...payload }, header: { ...header } },
  });
  const pop = (payload: object, header: object = {}): ClientRequest => ({ pop: { payload: { ...payload }, header: { ...header } } });
  const rejectedRequests: readonly [string, () => ClientRequest | Promise<ClientRequest>][] = [
    ['two attestations', () => ({ fields: { attestation: ['a.b.c', 'a.b.c'] } })],
    [
      'the same attestation twice',
      () => {
        const [text = ''] = client.credentials().attestation;
        return { fields: { attestation: [text, text] } };
      },
    ],
    ['an overlong attestation', () => attestation({ wallet_colour: 'g'.repeat(16_384) })],
    ['no proof of possession', () => ({ fields: { attestationPop: [] } })],
    ['a proof of possession alone', () => ({ fields: { attestation: [] } })],
    ['an attestation that is not a JWT', () => ({ fields: { attestation: ['nonsense'] } })],
    ['typ JWT', () => attestation({}, { typ: 'JWT' })],
    ['a critical header that is unknown', () => attestation({}, { crit: ['x'], x: 1 })],
    ['alg none', () => attestation({}, { alg: 'none' })],
    ['alg of another key', () => attestation({}, { alg: 'ES384' })],
    ['no x5c', () => attestation({}, { x5c: undefined })],
    ['x5c that is not a list', () => attestation({}, { x5c: 'text' })],
    [
      'its anchor in x5c',
      () => {
        const { signer, root } = client.provider;
        return attestation({}, { x5c: [signer.certificate, root.certificate] });
      },
    ],
    ['a self-signed signer', async () => ({ attestation: { signer: await certify({ name: 'Wallet Provider' }) } })],
    [
      'a signer that expired',
      async () => ({ attestation: { signer: await certify({ name: 'Old', by: client.provider.root, until: '2026-05-01T00:00:00Z' }) } }),
    ],
    [
      'a signer that is a web server of the provider',
      async () => ({ attestation: { signer: await certify({ name: 'Web', by: client.provider.root, purposes: [WEB_SERVER] }) } }),
    ],
    [
      'a signer with an unreadable expiry',
      async () => ({
        attestation: { signer: await certify({ name: 'Endless', by: client.provider.root, validity: { notAfter: '271399000000Z' } }) },
      }),
    ],
    ['a signer of the revocation service', () => ({ attestation: { signer: client.provider.revocationSigner } })],
    ['the certificate of another key', () => ({ attestation: { signer: { ...client.provider.signer, ...newKey() } } })],
    ['no sub', () => attestation({ sub: undefined })],
    ...[undefined, '', 7, 'x'.repeat(501)].map((sub): [string, () => ClientRequest] => [
      `${String(sub).slice(0, 10)} as sub, without another reason`,
      () => ({ ...attestation({ sub }), ...pop({ iss: undefined }), form: {} }),
    ]),
    ['no cnf', () => attestation({ cnf: undefined })],
    ['a private key in cnf', () => attestation({ cnf: { jwk: { ...client.instance.jwk, d: 'AAAA' } } })],
    ['an encrypted key in cnf', () => attestation({ cnf: { jwk: client.instance.jwk, jwe: 'x' } })],
    ['an address of keys in cnf', () => attestation({ cnf: { jwk: client.instance.jwk, jku: 'https://x' } })],
    ['no exp', () => attestation({ exp: undefined })],
    ['an exp 60 seconds ago', () => attestation({ exp: seconds() - 60 })],
    ['an nbf in the future', () => attestation({ nbf: seconds() + 120 })],
    ['an nbf that is not a number', () => attestation({ nbf: 'soon' })],
    ['an nbf that is a text', () => attestation({ nbf: `${seconds()}` })],
    ['an iat that is not a number', () => attestation({ iat: 'soon' })],
    ['an iat in the future', () => attestation({ iat: seconds() + 120 })],
    ['another client_id', () => ({ form: { client_id: 'https://other.example' } })],
    [
      'a proof by another key',
      () => {
        const text = client.provider.pop(newKey(), SERVER, { challenge: client.challenge() });
        return { fields: { attestationPop: [text] } };
      },
    ],
    ['a proof by alg none', () => pop({}, { alg: 'none' })],
    ['a proof by HS256', () => pop({}, { alg: 'HS256' })],
    ['a proof of the typ JWT', () => pop({}, { typ: 'JWT' })],
    ['a proof for the token endpoint', () => pop({ aud: `${SERVER}/token` })],
    ['a proof for two servers', () => pop({ aud: [SERVER, 'https://other.example'] })],
    ['a proof for the chained server', () => pop({ aud: `${SERVER}/chained-as` })],
    ['a proof without aud', () => pop({ aud: undefined })],
    ['a proof of another client', () => pop({ iss: 'https://other.example' })],
    ['a proof that is valid in two minutes', () => pop({ nbf: seconds() + 120 })],
    ['a proof whose beginning is not a number', () => pop({ nbf: 'soon' })],
    ['a proof without jti', () => pop({ jti: undefined })],
    ['a proof with an empty jti', () => pop({ jti: '' })],
    ['a proof whose jti is too long', () => pop({ jti: 'x'.repeat(257) })],
    ['a proof without iat', () => pop({ iat: undefined })],
    ['a proof from ten minutes ago', () => pop({ iat: seconds() - 600 })],
    ['a proof with a time in the future', () => pop({ iat: seconds() + 61 })],
    ['a proof that expired 60 seconds ago', () => pop({ exp: seconds() - 60 })],
    ['a proof whose exp is not a number', () => pop({ exp: 'never' })],
  ];
  for (const [description, request] of rejectedRequests) {
    it(`is rejected with ${description}`, async () => {
      expect(await client.outcome(await request())).to.equal(BROKEN);
    });
  }

  it('is rejected with an invalid signature', async () => {
    const [text = ''] = client.credentials().attestation;
    const [header, payload, signature = ''] = text.split('.');
    const forged = `${header}.${payload}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`;
    expect(await client.outcome({ fields: { attestation: [forged] } })).to.equal(BROKEN);
  });

  it('is rejected with an algorithm that the tenant does not allow', async () => {
    client.configure({ algorithms: ['ES256'] });
    expect(await client.outcome()).to.equal('attested');
    client.configure({ algorithms: ['ES384'] });
    expect(await client.outcome()).to.equal(BROKEN);
  });

  it('is rejected when it sends an assertion too', async () => {
    expect(await client.outcome({ form: { client_assertion: 'a.b.c' } })).to.equal('invalid_client');
  });

  it('is rejected under the name of a client that is registered with its own key', async () => {
    const registered = { client_id: client.provider.clientId, jwks: { keys: [newKey().jwk] } };
    client.configure({ walletClients: [registered] });
    expect(await client.outcome()).to.equal('invalid_client');
  });

  describe('and its challenge', () => {
    const CODE = 'use_attestation_challenge';

    it('is required, and returned with the error', async () => {
      const { code, details } = await client.failure({ pop: { payload: { challenge: undefined } } });
      expect(code).to.equal(CODE);
      expect(details.attestationChallenge).to.match(/^[A-Za-z0-9_-]{16,512}$/);
      const challenge = details.attestationChallenge ?? '';
      expect(await client.outcome({ pop: { challenge } })).to.equal('attested');
    });

    it('is in a header field of the error response', async () => {
      const failure = await client.failure({ pop: { payload: { challenge: undefined } } });
      const { status, headers, body } = renderFailure(failure, { surface: 'oauth' }, 'request');
      expect([status, (body as { error: string }).error]).to.deep.equal([400, CODE]);
      const challenge = headers['OAuth-Client-Attestation-Challenge'] ?? '';
      expect(await client.outcome({ pop: { challenge } })).to.equal('attested');
    });

    it('is returned with a DPoP nonce if the tenant requires nonces', async () => {
      const failure = await client.failure({ pop: { payload: { challenge: undefined } } });
      expect(renderFailure(failure, { surface: 'oauth' }, 'request').headers['DPoP-Nonce']).to.match(/^[A-Za-z0-9_-]{16,512}$/);
      client.configure({ dPopNonce: 'off' });
      const { details } = await client.failure({ pop: { payload: { challenge: undefined } } });
      expect(details).to.not.have.property('dpopNonce');
    });

    describe('that the tenant makes optional', () => {
      beforeEach(() => client.configure({ attestationChallenge: 'optional' }));
      const without = (payload: object = {}) => client.outcome({ pop: { payload: { challenge: undefined, ...payload } } });

      it('may be absent when iat is recent', async () => {
        expect(await without()).to.equal('attested');
        expect(await without({ iat: seconds() - 300 })).to.equal('attested');
        for (const iat of [seconds() - 301, seconds() + 61, undefined]) expect(await without({ iat })).to.equal(BROKEN);
      });

      it('requires a jti, which is consumed', async () => {
        for (const jti of [undefined, '', 5]) expect(await without({ jti })).to.equal(BROKEN);
        const { used } = await client.authenticate({ pop: { payload: { challenge: undefined } } });
        expect(used.map(({ kind }) => kind)).to.deep.equal(['client_jti']);
      });

      it('is verified if it is present', async () => {
        for (const challenge of ['x'.repeat(43), '', client.challenge(PUBLIC_URL), 7, null])
          expect(await client.outcome({ pop: { payload: { challenge } } })).to.equal(CODE);
        expect(await client.outcome()).to.equal('attested');
      });
    });

    it('may be used again for 300 seconds', async () => {
      const challenge = client.challenge();
      expect(await client.outcome({ pop: { challenge } })).to.equal('attested');
      client.world.clock.time += 299_000;
      expect(await client.outcome({ pop: { challenge } })).to.equal('attested');
      client.world.clock.time += 1_000;
      expect(await client.outcome({ pop: { challenge } })).to.equal(CODE);
    });

    it('is rejected when it is invented or of another server', async () => {
      const foreignChallenges = [client.challenge(`${SERVER}/chained-as`), client.challenge(PUBLIC_URL), 'x'.repeat(43), ''];
      for (const challenge of foreignChallenges) expect(await client.outcome({ pop: { challenge } })).to.equal(CODE);
      expect(await client.outcome({ pop: { payload: { challenge: 7 } } })).to.equal(CODE);
    });

    it('is not issued to a wallet whose signatures are invalid', async () => {
      const text = client.provider.pop(newKey(), SERVER);
      expect(await client.outcome({ fields: { attestationPop: [text] } })).to.equal(BROKEN);
    });
  });

  describe('and the age of its attestation', () => {
    beforeEach(() => {
      client.configure({ attestationMaxAgeSeconds: 600 });
    });

    it('may be at most the limit of the tenant', async () => {
      expect(await client.outcome(attestation({ iat: seconds() - 600 }))).to.equal('attested');
    });
    it('must not exceed the limit, although the attestation has not expired', async () => {
      expect(await client.outcome(attestation({ iat: seconds() - 601 }))).to.equal('use_fresh_attestation');
    });
    it('must be known', async () => {
      expect(await client.outcome(attestation({ iat: undefined }))).to.equal('use_fresh_attestation');
    });
  });

  describe('and its status', () => {
    const authenticateWith = (index = 3) => client.outcome({ attestation: { payload: { status: client.provider.status(index) } } });
    const statusRequests = () => client.world.remote.calls.filter(({ url }) => url.includes('/status/'));

    it('may be valid', async () => {
      expect(await authenticateWith()).to.equal('attested');
      expect(statusRequests()).to.have.length(1);
    });
    for (const [status, description] of [
      [1, 'revoked'],
      [2, 'suspended'],
      [3, 'unknown'],
    ] as const) {
      it(`must not be ${description}`, async () => {
        client.provider.statuses.set(3, status);
        expect(await authenticateWith()).to.equal(BROKEN);
      });
    }
    it('must be present', async () => {
      const { answer } = client.world.remote;
      client.world.remote.answer = (url) =>
        url.includes('/status/') ? { status: 500, contentType: '', body: Buffer.alloc(0) } : answer(url);
      expect(await authenticateWith()).to.equal(BROKEN);
    });
    for (const [description, status] of [
      ['is not an object', 'revoked'],
      ['is of an unknown type', { lamp: 'green' }],
      ['is out of the list', { status_list: { idx: 5000, uri: 'https://wallet-provider.example/status/1' } }],
    ] as const) {
      it(`is rejected when it ${description}`, async () => {
        expect(await client.outcome(attestation({ status }))).to.equal(BROKEN);
      });
    }
    it('is accepted only from the revocation service of the same entity', async () => {
      for (const signer of [client.provider.signer, await certify({ name: 'Other', by: client.provider.root })]) {
        client.provider.statusSigner = [signer];
        client.world.remoteStatusLists.clear('acme');
        expect(await authenticateWith()).to.equal(BROKEN);
      }
    });
    it('may come from the provider itself when its entity has no revocation service', async () => {
      const [entity] = [client.provider.entity()];
      const services = entity.services.slice(0, 1);
      client.provider.published = client.provider.list({ entities: [{ ...entity, services }] });
      client.provider.statusSigner = [client.provider.signer];
      expect(await authenticateWith()).to.equal('attested');
      client.provider.statusSigner = [client.provider.revocationSigner];
      client.world.remoteStatusLists.clear('acme');
      expect(await authenticateWith()).to.equal(BROKEN);
    });
    it('is fetched only after all other checks', async () => {
      const status = client.provider.status(3);
      const forged = { ...client.provider.signer, ...newKey() };
      await client.outcome({ attestation: { signer: forged, payload: { status } } });
      await client.outcome({ attestation: { payload: { status, exp: seconds() - 60 } } });
      await client.outcome({ attestation: { payload: { status } }, pop: { challenge: 'wrong' } });
      expect(statusRequests()).to.have.length(0);
    });
  });

  describe('and its provider', () => {
    it('is rejected when no list names it', async () => {
      client.provider.published = client.provider.list({ entities: [] });
      expect(await client.outcome()).to.equal(BROKEN);
    });
    it('is rejected with the reason if attestations are required and no list is configured', async () => {
      client.configure({ walletProviderTrustLists: [], walletAttestationRequired: true });
      const { code, message } = await client.failure();
      expect(code).to.equal(BROKEN);
      expect(message).to.include('no trust list of wallet providers configured');
      expect(client.world.remote.calls).to.have.length(0);
    });
    it('is ignored if attestations are optional and no list is configured', async () => {
      client.configure({ walletProviderTrustLists: [], walletAttestationRequired: false });
      expect(await client.outcome()).to.equal('public');
      expect(client.world.remote.calls).to.have.length(0);
    });
    it('is rejected if no pinned certificate signs the list', async () => {
      client.configure({ walletProviderTrustListCertificates: [] });
      expect(await client.outcome()).to.equal(BROKEN);
      client.configure({ walletProviderTrustListCertificates: [pem(await certify({ name: 'Other CA' }))] });
      expect(await client.outcome()).to.equal(BROKEN);
    });
    it('is rejected when its list is unavailable', async () => {
      client.provider.published = undefined;
      const { code, message } = await client.failure();
      expect(code).to.equal(BROKEN);
      expect(message).to.include('not every trust list is available');
    });
    it('is accepted when one of several lists names it and another one is unavailable', async () => {
      const lists = [`${client.provider.url}/gone`, `${client.provider.url}/lote`];
      client.configure({ walletProviderTrustLists: lists });
      expect(await client.outcome()).to.equal('attested');
    });
    it('is accepted when its own certificate is listed, and another one of its CA is rejected', async () => {
      const { signer, root } = client.provider;
      const services = [{ type: 'WalletProvider', certificates: [signer.certificate] }];
      client.provider.published = client.provider.list({ entities: [{ name: 'Pinned', services }] });
      expect(await client.outcome()).to.equal('attested');
      const second = await certify({ name: 'Other', by: root });
      expect(await client.outcome({ attestation: { signer: second } })).to.equal(BROKEN);
    });
  });
});

describe('wallet without client authentication', () => {
  const fields = { attestation: [], attestationPop: [] };

  beforeEach(async () => {
    client = await ClientWorld.make();
  });

  it('is rejected when attestations are required', async () => {
    expect(await client.outcome({ fields })).to.equal('invalid_client');
    expect(await client.outcome({ fields, form: {} })).to.equal('invalid_client');
  });
  it('is public or anonymous when attestations are not required', async () => {
    client.configure({ walletAttestationRequired: false });
    const authenticated = await client.authenticate({ fields, form: { client_id: 'public-client' } });
    expect(authenticated).to.deep.equal({ kind: 'public', clientId: 'public-client', used: [] });
    expect(await client.outcome({ fields, form: {} })).to.equal('anonymous');
  });
  it('is rejected with a name that is too long', async () => {
    client.configure({ walletAttestationRequired: false });
    expect(await client.outcome({ fields, form: { client_id: 'x'.repeat(501) } })).to.equal('invalid_request');
  });
  it('is verified if it sends an optional attestation', async () => {
    client.configure({ walletAttestationRequired: false });
    expect(await client.outcome()).to.equal('attested');
    expect(await client.outcome({ pop: { payload: { aud: 'x' } } })).to.equal(BROKEN);
  });
});
