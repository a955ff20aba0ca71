import { expect } from 'chai';
import { Issuer } from '../support/interactive-issuer.ts';
import type { InteractiveWallet } from '../support/interactive-wallet.ts';
import type { Held } from '../support/present.ts';
import { CLIENT_ID } from '../support/raw-wallet.ts';
import type { Answer } from '../support/test-service.ts';

const ACTION = { type: 'openid4vp_presentation', presentationConfigId: 'check' };

describe('Actions that a configuration asks for since', () => {
  let issuer: Issuer;
  let held: Held;
  let count = 0;

  before(async () => {
    issuer = await Issuer.open();
    held = await issuer.hold();
  });
  after(() => issuer.close());

  const ask = async (id: string, iaeActions: readonly object[]) => {
    const change = { token: issuer.token, json: { iaeActions } };
    const changed = await issuer.service.call('PATCH', `/issuer/credentials/${id}`, change);
    expect(changed.status, changed.text).to.equal(200);
  };
  const fresh = async (iaeActions: readonly object[] = []) => {
    const id = `changing-${++count}`;
    await issuer.badge(id, iaeActions);
    return id;
  };
  const expectDenied = ({ status, body }: Answer) =>
    expect([status, body.error]).to.deep.equal([400, 'credential_request_denied']);
  const granted = async (id: string): Promise<{ wallet: InteractiveWallet; tokens: Answer }> => {
    const wallet = issuer.wallet();
    const code = wallet.issuedCode(await wallet.begin((await issuer.offer(id)).uri, { scope: id }));
    const tokens = await wallet.redeemCode(code);
    expect(tokens.status, tokens.text).to.equal(200);
    return { wallet, tokens };
  };

  it('hold for access tokens and refresh tokens that there were before', async () => {
    const id = await fresh();
    const { wallet, tokens } = await granted(id);
    expect((await wallet.request(tokens.body.access_token, id)).status).to.equal(200);
    await ask(id, [ACTION]);
    expectDenied(await wallet.request(tokens.body.access_token, id));
    const refreshed = await wallet.refresh(tokens.body.refresh_token, { client_id: CLIENT_ID });
    expectDenied(await wallet.request(refreshed.body.access_token, id));
  });

  it('hold for offers with a pre-authorized code', async () => {
    const id = await fresh();
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id] };
    const { body } = await issuer.service.call('POST', '/issuer/offer', { token: issuer.token, json });
    await ask(id, [ACTION]);
    const wallet = issuer.wallet();
    expectDenied(await wallet.request(await wallet.accessToken(body.uri), id));
  });

  it('hold for requests that were pushed', async () => {
    const id = await fresh();
    const wallet = issuer.wallet();
    const requestUri = await wallet.push((await issuer.offer(id)).uri, id);
    await ask(id, [ACTION]);
    const { body } = await wallet.redeemCode(await wallet.authorize(requestUri));
    expectDenied(await wallet.request(body.access_token, id));
  });

  it('are enough when they were done, and asked for in other words', async () => {
    const id = await fresh([ACTION]);
    const wallet = issuer.wallet();
    const asked = wallet.asksPresentation(await wallet.begin((await issuer.offer(id)).uri, { scope: id }));
    const { body } = await wallet.redeemCode(wallet.issuedCode(await wallet.present(asked, held)));
    await ask(id, [{ ...ACTION, label: 'Show your card, please' }]);
    expect((await wallet.request(body.access_token, id)).status).to.equal(200);
    const refreshed = await wallet.refresh(body.refresh_token, { client_id: CLIENT_ID });
    expect((await wallet.request(refreshed.body.access_token, id)).status).to.equal(200);
    await issuer.check('other-check');
    await ask(id, [ACTION, { ...ACTION, presentationConfigId: 'other-check' }]);
    expectDenied(await wallet.request(refreshed.body.access_token, id));
  });
});
