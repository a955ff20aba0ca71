import { expect } from 'chai';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('the challenge endpoint', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
    await createTenant(service, 'acme');
  });
  after(() => service.close());

  it('hands out one challenge and nothing else, which nobody may keep', async () => {
    const { status, headers, body } = await service.call('POST', '/acme/challenge');
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.match(/^application\/json/);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(Object.keys(body)).to.deep.equal(['attestation_challenge']);
    expect(body.attestation_challenge).to.match(/^[A-Za-z0-9_-]{16,512}$/);
  });

  it('hands out another one each time', async () => {
    const challenges = await Promise.all(
      Array.from({ length: 5 }, async () => (await service.call('POST', '/acme/challenge')).body),
    );
    expect(new Set(challenges.map((body) => body.attestation_challenge)).size).to.equal(5);
  });

  it('does not mind what is sent to it', async () => {
    const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer nonsense' };
    expect((await service.call('POST', '/acme/challenge', { headers, text: '{' })).status).to.equal(200);
  });

  it('is for POST, at tenants that exist', async () => {
    const got = await service.call('GET', '/acme/challenge');
    expect([got.status, got.headers.get('allow')]).to.deep.equal([405, 'POST']);
    expect((await service.call('POST', '/nobody/challenge')).status).to.equal(404);
  });
});
