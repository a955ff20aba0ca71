import { expect } from 'chai';
import { callInParallel } from '../support/raced-services.ts';
import { type HolderKey, keyProof, newKey, type Overrides, RawWallet } from '../support/raw-wallet.ts';
import { certify } from '../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const BATCH = 3;
const LEVELS = { key_storage: ['iso_18045_high'], user_authentication: ['iso_18045_high', 'https://a.example'] };
const CONFIGURATIONS = {
  plain: {},
  attested: { keyAttestationsRequired: LEVELS },
  either: { proofTypes: ['jwt', 'attestation'] },
  unbound: { keyBinding: false },
};
type Id = keyof typeof CONFIGURATIONS;

describe('proofs of holder keys', () => {
  let service: TestService;
  let provider: WalletProvider;
  let token: string;
  let wallet: RawWallet;
  let accessToken: string;
  const keys = [newKey(), newKey(), newKey()] as const;
  const [first, second, third] = keys;

  before(async () => {
    provider = await WalletProvider.start();
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await createTenant(service, 'foreign');
    await configure();
    for (const [id, more] of Object.entries(CONFIGURATIONS)) {
      const json = {
        id,
        config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
        vct: 'urn:card:1',
        claims: { name: 'Ada' },
        ...more,
      };
      const made = await service.call('POST', '/issuer/credentials', { token, json });
      expect(made.status, made.text).to.equal(201);
    }
    wallet = new RawWallet(service, 'acme');
    accessToken = await freshToken();
  });
  after(async () => {
    await service.close();
    await provider.close();
  });

  const configure = async (more: object = {}) => {
    const json = {
      display: [{ name: 'Acme', locale: 'en' }],
      batchSize: BATCH,
      ...provider.configuration(),
      walletAttestationRequired: false,
      ...more,
    };
    expect((await service.call('POST', '/issuer/config', { token, json })).status).to.equal(201);
  };
  const freshToken = async () => {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: Object.keys(CONFIGURATIONS) };
    const offer = await service.call('POST', '/issuer/offer', { token, json });
    expect(offer.status, offer.text).to.equal(201);
    return wallet.accessToken(offer.body.uri);
  };
  const request = (id: Id, proofs: unknown): Promise<Answer> =>
    wallet.request(accessToken, id, { body: { credential_configuration_id: id, proofs } });
  const expectError = (answer: Answer, error: string) => {
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([400, error]);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
  };
  /** The keys that the credentials of an answer are bound to. */
  const boundTo = (answer: Answer): unknown[] => {
    expect(answer.status, answer.text).to.equal(200);
    return answer.body.credentials.map(({ credential }: { credential: string }) => {
      const payload = JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString());
      return payload.cnf?.jwk;
    });
  };
  const jwks = (...some: readonly HolderKey[]) => some.map(({ jwk }) => jwk);
  type Options = NonNullable<Parameters<WalletProvider['keyAttestation']>[1]>;
  const attest = async (options: Options = {}, of: readonly HolderKey[] = keys) =>
    provider.keyAttestation(of, { nonce: await wallet.nonce(), ...options });
  const proof = async (bend: Overrides = {}, key = first) => keyProof(key, wallet.issuer, await wallet.nonce(), bend);
  const withAttestation = async (text: string, key = first) => proof({ header: { key_attestation: text, jwk: key.jwk } }, key);

  describe('the metadata', () => {
    it('contain the accepted proofs of each configuration', async () => {
      const path = '/.well-known/openid-credential-issuer/acme';
      const { credential_configurations_supported: all } = (await service.call('GET', path)).body;
      expect(Object.keys(all.plain.proof_types_supported)).to.deep.equal(['jwt']);
      expect(Object.keys(all.either.proof_types_supported)).to.deep.equal(['jwt', 'attestation']);
      expect(all.attested.proof_types_supported.jwt.key_attestations_required).to.deep.equal(LEVELS);
      expect(all.attested.proof_types_supported.attestation.key_attestations_required).to.deep.equal(LEVELS);
      expect(all.unbound).to.not.have.property('proof_types_supported');
    });
  });

  describe('an attestation', () => {
    it('without a proof gets a credential for each of its keys', async () => {
      for (const id of ['attested', 'either'] as const) {
        expect(boundTo(await request(id, { attestation: [await attest()] }))).to.deep.equal(jwks(...keys));
      }
    });

    it('with a proof gets a credential for each of its keys, starting with that of the proof', async () => {
      const proofs = { jwt: [await withAttestation(await attest(), second)] };
      expect(boundTo(await request('attested', proofs))).to.deep.equal(jwks(second, first, third));
      const unnamed = { jwt: [await proof({ header: { jwk: undefined, key_attestation: await attest() } })] };
      expect(boundTo(await request('attested', unnamed))).to.deep.equal(jwks(...keys));
      const byPlace = { jwk: undefined, kid: '2', key_attestation: await attest() };
      const named = { jwt: [await proof({ header: byPlace }, third)] };
      expect(boundTo(await request('attested', named))).to.deep.equal(jwks(third, first, second));
    });

    it('that was made in advance without a nonce is accepted with proofs, repeatedly', async () => {
      const text = await attest({ payload: { nonce: undefined } });
      for (const key of [first, third]) {
        const answer = await request('attested', { jwt: [await withAttestation(text, key)] });
        expect(boundTo(answer)).to.have.deep.members(jwks(...keys));
      }
    });

    it('of more keys than a batch gets a full batch', async () => {
      const more = [...keys, newKey(), newKey()];
      const answer = await request('attested', { attestation: [await attest({}, more)] });
      expect(boundTo(answer)).to.deep.equal(jwks(...keys));
    });

    it('is verified with a proof even if the configuration does not require it, if the tenant can verify it', async () => {
      const stranger = await certify({ name: 'Wallet Provider', by: await certify({ name: 'Any', ca: true }) });
      const good = { jwt: [await withAttestation(await attest())] };
      expect(boundTo(await request('plain', good))).to.have.length(3);
      const untrusted = async () => ({ jwt: [await withAttestation(await attest({ signer: stranger }))] });
      expectError(await request('plain', await untrusted()), 'invalid_proof');
      await configure({ walletProviderTrustLists: [] });
      expect(boundTo(await request('plain', await untrusted()))).to.deep.equal(jwks(first));
      expectError(await request('attested', good), 'invalid_proof');
      await configure();
    });
  });

  describe('the answer to a credential request', () => {
    type Case = [string, Id, () => Promise<unknown>, string];
    const both = (text: () => Promise<string>): (() => Promise<unknown>)[] => [
      async () => ({ attestation: [await text()] }),
      async () => ({ jwt: [await withAttestation(await text())] }),
    ];
    const bent =
      (options: () => Options | Promise<Options>, of: readonly HolderKey[] = keys) =>
      async () =>
        attest(await options(), of);
    const stranger = async () => certify({ name: 'Wallet Provider', by: await certify({ name: 'Wallet CA', ca: true }) });
    const seconds = () => Math.floor(Date.now() / 1000);
    const attestations: [string, () => Promise<string>, string][] = [
      ['that is signed wrong', bent(() => ({ signer: { ...provider.signer, ...newKey() } })), 'invalid_proof'],
      ['of an untrusted provider', bent(async () => ({ signer: await stranger() })), 'invalid_proof'],
      ['that is signed by itself', bent(async () => ({ signer: await certify({ name: 'Me' }) })), 'invalid_proof'],
      ['without x5c', bent(() => ({ header: { x5c: undefined } })), 'invalid_proof'],
      [
        'with the anchor in x5c',
        bent(() => ({ header: { x5c: [provider.signer.certificate, provider.root.certificate] } })),
        'invalid_proof',
      ],
      ['of the draft typ', bent(() => ({ header: { typ: 'keyattestation+jwt' } })), 'invalid_proof'],
      ['that has expired', bent(() => ({ payload: { exp: seconds() - 70 } })), 'invalid_proof'],
      ['without keys', bent(() => ({ payload: { attested_keys: [] } })), 'invalid_proof'],
      ['with a private key', bent(() => ({ payload: { attested_keys: [{ ...first.jwk, d: 'x' }] } })), 'invalid_proof'],
      ['with a key twice', bent(() => ({}), [first, first]), 'invalid_proof'],
      ['of a lower key_storage', bent(() => ({ payload: { key_storage: ['iso_18045_basic'] } })), 'invalid_proof'],
      ['without key_storage', bent(() => ({ payload: { key_storage: undefined } })), 'invalid_proof'],
      ['of another user_authentication', bent(() => ({ payload: { user_authentication: ['iso_18045_moderate'] } })), 'invalid_proof'],
      ['with an invented nonce', bent(() => ({ nonce: 'invented' })), 'invalid_nonce'],
      ['with the nonce of another tenant', bent(async () => ({ nonce: await new RawWallet(service, 'foreign').nonce() })), 'invalid_nonce'],
      [
        'with an invented nonce and too low a level',
        bent(() => ({ nonce: 'invented', payload: { key_storage: ['iso_18045_basic'] } })),
        'invalid_proof',
      ],
    ];
    const cases: Case[] = [
      ...attestations.flatMap(([what, text, error]) =>
        both(text).map(
          (proofs, index): Case => [`with an attestation ${what}, ${index === 0 ? 'alone' : 'beside a proof'}`, 'attested', proofs, error],
        ),
      ),
      [
        'with an attestation without nonce, alone',
        'attested',
        async () => ({ attestation: [await attest({ payload: { nonce: undefined } })] }),
        'invalid_proof',
      ],
      ['without any proofs', 'attested', async () => undefined, 'invalid_proof'],
      ['without the attestation', 'attested', async () => ({ jwt: [await proof()] }), 'invalid_proof'],
      [
        'with a proof and an attestation that does not expire',
        'attested',
        async () => ({ jwt: [await withAttestation(await attest({ payload: { exp: undefined } }))] }),
        'invalid_proof',
      ],
      [
        'with a proof by a key that is not attested',
        'attested',
        async () => ({ jwt: [await withAttestation(await attest({}, [second, third]))] }),
        'invalid_proof',
      ],
      ['with two attestations', 'attested', async () => ({ attestation: [await attest(), await attest()] }), 'invalid_proof'],
      ['with no attestation in the list', 'attested', async () => ({ attestation: [] }), 'invalid_proof'],
      ['with both proof types', 'attested', async () => ({ jwt: [await proof()], attestation: [await attest()] }), 'invalid_proof'],
      ['with an attestation where only proofs are taken', 'plain', async () => ({ attestation: [await attest()] }), 'invalid_proof'],
      [
        'with a key that is named only',
        'plain',
        async () => ({ jwt: [await proof({ header: { jwk: undefined, kid: 'did:jwk:x#0' } })] }),
        'invalid_proof',
      ],
      [
        'with a key in x5c',
        'plain',
        async () => ({ jwt: [await proof({ header: { jwk: undefined, x5c: [provider.signer.certificate] } })] }),
        'invalid_proof',
      ],
      [
        'with jwk and kid',
        'attested',
        async () => ({ jwt: [await proof({ header: { kid: '0', key_attestation: await attest() } })] }),
        'invalid_proof',
      ],
      [
        'with one key in two spellings',
        'plain',
        async () => {
          const x = Buffer.concat([Buffer.of(0), Buffer.from(first.jwk.x, 'base64url')]).toString('base64url');
          return { jwt: [await proof(), await proof({ header: { jwk: { ...first.jwk, x } } })] };
        },
        'invalid_proof',
      ],
      [
        'with more proofs than a batch',
        'plain',
        async () => ({ jwt: await callInParallel(BATCH + 1, () => proof({}, newKey())) }),
        'invalid_credential_request',
      ],
    ];
    for (const [what, id, proofs, error] of cases) {
      it(`${what} is ${error}`, async () => expectError(await request(id, await proofs()), error));
    }

    it('for a configuration without key binding succeeds, regardless of the proofs', async () => {
      for (const proofs of [undefined, { jwt: ['nonsense'] }, { smoke: true }]) {
        expect(boundTo(await request('unbound', proofs))).to.deep.equal([undefined]);
      }
    });

    it('without a batch accepts one proof', async () => {
      await configure({ batchSize: 1 });
      const two = { jwt: [await proof({}, first), await proof({}, second)] };
      expectError(await request('plain', two), 'invalid_credential_request');
      const answer = await request('attested', { attestation: [await attest()] });
      expect(boundTo(answer)).to.deep.equal(jwks(first));
      await configure();
    });
  });

  describe('a provider that revoked an attestation', () => {
    const revocable = (index: number) => ({ payload: { status: provider.status(index) } });

    it('is called only when everything else is correct', async () => {
      provider.statuses.set(8, 1);
      provider.calls.length = 0;
      const stale = { attestation: [await attest({ ...revocable(8), nonce: 'invented' })] };
      expectError(await request('attested', stale), 'invalid_nonce');
      const wrong = { ...revocable(8), signer: { ...provider.signer, ...newKey() } };
      expectError(await request('attested', { attestation: [await attest(wrong)] }), 'invalid_proof');
      expect(provider.calls).to.not.include('/status/1');

      expect(boundTo(await request('attested', { attestation: [await attest(revocable(7))] }))).to.have.length(3);
      expect(provider.calls).to.include('/status/1');
      expectError(await request('attested', { attestation: [await attest(revocable(8))] }), 'invalid_proof');
      const beside = { jwt: [await withAttestation(await attest(revocable(8)))] };
      expectError(await request('attested', beside), 'invalid_proof');
    });
  });

  describe('a nonce', () => {
    it('is valid for all proofs of one request and for nothing after it', async () => {
      const nonce = await wallet.nonce();
      const text = provider.keyAttestation(keys, { nonce });
      const jwt = [keyProof(first, wallet.issuer, nonce, { header: { key_attestation: text } })];
      expect(boundTo(await request('attested', { jwt }))).to.have.length(3);
      expectError(await request('attested', { jwt }), 'invalid_nonce');
      expectError(await request('attested', { attestation: [text] }), 'invalid_nonce');
      expectError(await request('plain', { jwt: [keyProof(first, wallet.issuer, nonce)] }), 'invalid_nonce');
    });

    it('of an attestation is consumed as well as that of its proof', async () => {
      const [one, other] = [await wallet.nonce(), await wallet.nonce()];
      const text = provider.keyAttestation(keys, { nonce: one });
      const jwt = [keyProof(first, wallet.issuer, other, { header: { key_attestation: text } })];
      expect(boundTo(await request('attested', { jwt }))).to.have.length(3);
      for (const nonce of [one, other]) {
        expectError(await request('plain', { jwt: [keyProof(first, wallet.issuer, nonce)] }), 'invalid_nonce');
      }
    });

    it('stays valid after a request that was rejected for another reason', async () => {
      const nonce = await wallet.nonce();
      const wrong = keyProof(first, wallet.issuer, nonce, { payload: { aud: 'https://other.example' } });
      expectError(await request('plain', { jwt: [wrong] }), 'invalid_proof');
      const right = { jwt: [keyProof(first, wallet.issuer, nonce)] };
      expect(boundTo(await request('plain', right))).to.deep.equal(jwks(first));
    });

    const CALLERS = 30;
    const races: [string, Id, (nonce: string, key: HolderKey) => unknown][] = [
      ['proofs', 'plain', (nonce, key) => ({ jwt: [keyProof(key, wallet.issuer, nonce)] })],
      ['attestations', 'attested', (nonce, key) => ({ attestation: [provider.keyAttestation([key], { nonce })] })],
      [
        'proofs with attestations',
        'attested',
        (nonce, key) => {
          const header = { key_attestation: provider.keyAttestation([key], { nonce }) };
          return { jwt: [keyProof(key, wallet.issuer, nonce, { header })] };
        },
      ],
    ];
    for (const [what, id, proofs] of races) {
      it(`is accepted in one of ${CALLERS} concurrent requests: ${what}`, async () => {
        const nonce = await wallet.nonce();
        const answers = await callInParallel(CALLERS, () => request(id, proofs(nonce, newKey())));
        const late = answers.filter(({ status }) => status !== 200);
        expect(late).to.have.length(CALLERS - 1);
        for (const answer of late) expectError(answer, 'invalid_nonce');
      });
    }
  });
});
