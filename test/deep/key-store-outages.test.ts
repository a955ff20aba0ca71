import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import {
  type CannedResponse,
  describeWithOpenBao,
  type OpenBao,
  type OpenBaoProxy,
  type ProxiedCall,
  startOpenBao,
  startOpenBaoProxy,
  VaultProxy,
  waitUntil,
} from '../support/openbao.ts';
import { type HolderKey, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

/** An outage of a key provider and its end. */
type Outage = { readonly description: string; begin(): Promise<void> | void; end(): Promise<void> | void };

describeWithOpenBao('key provider that fails', (binary) => {
  let vault: OpenBao;
  let proxy: VaultProxy;
  let service: TestService;
  let token: string;
  let otherToken: string;

  before(async () => {
    vault = await startOpenBao(binary);
    proxy = await VaultProxy.startInFrontOf(vault.address);
    const auth = await vault.appRole();
    const vaultProvider = { ...(await vault.settings({ address: proxy.address, auth, timeoutSeconds: 0.5 })), type: 'vault' };
    const KMS_CONFIG = JSON.stringify({ providers: { local: { type: 'local' }, house: vaultProvider }, tenants: { acme: 'house' } });
    service = await startTestService({ KMS_CONFIG });
    ({ token } = await createTenant(service, 'acme'));
    ({ token: otherToken } = await createTenant(service, 'other'));
    for (const tenantToken of [token, otherToken]) {
      await post(tenantToken, '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }], refreshTokenSeconds: 86_400 });
      await post(tenantToken, '/issuer/credentials', {
        id: 'card',
        config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
        vct: 'urn:card:1',
        claims: { name: 'Ada' },
        statusManagement: true,
      });
      await post(tenantToken, '/verifier/config', {
        id: 'who',
        dcql_query: { credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:card:1'] } }] },
      });
    }
    // The first status list needs a signature, too.
    await issueCredential(token, 'acme');
    await issueCredential(otherToken, 'other');
  });
  after(async () => {
    await service?.close();
    await proxy?.close();
    await vault?.stop();
  });

  const post = async (tenantToken: string, path: string, json: object) => {
    const answer = await service.call('POST', path, { token: tenantToken, json });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const offer = (tenantToken: string) =>
    post(tenantToken, '/issuer/offer', { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] });
  const issueCredential = async (tenantToken: string, tenant: string) => {
    const wallet = new RawWallet(service, tenant);
    const answer = await wallet.request(await wallet.accessToken((await offer(tenantToken)).uri), 'card');
    expect(answer.status, answer.text).to.equal(200);
    return answer;
  };
  const expectWorking = () =>
    waitUntil(async () => {
      const wallet = new RawWallet(service, 'acme');
      return (await wallet.redeem(await wallet.code((await offer(token)).uri))).status === 200;
    });
  const health = async () => service.call('GET', '/health');
  const statusIndex = (answer: Answer) => {
    const [jwt = ''] = answer.body.credentials[0].credential.split('~');
    return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()).status.status_list.idx;
  };
  /** Expects 503 with Retry-After and no detail. */
  const expectRetryAfter = (answer: Answer) => {
    expect(answer.status, answer.text).to.equal(503);
    expect(answer.body.error).to.equal('temporarily_unavailable');
    expect(Number(answer.headers.get('retry-after'))).to.be.within(1, 60);
    expect(answer.text).to.not.match(/vault|127\.0\.0\.1|token|house/i);
  };

  const outages: readonly Outage[] = [
    { description: 'is sealed', begin: () => vault.seal(), end: () => vault.unseal() },
    { description: 'is killed', begin: () => vault.kill(), end: () => vault.restart() },
    { description: 'answers after ten seconds', begin: () => proxy.setMode('late'), end: () => proxy.setMode('pass') },
    {
      description: 'is cut off',
      begin: () => {
        proxy.mode = 'cut';
        proxy.cutConnections();
      },
      end: () => proxy.setMode('pass'),
    },
    {
      description: 'never answers',
      begin: () => proxy.setMode('hang'),
      end: () => {
        proxy.mode = 'pass';
        proxy.cutConnections();
      },
    },
  ];

  for (const { description: what, begin, end } of outages) {
    it(`delays requests, but loses nothing, when it ${what}`, async () => {
      await expectWorking();
      const wallet = new RawWallet(service, 'acme');
      const code = await wallet.code((await offer(token)).uri);
      // A wallet that already has an access token, a nonce and a proof.
      const authorizedWallet = new RawWallet(service, 'acme');
      const accessToken = await authorizedWallet.accessToken((await offer(token)).uri);
      const key: HolderKey = newKey();
      const nonce = await authorizedWallet.nonce();
      const proof = keyProof(key, authorizedWallet.issuer, nonce);
      const requestCredential = () =>
        authorizedWallet.request(accessToken, 'card', { body: { credential_configuration_id: 'card', proofs: { jwt: [proof] } } });
      const indexBefore = statusIndex(await issueCredential(token, 'acme'));

      await begin();
      try {
        expectRetryAfter(await wallet.redeem(code));
        expectRetryAfter(await requestCredential());
        // A presentation request is not created, and no session remains.
        const offerResponse = await service.call('POST', '/verifier/offer', { token, json: { response_type: 'uri', requestId: 'who' } });
        expect(offerResponse.status, offerResponse.text).to.equal(503);
        // Other tenants continue, and the health report shows the reason.
        await issueCredential(otherToken, 'other');
        await waitUntil(async () => (await health()).body.status === 'degraded');
        const healthResponse = await health();
        expect(healthResponse.status, healthResponse.text).to.equal(200);
        expect(healthResponse.body.error).to.have.property('key-providers');
      } finally {
        await end();
      }

      await waitUntil(async () => (await requestCredential()).status !== 503);
      const repeatedResponse = await requestCredential();
      // This was the second use of the proof, which counts only when the request succeeds.
      expect(repeatedResponse.status, repeatedResponse.text).to.equal(400);
      const tokenResponse = await wallet.redeem(code);
      expect(tokenResponse.status, tokenResponse.text).to.equal(200);
      const indexAfter = statusIndex(await issueCredential(token, 'acme'));
      expect(indexAfter).to.not.equal(indexBefore);
      await waitUntil(async () => (await health()).body.status === 'ok');
    });
  }

  it('delays a wallet by its timeout once, and not again for a stored result', async () => {
    await expectWorking();
    const wallet = new RawWallet(service, 'acme');
    const code = await wallet.code((await offer(token)).uri);
    proxy.setMode('hang');
    proxy.takeCalls();
    expectRetryAfter(await wallet.redeem(code));
    proxy.setMode('pass');
    proxy.cutConnections();
    expect(proxy.takeCalls().filter((call) => call.includes('/sign/'))).to.have.length(1);
  });

  it('calls no backend for a request that cannot be signed, and consumes nothing of it', async () => {
    await expectWorking();
    const backend = await Backend.start();
    const { uri } = await post(token, '/issuer/offer', {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
      credentialClaims: { card: { type: 'webhook', webhook: { url: `${backend.url}/claims` } } },
    });
    backend.on('/claims', (reply) => reply.end(JSON.stringify({ card: { name: 'Ada' } })));
    const wallet = new RawWallet(service, 'acme');
    const accessToken = await wallet.accessToken(uri);
    const proof = keyProof(newKey(), wallet.issuer, await wallet.nonce());
    const body = { credential_configuration_id: 'card', proofs: { jwt: [proof] } };
    proxy.setMode('cut');
    proxy.cutConnections();
    // The circuit breaker opens after some failures.
    const otherWallet = new RawWallet(service, 'acme');
    const code = await otherWallet.code((await offer(token)).uri);
    for (let i = 0; i < 5; i++) expectRetryAfter(await otherWallet.redeem(code));
    expectRetryAfter(await wallet.request(accessToken, 'card', { body }));
    expect(backend.callsTo('/claims')).to.have.length(0);
    proxy.setMode('pass');
    await waitUntil(async () => (await otherWallet.redeem(code)).status === 200);
    const credentialResponse = await wallet.request(accessToken, 'card', { body });
    expect(credentialResponse.status, credentialResponse.text).to.equal(200);
    expect(backend.callsTo('/claims')).to.have.length(1);
    await backend.close();
  });

  it('continues with a new login when its token is revoked', async () => {
    await expectWorking();
    const wallet = new RawWallet(service, 'acme');
    const code = await wallet.code((await offer(token)).uri);
    const { body } = await vault.call('LIST', 'auth/token/accessors');
    for (const accessor of (body['data'] as { keys: string[] }).keys) {
      const tokenLookup = await vault.call('POST', 'auth/token/lookup-accessor', { accessor });
      const { policies } = tokenLookup.body['data'] as { policies: string[] };
      if (policies.includes('vidimus')) await vault.call('POST', 'auth/token/revoke-accessor', { accessor });
    }
    const tokenResponse = await wallet.redeem(code);
    expect(tokenResponse.status, tokenResponse.text).to.equal(200);
  });

  it('does not slow down the tenants of other providers', async () => {
    await expectWorking();
    const measureRequests = async () => {
      const durations: number[] = [];
      for (let i = 0; i < 20; i++) {
        const startedAt = performance.now();
        await issueCredential(otherToken, 'other');
        durations.push(performance.now() - startedAt);
      }
      return durations.sort((one, other) => one - other);
    };
    const idleTimes = await measureRequests();
    proxy.mode = 'hang';
    let isStopped = false;
    const load = Promise.all(
      Array.from({ length: 16 }, async () => {
        while (!isStopped) {
          const wallet = new RawWallet(service, 'acme');
          await wallet.redeem(await wallet.code((await offer(token)).uri));
        }
      }),
    );
    // The first calls wait for their timeout; later ones are rejected immediately.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const loadedTimes = await measureRequests();
    isStopped = true;
    await load;
    proxy.mode = 'pass';
    proxy.cutConnections();
    const [p50, p99] = [10, 19].map((index) => [idleTimes[index], loadedTimes[index]]);
    const timingText = [p50, p99].map((pair) => pair?.map((time) => time?.toFixed(1)).join(' → ')).join(', ');
    // The load takes half of the machine; the test only checks that other tenants do not wait for the provider.
    expect(loadedTimes[10], `milliseconds, p50 and p99: ${timingText}`).to.be.lessThan(400);
  });
});

const SLOW_MS = 300;

describeWithOpenBao('Vault with wrong or slow answers, and wallets that depend on it', (binary) => {
  let vault: OpenBao;
  let front: OpenBaoProxy;
  let service: TestService;
  let token: string;
  before(async () => {
    vault = await startOpenBao(binary);
    front = await startOpenBaoProxy(vault.address);
    const vaultProvider = { ...(await vault.settings({ address: front.address })), type: 'vault' };
    const providers = { local: { type: 'local' }, house: vaultProvider };
    service = await startTestService({ KMS_CONFIG: JSON.stringify({ providers, tenants: { acme: 'house' } }) });
    ({ token } = await createTenant(service, 'acme'));
    await post('/issuer/config', { display: [{ name: 'Acme', locale: 'en' }], batchSize: 10, refreshTokenSeconds: 86_400 });
    await post('/issuer/credentials', {
      id: 'card',
      config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
      vct: 'urn:card:1',
      claims: { name: 'Ada' },
      statusManagement: true,
    });
    const answer = await prepareRequest(new RawWallet(service, 'acme'), 1);
    expect((await answer()).status).to.equal(200);
  });
  beforeEach(() => front.play(() => undefined));
  after(async () => {
    await service?.close();
    await front?.end();
    await vault?.stop();
  });

  const post = async (path: string, json: object) => {
    const answer = await service.call('POST', path, { token, json });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const offer = async (): Promise<string> =>
    (await post('/issuer/offer', { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] })).uri;
  /** Prepares a repeatable request for this many credentials with the same proofs. */
  const prepareRequest = async (wallet: RawWallet, count: number): Promise<() => Promise<Answer>> => {
    const accessToken = await wallet.accessToken(await offer());
    const nonce = await wallet.nonce();
    const jwt = Array.from({ length: count }, () => keyProof(newKey(), wallet.issuer, nonce));
    const body = { credential_configuration_id: 'card', proofs: { jwt } };
    return () => wallet.request(accessToken, 'card', { body });
  };
  const statusIndices = (answer: Answer): number[] =>
    answer.body.credentials.map(({ credential }: { credential: string }) => {
      const [, payload = ''] = credential.split('.');
      return JSON.parse(Buffer.from(payload, 'base64url').toString()).status.status_list.idx;
    });
  const isSignature = ({ path }: ProxiedCall) => path.startsWith('transit/sign/');

  /** Forwards a call and changes the results of the response. */
  const changeResults =
    (change: (results: { signature: string }[]) => object[]) =>
    async (call: ProxiedCall): Promise<CannedResponse | undefined> => {
      if (!isSignature(call)) return undefined;
      const answer = await fetch(`${vault.address}/v1/${call.path}`, {
        method: 'POST',
        headers: { 'x-vault-token': String(call.headers['x-vault-token']) },
        body: call.body,
      });
      const body = (await answer.json()) as { data: { batch_results: { signature: string }[] } };
      return { status: 200, body: { ...body, data: { batch_results: change(body.data.batch_results) } } };
    };
  const otherSignature = `vault:v1:${Buffer.alloc(64, 1).toString('base64url')}`;
  const wrongResponses: Record<string, (results: { signature: string }[]) => object[]> = {
    'another signature': (results) => results.map(() => ({ signature: otherSignature })),
    'the signatures of one call in another order': (results) => results.toReversed(),
    'one signature for all texts': (results) => results.map(() => ({ ...results[0] })),
    'one wrong signature among others': (results) => [...results.slice(0, -1), { signature: otherSignature }],
    'one signature too many': (results) => [...results, { signature: otherSignature }],
    'one signature too few': (results) => results.slice(1),
  };
  for (const [description, change] of Object.entries(wrongResponses)) {
    it(`returns ${description}: no wallet receives it, and no code or nonce is consumed`, async () => {
      const requestCredential = await prepareRequest(new RawWallet(service, 'acme'), 3);
      front.play(changeResults(change));
      const rejection = await requestCredential();
      expect(rejection.status, rejection.text).to.equal(503);
      expect(rejection.text).to.not.match(/vault|house|acme\./i);
      front.play(() => undefined);
      await waitUntil(async () => (await requestCredential()).status !== 503);
      expect((await requestCredential()).status).to.equal(400);
    });
  }

  it('returns wrong signatures for access tokens: the code is not consumed', async () => {
    const wallet = new RawWallet(service, 'acme');
    const code = await wallet.code(await offer());
    front.play(changeResults((results) => results.map(() => ({ signature: otherSignature }))));
    expect((await wallet.redeem(code)).status).to.equal(503);
    front.play(() => undefined);
    await waitUntil(async () => (await wallet.redeem(code)).status === 200);
  });

  describe('while it is slow', () => {
    beforeEach(() =>
      front.play(async (call) => {
        if (isSignature(call)) await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
        return undefined;
      }),
    );

    it('a code creates one grant for any number of simultaneous requests', async () => {
      const wallet = new RawWallet(service, 'acme');
      const code = await wallet.code(await offer());
      const answers = await Promise.all(Array.from({ length: 20 }, () => wallet.redeem(code)));
      expect(new Set(answers.map(({ status, body }) => [status, body.refresh_token].join(' '))).size).to.equal(1);
      expect(answers[0]?.status).to.equal(200);
    });

    it('a proof creates credentials once, and each has its own status list entry', async () => {
      const durations: number[] = [];
      for (const requestCredential of await Promise.all(
        Array.from({ length: 4 }, () => prepareRequest(new RawWallet(service, 'acme'), 3)),
      )) {
        const answers = await Promise.all(Array.from({ length: 8 }, requestCredential));
        const successes = answers.filter(({ status }) => status === 200);
        expect(successes.length).to.equal(1);
        durations.push(...successes.flatMap(statusIndices));
      }
      expect(new Set(durations).size).to.equal(durations.length);
    });

    it('a refresh token has one successor for any number of simultaneous requests', async () => {
      const wallet = new RawWallet(service, 'acme');
      const firstTokens = await wallet.redeem(await wallet.code(await offer()));
      expect(firstTokens.status, firstTokens.text).to.equal(200);
      const refresh = firstTokens.body.refresh_token as string;
      const answers = await Promise.all(Array.from({ length: 10 }, () => wallet.refresh(refresh)));
      const nextTokens = answers.filter(({ status }) => status === 200).map(({ body }) => body.refresh_token);
      expect(new Set(nextTokens).size).to.equal(1);
    });
  });
});
