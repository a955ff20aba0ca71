import { expect } from 'chai';
import { QUERY } from '../support/present.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const INSIDE = 'https://10.0.0.1/hook';
const CARD = {
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
};
const OFFER = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };

/** What can never be called is refused where it is written, and not once a wallet has answered. */
describe('addresses of webhooks that may not be called', () => {
  let service: TestService;
  let tenant: { id: string; token: string };

  before(async () => {
    service = await startTestService({ OUTBOUND_ALLOW: 'backend.internal' });
    tenant = await createTenant(service, 'acme');
    await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    for (const [path, body] of [
      ['/issuer/credentials', { ...CARD, id: 'card' }],
      ['/verifier/config', { id: 'ask', dcql_query: QUERY }],
    ] as const) {
      const answer = await call('POST', path, body);
      expect(answer.status, answer.text).to.equal(201);
    }
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  const expectRefused = (answer: Answer, ...paths: string[]) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).to.deep.equal(paths);
    expect(answer.body.detail).to.include('OUTBOUND_ALLOW');
  };
  const offer = (more: object) => call('POST', '/issuer/offer', { ...OFFER, ...more });
  const source = (url: string) => ({ credentialClaims: { card: { type: 'webhook', webhook: { url } } } });

  it('are refused in a credential configuration, each by its path, and nothing is stored', async () => {
    const page = { type: 'redirect_to_web', url: 'https://shop.example', callbackUrl: 'http://shop.example' };
    const body = {
      ...CARD,
      id: 'new',
      claimsWebhook: { url: INSIDE },
      notificationWebhook: { url: 'https://localhost/hook' },
      iaeActions: [page],
    };
    const paths = ['claimsWebhook.url', 'notificationWebhook.url', 'iaeActions.0.callbackUrl'];
    expectRefused(await call('POST', '/issuer/credentials', body), ...paths);
    expect((await call('GET', '/issuer/credentials/new')).status).to.equal(404);
    const change = { claimsWebhook: { url: 'https://169.254.169.254/latest' } };
    expectRefused(await call('PATCH', '/issuer/credentials/card', change), 'claimsWebhook.url');
  });

  it('are refused in an offer', async () => {
    expectRefused(await offer(source(INSIDE)), 'credentialClaims.card.webhook.url');
    expectRefused(
      await offer({ notifyWebhook: { url: 'http://backend.example/hook' } }),
      'notifyWebhook.url',
    );
  });

  it('are refused in a presentation configuration and in a request', async () => {
    const webhook = { url: INSIDE };
    const created = await call('POST', '/verifier/config', { id: 'new', dcql_query: QUERY, webhook });
    expectRefused(created, 'webhook.url');
    expectRefused(await call('PATCH', '/verifier/config/ask', { webhook }), 'webhook.url');
    const asked = { response_type: 'uri', requestId: 'ask', webhook };
    expectRefused(await call('POST', '/verifier/offer', asked), 'webhook.url');
  });

  it('are not those of public https or of a listed host', async () => {
    for (const url of ['https://backend.example/hook', 'http://backend.internal:8080/hook']) {
      const answer = await offer(source(url));
      expect(answer.status, answer.text).to.equal(201);
    }
  });
});
