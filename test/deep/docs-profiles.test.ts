import { expect } from 'chai';
import { Authorities, pemOf } from '../demo/authorities.ts';
import { readPage, withCertificate } from '../support/docs-page.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const PAGE = readPage('profiles.md');
const PASSWORD = 'the password of the account';

describe('the page about profiles', () => {
  let service: TestService;
  let authorities: Authorities;

  before(async () => {
    service = await startTestService();
    authorities = await Authorities.start();
  });
  after(async () => {
    await service.close();
    await authorities.close();
  });

  /** What the page says, with the addresses and the certificate of this machine. */
  const here = (text: string) => {
    const { registrar, provider } = authorities;
    const list = provider.configuration()['walletProviderTrustLists'] as readonly string[];
    return JSON.parse(
      withCertificate(text, pemOf(authorities.operator))
        .replace('https://lists.example/wallet-providers.jwt', list[0] ?? '')
        .replace('https://registrar.example', registrar.url)
        .replace('https://login.registrar.example', registrar.url),
    );
  };

  it('leads to a tenant under eu that offers and asks', async () => {
    authorities.registrar.password = PASSWORD;
    let token = await service.rootToken();
    for (const { method, path, text } of PAGE.requests) {
      const answer = await service.call(method, path, { token, json: here(text) });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(201);
      if (path !== '/tenant') continue;
      const [{ clientId, secret }] = answer.body.clients;
      expect(clientId).to.equal('ministry-admin');
      token = await service.token(clientId, secret);
    }
    expect(PAGE.requests).to.have.length(6);
    const { body: tenant } = await service.call('GET', '/tenant/ministry', {
      token: await service.rootToken(),
    });
    expect(tenant.profile).to.equal('eu');
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['pid'] };
    const offered = await service.call('POST', '/issuer/offer', { token, json: offer });
    expect(offered.status, offered.text).to.equal(201);
    const asked = await service.call('POST', '/verifier/offer', {
      token,
      json: { response_type: 'uri', requestId: 'who' },
    });
    expect(asked.status, asked.text).to.equal(201);
  });
});
