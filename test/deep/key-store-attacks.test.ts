import { expect } from 'chai';
import { describeWithOpenBao, type OpenBao, startOpenBao, until } from '../support/openbao.ts';
import { type FrontCall, type OpenBaoFront, openBaoFront, type Played } from '../support/openbao-front.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const SLOW_MS = 300;

describeWithOpenBao('A Vault that lies or is slow, and wallets that use it', (binary) => {
  let vault: OpenBao;
  let front: OpenBaoFront;
  let service: TestService;
  let token: string;
  before(async () => {
    vault = await startOpenBao(binary);
    front = await openBaoFront(vault.address);
    const house = { ...(await vault.settings({ address: front.address })), type: 'vault' };
    const providers = { local: { type: 'local' }, house };
    service = await startTestService({
      KMS_CONFIG: JSON.stringify({ providers, tenants: { acme: 'house' } }),
    });
    ({ token } = await createTenant(service, 'acme'));
    await post('/issuer/config', {
      display: [{ name: 'Acme', locale: 'en' }],
      batchSize: 10,
      refreshTokenSeconds: 86_400,
    });
    await post('/issuer/credentials', {
      id: 'card',
      config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
      vct: 'urn:card:1',
      claims: { name: 'Ada' },
      statusManagement: true,
    });
    const answer = await asking(new RawWallet(service, 'acme'), 1);
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
    (
      await post('/issuer/offer', {
        response_type: 'uri',
        flow: 'pre_authorized_code',
        credentialConfigurationIds: ['card'],
      })
    ).uri;
  /** A request for so many credentials, each time with the same proofs. */
  const asking = async (wallet: RawWallet, count: number): Promise<() => Promise<Answer>> => {
    const accessToken = await wallet.accessToken(await offer());
    const nonce = await wallet.nonce();
    const jwt = Array.from({ length: count }, () => keyProof(newKey(), wallet.issuer, nonce));
    const body = { credential_configuration_id: 'card', proofs: { jwt } };
    return () => wallet.request(accessToken, 'card', { body });
  };
  const indicesOf = (answer: Answer): number[] =>
    answer.body.credentials.map(({ credential }: { credential: string }) => {
      const [, payload = ''] = credential.split('.');
      return JSON.parse(Buffer.from(payload, 'base64url').toString()).status.status_list.idx;
    });
  const isSignature = ({ path }: FrontCall) => path.startsWith('transit/sign/');

  /** What the real server answers to a call, with its results changed. */
  const changed =
    (change: (results: { signature: string }[]) => object[]) =>
    async (call: FrontCall): Promise<Played | undefined> => {
      if (!isSignature(call)) return undefined;
      const answer = await fetch(`${vault.address}/v1/${call.path}`, {
        method: 'POST',
        headers: { 'x-vault-token': String(call.headers['x-vault-token']) },
        body: call.body,
      });
      const body = (await answer.json()) as { data: { batch_results: { signature: string }[] } };
      return { status: 200, body: { ...body, data: { batch_results: change(body.data.batch_results) } } };
    };
  const other = `vault:v1:${Buffer.alloc(64, 1).toString('base64url')}`;
  const lies: Record<string, (results: { signature: string }[]) => object[]> = {
    'another signature': (results) => results.map(() => ({ signature: other })),
    'the signatures of one call in another order': (results) => results.toReversed(),
    'one signature for all texts': (results) => results.map(() => ({ ...results[0] })),
    'one wrong signature among others': (results) => [...results.slice(0, -1), { signature: other }],
    'one signature too many': (results) => [...results, { signature: other }],
    'one signature too few': (results) => results.slice(1),
  };
  for (const [what, change] of Object.entries(lies)) {
    it(`gives out ${what}: no wallet gets it, and nothing is spent`, async () => {
      const ask = await asking(new RawWallet(service, 'acme'), 3);
      front.play(changed(change));
      const refused = await ask();
      expect(refused.status, refused.text).to.equal(503);
      expect(refused.text).to.not.match(/vault|house|acme\./i);
      front.play(() => undefined);
      await until(async () => (await ask()).status !== 503);
      expect((await ask()).status).to.equal(400);
    });
  }

  it('gives out wrong signatures for access tokens: the code is not spent', async () => {
    const wallet = new RawWallet(service, 'acme');
    const code = await wallet.code(await offer());
    front.play(changed((results) => results.map(() => ({ signature: other }))));
    expect((await wallet.redeem(code)).status).to.equal(503);
    front.play(() => undefined);
    await until(async () => (await wallet.redeem(code)).status === 200);
  });

  describe('while it is slow', () => {
    beforeEach(() =>
      front.play(async (call) => {
        if (isSignature(call)) await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
        return undefined;
      }),
    );

    it('a code is one grant, however often it comes at the same time', async () => {
      const wallet = new RawWallet(service, 'acme');
      const code = await wallet.code(await offer());
      const answers = await Promise.all(Array.from({ length: 20 }, () => wallet.redeem(code)));
      expect(
        new Set(answers.map(({ status, body }) => [status, body.refresh_token].join(' '))).size,
      ).to.equal(1);
      expect(answers[0]?.status).to.equal(200);
    });

    it('a proof brings credentials once, and no two of them share an entry of a status list', async () => {
      const all: number[] = [];
      for (const ask of await Promise.all(
        Array.from({ length: 4 }, () => asking(new RawWallet(service, 'acme'), 3)),
      )) {
        const answers = await Promise.all(Array.from({ length: 8 }, ask));
        const good = answers.filter(({ status }) => status === 200);
        expect(good.length).to.equal(1);
        all.push(...good.flatMap(indicesOf));
      }
      expect(new Set(all).size).to.equal(all.length);
    });

    it('a refresh token has one successor, however often it comes at the same time', async () => {
      const wallet = new RawWallet(service, 'acme');
      const first = await wallet.redeem(await wallet.code(await offer()));
      expect(first.status, first.text).to.equal(200);
      const refresh = first.body.refresh_token as string;
      const answers = await Promise.all(Array.from({ length: 10 }, () => wallet.refresh(refresh)));
      const next = answers.filter(({ status }) => status === 200).map(({ body }) => body.refresh_token);
      expect(new Set(next).size).to.equal(1);
    });
  });
});
