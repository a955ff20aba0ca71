import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const KEY = 'the-secret-key-of-the-backend';
const auth = { type: 'apiKey', config: { headerName: 'X-Backend-Key', value: KEY } };

type IssuedCredential = { readonly session: string; readonly token: string; readonly id: string; readonly wallet: RawWallet };

describe('Notifications of wallets', () => {
  let service: TestService;
  let backend: Backend;
  let tenant: { id: string; token: string };

  before(async () => {
    backend = await Backend.start();
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    const base = { config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] }, vct: 'urn:card:1', claims: { name: 'Ada' } };
    await write({ ...base, id: 'quiet' });
    await write({ ...base, id: 'told', notificationWebhook: { url: `${backend.url}/configured`, auth } });
  });
  after(async () => {
    await service.close();
    await backend.close();
  });
  beforeEach(() => backend.clearCalls());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  const write = async (json: object) => {
    const answer = await call('POST', '/issuer/credentials', json);
    expect(answer.status, answer.text).to.equal(201);
  };
  const issue = async (id: string, overrides: object = {}): Promise<IssuedCredential> => {
    const offer = await call('POST', '/issuer/offer', {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: [id],
      ...overrides,
    });
    expect(offer.status, offer.text).to.equal(201);
    const wallet = new RawWallet(service, 'acme');
    const token = await wallet.accessToken(offer.body.uri);
    const answer = await wallet.request(token, id);
    expect(answer.status, answer.text).to.equal(200);
    return { session: offer.body.session, token, id: answer.body.notification_id, wallet };
  };
  const notify = ({ wallet, token, id }: IssuedCredential, body: object = {}, text?: string): Promise<Answer> =>
    service.call('POST', '/acme/notification', {
      headers: {
        ...wallet.authorization(token, { path: 'notification' }),
        ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(text === undefined ? { json: { notification_id: id, event: 'credential_accepted', ...body } } : { text }),
    });
  const readSession = async ({ session }: IssuedCredential) => (await call('GET', `/session/${session}`)).body;

  it('are stored with the session, each event once', async () => {
    const credential = await issue('quiet');
    const first = await notify(credential);
    expect([first.status, first.text], first.text).to.deep.equal([204, '']);
    expect((await notify(credential)).status, 'a repeated notification').to.equal(204);
    expect((await notify(credential, { event: 'credential_deleted', event_description: 'gone' })).status).to.equal(204);
    expect((await notify(credential, { event: 'credential_failure', unknown: 1 })).status).to.equal(204);
    const { notifications, status } = await readSession(credential);
    expect(status).to.equal('completed');
    expect(notifications.map(({ event }: { event: string }) => event)).to.deep.equal([
      'credential_accepted',
      'credential_deleted',
      'credential_failure',
    ]);
    expect(notifications[1]).to.include({ id: credential.id, credentialConfigurationId: 'quiet', eventDescription: 'gone' });
  });

  it('are sent to the webhook of the offer, otherwise to that of the configuration, once each', async () => {
    const credentialOfNamed = await issue('told', { notifyWebhook: { url: `${backend.url}/offered`, auth } });
    await notify(credentialOfNamed);
    await notify(credentialOfNamed);
    expect(backend.callsTo('/configured')).to.have.length(0);
    expect(backend.callsTo('/offered')).to.have.length(1);
    const credentialOfConfigured = await issue('told');
    await notify(credentialOfConfigured, { event: 'credential_failure', event_description: 'no room' });
    const [webhookCall] = backend.callsTo('/configured');
    expect(webhookCall?.body).to.deep.equal({
      session: credentialOfConfigured.session,
      notification: {
        id: credentialOfConfigured.id,
        event: 'credential_failure',
        credentialConfigurationId: 'told',
        eventDescription: 'no room',
      },
    });
    expect(webhookCall?.headers['x-backend-key']).to.equal(KEY);
    const { deliveries, notifyWebhook } = await readSession(credentialOfNamed);
    expect(deliveries.at(-1)).to.include({ webhook: 'notification', result: 'delivered' });
    expect(deliveries.at(-1).id).to.equal(backend.callsTo('/offered')[0]?.headers['idempotency-key']);
    expect(notifyWebhook.url).to.equal(`${backend.url}/offered`);
    expect(JSON.stringify(notifyWebhook), 'the key is not shown').not.to.include(KEY);
  });

  it('reach the backend once with concurrent requests', async () => {
    const credential = await issue('told');
    const responses = await Promise.all(Array.from({ length: 20 }, () => notify(credential)));
    expect(responses.map(({ status }) => status)).to.deep.equal(Array(20).fill(204));
    expect(backend.callsTo('/configured')).to.have.length(1);
    expect((await readSession(credential)).notifications).to.have.length(1);
  });

  it('are delivered with any 2xx status, regardless of the answer', async () => {
    backend.on('/configured', (response) => response.writeHead(201).end('Thank you.'));
    const credential = await issue('told');
    expect((await notify(credential)).status).to.equal(204);
    const { deliveries } = await readSession(credential);
    expect(deliveries.at(-1)).to.include({ webhook: 'notification', result: 'delivered' });
    backend.on('/configured', { json: {} });
  });

  it('are accepted although the backend fails, which the operator can see', async () => {
    backend.on('/configured', (response) => response.writeHead(500).end());
    const credential = await issue('told');
    expect((await notify(credential)).status).to.equal(204);
    const { deliveries, notifications, status } = await readSession(credential);
    expect(deliveries.at(-1)).to.include({ webhook: 'notification', result: 'failed' });
    expect(notifications).to.have.length(1);
    expect(status).to.equal('completed');
    backend.on('/configured', { json: {} });
  });

  it('are rejected with the error of the specification', async () => {
    const [credential, otherCredential] = [await issue('quiet'), await issue('quiet')];
    const expectRejected = async (description: string, answer: Promise<Answer>, error: string) => {
      const { status, body } = await answer;
      expect([status, body.error], description).to.deep.equal([400, error]);
    };
    const request = 'invalid_notification_request';
    await expectRejected('an unknown id', notify(credential, { notification_id: 'unknown' }), 'invalid_notification_id');
    await expectRejected('a foreign id', notify(credential, { notification_id: otherCredential.id }), 'invalid_notification_id');
    await expectRejected('no id', notify(credential, { notification_id: undefined }), request);
    await expectRejected('an id that is no text', notify(credential, { notification_id: 7 }), request);
    await expectRejected('no event', notify(credential, { event: undefined }), request);
    await expectRejected('an event in capitals', notify(credential, { event: 'Credential_Accepted' }), request);
    await expectRejected('an unknown event', notify(credential, { event: 'credential_lost' }), request);
    await expectRejected('a quote', notify(credential, { event_description: 'say "no"' }), request);
    await expectRejected('an umlaut', notify(credential, { event_description: 'Grüße' }), request);
    await expectRejected('no JSON', notify(credential, {}, '{'), request);
    await expectRejected('a repeated property', notify(credential, {}, '{"event":"x","event":"y"}'), request);
    const form = service.call('POST', '/acme/notification', {
      headers: credential.wallet.authorization(credential.token, { path: 'notification' }),
      form: { notification_id: credential.id, event: 'credential_accepted' },
    });
    await expectRejected('a form', form, request);
    expect((await readSession(credential)).notifications).to.deep.equal([]);
    const anonymous = await service.call('POST', '/acme/notification', { json: {} });
    expect([anonymous.status, anonymous.body.error]).to.deep.equal([401, 'invalid_token']);
  });
});
