import { expect } from 'chai';
import sinon from 'sinon';
import { ConfigurationCache } from '../../../application/tenant-cache/configuration-cache.ts';
import { OperatorReason } from '../../../domain/shared/failure.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { AttestedWallet, anOffer, failureOf, outcomeOf, WalletWorld } from '../wallet-kit.ts';
import { ClientWorld } from './kit.ts';

const BROKEN = 'invalid_client_attestation';
const UPSTREAM = { issuer: 'https://login.example', clientId: 'vidimus', clientSecret: 'secret' };

describe('status of a wallet attestation', () => {
  let world: WalletWorld;
  let wallet: AttestedWallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = await AttestedWallet.make(world);
    await world.putIssuance(configuration());
  });
  const configuration = () => ({
    ...wallet.provider.configuration(),
    builtInAs: { walletInitiated: true },
    chainedAs: { enabled: true, upstream: UPSTREAM },
  });
  beforeEach(() => {
    wallet.provider.statuses.clear();
    wallet.attestationClaims = { client_status: { status: wallet.provider.status(3), exp: world.seconds + 2_678_400 } };
    wallet.world.remoteStatusLists.clear('acme');
  });

  const statusLocations: readonly [string, (status: object) => object][] = [
    ['client_status', (status) => ({ client_status: { status, exp: world.seconds + 60 } })],
    ['client_status without an expiry', (status) => ({ client_status: { status } })],
    ['key_storage_status', (status) => ({ key_storage_status: { status } })],
    ['status', (status) => ({ status })],
  ];
  for (const [location, buildClaims] of statusLocations) {
    it(`is checked in ${location}`, async () => {
      wallet.attestationClaims = { ...buildClaims(wallet.provider.status(5)) };
      expect(await outcomeOf(wallet.push())).to.equal('done');
      wallet.provider.statuses.set(5, 1);
      world.remoteStatusLists.clear('acme');
      const { code, message, cause } = await failureOf(wallet.push());
      expect([code, message]).to.deep.equal([BROKEN, 'the wallet attestation is revoked']);
      expect(cause).to.be.instanceOf(OperatorReason);
      expect((cause as Error).message)
        .to.include('status_revoked')
        .and.to.include('entry 5 of');
    });
  }

  it('is checked in each property that contains one', async () => {
    wallet.attestationClaims = {
      status: wallet.provider.status(1),
      client_status: { status: wallet.provider.status(2) },
      key_storage_status: { status: wallet.provider.status(3) },
    };
    for (const index of [1, 2, 3]) {
      wallet.provider.statuses.clear();
      expect(await outcomeOf(wallet.push())).to.equal('done');
      wallet.provider.statuses.set(index, 2);
      world.remoteStatusLists.clear('acme');
      expect(await outcomeOf(wallet.push()), String(index)).to.equal(BROKEN);
      world.remoteStatusLists.clear('acme');
    }
  });

  it('is checked at every endpoint, before anything is consumed', async () => {
    const offer = await anOffer(world);
    const code = await wallet.approve(await wallet.push());
    const redeemed = await wallet.redeem((await anOffer(world)).code);
    const chained = () => wallet.push({}, { server: 'chained' });
    const interactive = () =>
      world.interactiveAuthorization.execute(wallet.tenantId, wallet.createOAuthRequest('interactive-authorization', { scope: 'card' }));
    const steps = () =>
      [
        ['the request', () => wallet.push()],
        ['the chained server', chained],
        ['interactive authorization', interactive],
        ['a pre-authorized code', () => wallet.redeem(offer.code)],
        ['an authorization code', () => wallet.redeemCode(code)],
        ['a refresh token', () => wallet.refresh(redeemed.body.refresh_token)],
      ] as const;
    const setStatus = async (status: number) => {
      wallet.provider.statuses.set(3, status);
      world.remoteStatusLists.clear('acme');
      for (const [description, run] of steps()) expect(await outcomeOf(run()), description).to.equal(BROKEN);
    };
    await setStatus(1);
    await setStatus(2);
    const { answer } = world.remote;
    world.remote.answer = (url) => (url.includes('/status/') ? { status: 503, contentType: '', body: Buffer.alloc(0) } : answer(url));
    await setStatus(0);
    world.remote.answer = answer;
    world.remoteStatusLists.clear('acme');
    const checkedSteps = steps().filter(([description]) => description !== 'interactive authorization');
    for (const [description, run] of checkedSteps) expect(await outcomeOf(run()), description).to.equal('done');
  });

  it('is checked for an attestation that is optional', async () => {
    await world.putIssuance({ ...configuration(), walletAttestationRequired: false });
    wallet.provider.statuses.set(3, 1);
    expect(await outcomeOf(wallet.push())).to.equal(BROKEN);
    await world.putIssuance(configuration());
  });

  it('causes no request when it is absent', async () => {
    wallet.attestationClaims = {};
    const before = wallet.statusListRequests;
    expect(await outcomeOf(wallet.push())).to.equal('done');
    expect(wallet.statusListRequests).to.equal(before);
  });

  it('changes with the list, also for a recently accepted attestation', async () => {
    const requestUri = await wallet.push();
    const code = await wallet.approve(requestUri);
    wallet.provider.statuses.set(3, 1);
    // The list may be cached for one minute.
    await world.afterSeconds(61, async () => {
      expect(await outcomeOf(wallet.redeemCode(code))).to.equal(BROKEN);
      expect(await outcomeOf(wallet.push())).to.equal(BROKEN);
    });
  });

  const unusable: readonly [string, () => object][] = [
    ['is not an object', () => ({ client_status: 'valid' })],
    ['is null', () => ({ client_status: null })],
    ['is a list', () => ({ client_status: [] })],
    ['names no entry', () => ({ client_status: {} })],
    ['has an expiry but no entry', () => ({ client_status: { exp: world.seconds + 60 } })],
    ['is of a kind that is unknown', () => ({ client_status: { status: { lamp: 'green' } } })],
    ['has a negative index', () => ({ client_status: { status: listWith({ idx: -1 }) } })],
    ['has an index that is a text', () => ({ client_status: { status: listWith({ idx: '3' }) } })],
    ['is outside the list', () => ({ client_status: { status: wallet.provider.status(5_000) } })],
    ['has an address that is invalid', () => ({ client_status: { status: listWith({ uri: 'list' }) } })],
    ['leads to another list', () => ({ client_status: { status: listWith({ uri: 'https://x.example/1' }) } })],
    ['is no longer stored', () => ({ client_status: { status: listWith({}), exp: world.seconds } })],
    ['has an invalid expiry', () => ({ client_status: { status: listWith({}), exp: 'never' } })],
    ['is invalid beside a valid one', () => ({ client_status: {}, status: wallet.provider.status(3) })],
    ['has another invalid property', () => ({ ...wallet.attestationClaims, key_storage_status: {} })],
  ];
  const listWith = (changes: object) => {
    const { status_list: list } = wallet.provider.status(3) as { status_list: object };
    return { status_list: { ...list, ...changes } };
  };
  for (const [description, buildClaims] of unusable) {
    it(`rejects the wallet when it ${description}`, async () => {
      wallet.attestationClaims = { ...buildClaims() };
      const { code, message } = await failureOf(wallet.push());
      expect([code, message]).to.deep.equal([BROKEN, 'the wallet attestation has a status that cannot be determined']);
    });
  }

  it('may be in an entry beyond the end of the cached list', async () => {
    const push = async (index: number) => {
      wallet.attestationClaims = { client_status: { status: wallet.provider.status(index) } };
      return outcomeOf(wallet.push());
    };
    expect(await push(3)).to.equal('done');
    wallet.provider.capacity = 200;
    try {
      const before = wallet.statusListRequests;
      expect(await push(150), 'fetched within the cache time').to.equal(BROKEN);
      expect(wallet.statusListRequests).to.equal(before);
      await world.afterSeconds(11, async () => {
        expect(await push(150)).to.equal('done');
        expect(wallet.statusListRequests).to.equal(before + 1);
        expect(await push(199)).to.equal('done');
        expect(await push(200), 'not again within seconds').to.equal(BROKEN);
        expect(wallet.statusListRequests).to.equal(before + 1);
      });
      wallet.provider.statuses.set(150, 1);
      await world.afterSeconds(80, async () => expect(await push(150)).to.equal(BROKEN));
      const { answer } = world.remote;
      world.remote.answer = (url) => (url.includes('/status/') ? { status: 503, contentType: '', body: Buffer.alloc(0) } : answer(url));
      await world.afterSeconds(100, async () => expect(await push(250), 'cannot be had').to.equal(BROKEN));
      world.remote.answer = answer;
    } finally {
      wallet.provider.capacity = 100;
    }
  });

  it('is fetched only for a valid attestation', async () => {
    const before = wallet.statusListRequests;
    const forged = { ...wallet.provider.signer, ...newKey() };
    const { attestationPop } = wallet.attestationHeaders();
    const attestation = [wallet.provider.attestation(wallet.instance, { signer: forged, payload: wallet.attestationClaims })];
    expect(await outcomeOf(wallet.push({}, { request: { attestation, attestationPop } }))).to.equal(BROKEN);
    expect(wallet.statusListRequests).to.equal(before);
  });

  it('is not read from a list of another provider or at another address', async () => {
    wallet.provider.statusSigner = [wallet.provider.signer];
    expect(await outcomeOf(wallet.push()), 'its issuer, although its entity names who revokes').to.equal(BROKEN);
    wallet.provider.statusSigner = [wallet.provider.revocationSigner];
    world.remoteStatusLists.clear('acme');
    // The list of /status/1 at another address, which its sub contradicts.
    const { answer } = world.remote;
    world.remote.answer = (url) => answer(url.replace('/status/2', '/status/1'));
    wallet.attestationClaims = { client_status: { status: listWith({ uri: `${wallet.provider.url}/status/2` }) } };
    expect(await outcomeOf(wallet.push())).to.equal(BROKEN);
    world.remote.answer = answer;
  });
});

