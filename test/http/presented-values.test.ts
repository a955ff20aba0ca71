import { expect } from 'chai';
import type { Role } from '../../domain/clients/role.ts';
import { Backend } from '../support/backend.ts';
import { Issuer } from '../support/interactive-issuer.ts';
import type { Held } from '../support/present.ts';

describe('What was presented before an issuance', () => {
  let issuer: Issuer;
  let held: Held;
  let elsewhere: Backend;
  const PATCH = { claimsWebhook: { url: '' } };

  before(async () => {
    issuer = await Issuer.open();
    held = await issuer.hold();
    elsewhere = await Backend.start();
    PATCH.claimsWebhook.url = `${elsewhere.url}/claims`;
    elsewhere.on('/claims', { json: { badge: { role: 'visitor' } } });
  });
  after(async () => {
    await issuer.close();
    await elsewhere.close();
  });
  beforeEach(() => elsewhere.forget());

  const tokenWith = async (...roles: Role[]): Promise<string> => {
    const clientId = `acme-${roles.join('-').replaceAll(':', '-')}`;
    const secret = 'a-secret-of-a-client-0123';
    const json = { clientId, roles, secret };
    const made = await issuer.service.call('POST', '/client', { token: issuer.token, json });
    expect(made.status, made.text).to.equal(201);
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

  it('is not sent to a backend that an offer names without a role for presentations', async () => {
    const offered = await offerTo(await tokenWith('issuance:offer'), 'badge');
    if (offered.status === 201) {
      const wallet = issuer.wallet();
      const answer = await wallet.begin(offered.body.uri, { scope: 'badge' });
      const code = wallet.issuedCode(await wallet.present(wallet.asksPresentation(answer), held));
      const { body } = await wallet.redeemCode(code, { redirect_uri: '' });
      await wallet.request(body.access_token, 'badge');
    }
    const told = elsewhere.at('/claims').map(({ body }) => body.credentials);
    expect(JSON.stringify(told)).not.to.include('Ada');
    expect([offered.status, offered.body.code], offered.text).to.deep.equal([403, 'forbidden']);
  });

  it('is not sent elsewhere by a client that manages issuance alone', async () => {
    const token = await tokenWith('issuance:manage');
    const changed = await issuer.service.call('PATCH', '/issuer/credentials/badge', { token, json: PATCH });
    expect([changed.status, changed.body.code], changed.text).to.deep.equal([403, 'forbidden']);
  });
});
