import { expect } from 'chai';
import type { ChainedWallet } from '../support/chained-wallet.ts';
import { ChainedWorld } from '../support/chained-world.ts';
import { AUTHORIZATION_REQUEST, CODE_VERIFIER, dpopProof } from '../support/raw-wallet.ts';

/** Programs on the JDK send it unless they are told otherwise. */
const JDK_ACCEPT = 'text/html, image/gif, image/jpeg, */*; q=0.2';

describe('The chained authorization server as its contract has it', () => {
  let world: ChainedWorld;
  let wallet: ChainedWallet;

  before(async () => {
    world = await ChainedWorld.start(['acme']);
    ({ wallet } = await world.openTenant('acme'));
  });
  after(() => world.close());

  const post = (path: string, json: object) =>
    world.service.call('POST', `/acme/chained-as/${path}`, {
      json,
      headers: { DPoP: dpopProof(wallet.dpopKey, `${wallet.server}/${path}`) },
    });
  const details = [{ type: 'openid_credential', credential_configuration_id: 'card' }];

  it('takes pushed requests and token requests as JSON, in which details are an array', async () => {
    const pushed = await post('par', { ...AUTHORIZATION_REQUEST, authorization_details: details });
    expect(pushed.status, pushed.text).to.equal(201);
    const code = await wallet.chainedCode(world.provider, { scope: 'card' });
    const { client_id, redirect_uri } = AUTHORIZATION_REQUEST;
    const grant = { grant_type: 'authorization_code', code, code_verifier: CODE_VERIFIER };
    const answer = await post('token', { ...grant, client_id, redirect_uri, authorization_details: details });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.authorization_details).to.have.length(1);
  });

  it('says in JSON what is wrong with such a request', async () => {
    for (const json of [
      { ...AUTHORIZATION_REQUEST, response_type: 7 },
      { ...AUTHORIZATION_REQUEST, scope: null },
    ]) {
      const { status, body } = await post('par', json);
      expect([status, typeof body.error]).to.deep.equal([400, 'string']);
    }
  });

  const bad = ['authorize?client_id=x&request_uri=y', 'authorize', 'callback?state=x&code=y', 'callback'];
  for (const path of bad) {
    it(`answers ${path} with JSON, and with a page for browsers`, async () => {
      const asked = (headers: Record<string, string>) =>
        world.service.call('GET', `/acme/chained-as/${path}`, { headers });
      for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.5', JDK_ACCEPT]) {
        const { status, headers, body } = await asked({ accept });
        expect([status, headers.get('content-type')]).to.deep.equal([400, 'application/json']);
        expect(body.error).to.equal('invalid_request');
      }
      const { status, text } = await asked({ accept: 'text/html,application/xhtml+xml' });
      expect([status, text.includes('<html')]).to.deep.equal([400, true]);
    });
  }

  it('redirects a GET by 302', async () => {
    const answer = await fetch(await wallet.begin({ scope: 'card' }), { redirect: 'manual' });
    expect(answer.status).to.equal(302);
  });
});