describe('status of a key attestation', () => {
  let world: WalletWorld;
  let wallet: AttestedWallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = await AttestedWallet.make(world);
    await world.putIssuance({ ...wallet.provider.configuration(), batchSize: 2 });
    await world.putCredential({ id: 'card', keyAttestationsRequired: {} });
  });
  beforeEach(() => {
    wallet.provider.statuses.clear();
    world.remoteStatusLists.clear('acme');
  });

  const attestKey = async (buildClaims: object) => {
    const [key, nonce] = [newKey(), await wallet.nonce()];
    const text = wallet.provider.keyAttestation([key], { nonce, payload: { ...buildClaims } });
    const jwt = wallet.keyProof(nonce, { header: { key_attestation: text } }, key);
    return { jwt: { jwt: [jwt] }, attestation: { attestation: [text] } };
  };
  const token = async () => wallet.token(await anOffer(world));

  for (const type of ['jwt', 'attestation'] as const) {
    it(`rejects a proof of type ${type} with revoked keys, and consumes nothing`, async () => {
      for (const location of ['key_storage_status', 'client_status']) {
        const proofs = (await attestKey({ [location]: { status: wallet.provider.status(7) } }))[type];
        const bearer = await token();
        for (const status of [1, 2, 3]) {
          wallet.provider.statuses.set(7, status);
          world.remoteStatusLists.clear('acme');
          const { code } = await failureOf(wallet.issue(bearer, { proofs }));
          expect(code).to.equal('invalid_proof');
        }
        wallet.provider.statuses.clear();
        world.remoteStatusLists.clear('acme');
        const { credentials } = await wallet.issue(bearer, { proofs });
        expect(credentials).to.have.length(1);
      }
    });
  }

  it('rejects a status that cannot be checked', async () => {
    for (const buildClaims of [{}, { status: { other: 1 } }, { status: wallet.provider.status(7), exp: 1 }, 'x']) {
      const proofs = (await attestKey({ key_storage_status: buildClaims })).jwt;
      const { code, message } = await failureOf(wallet.issue(await token(), { proofs }));
      expect([code, message]).to.deep.equal(['invalid_proof', 'the key attestation has a status that cannot be determined']);
    }
  });
});

// Parsing certificates is the most expensive part of evaluating a trusted provider.
describe('wallet providers on trust lists', () => {
  it('are collected once for all requests of a configuration, and again for another one', async () => {
    const client = await ClientWorld.make();
    const { certificates } = client.world;
    const validate = sinon.spy(certificates, 'verifyChain');
    const memory = new ConfigurationCache();
    const { attestation = '' } = client.credentials();
    const [header = ''] = String(attestation).split('.');
    const { x5c } = JSON.parse(Buffer.from(header, 'base64url').toString());
    const anchorsOf = async (cache: ConfigurationCache) => {
      const tenant = client.configure({}, null, cache);
      const verdict = await client.walletProviderTrust.verify(tenant, x5c, client.now);
      expect(verdict.trusted).to.equal(true);
      const [, anchors] = validate.lastCall.args;
      return anchors;
    };
    const first = await anchorsOf(memory);
    expect(await anchorsOf(memory)).to.equal(first);
    expect(await anchorsOf(new ConfigurationCache())).to.not.equal(first);
  });
});
