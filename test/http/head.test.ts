import { expect } from 'chai';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('HEAD', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  it('is answered where GET only reads what is public', async () => {
    for (const path of ['/', '/health', '/acme/.well-known/jwks.json']) {
      const answer = await service.call('HEAD', path);
      expect([answer.status, answer.text], path).to.deep.equal([200, '']);
    }
  });

  it('never does what GET does', async () => {
    const made = await service.call('POST', '/client', {
      token,
      json: { clientId: 'once', roles: ['issuance:offer'] },
    });
    expect(made.status, made.text).to.equal(201);
    for (const path of ['/client/once/secret', '/session', '/client/once', '/acme/credential-offer/x']) {
      const answer = await service.call('HEAD', path, { token });
      expect(answer.status, path).to.equal(405);
      expect(answer.headers.get('allow'), path).to.match(/^GET/);
    }
    const secret = await service.call('GET', '/client/once/secret', { token });
    expect(secret.status, secret.text).to.equal(200);
    expect((await service.call('GET', '/client/once/secret', { token })).status).to.not.equal(200);
  });
});
