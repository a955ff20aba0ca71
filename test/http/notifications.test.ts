import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const KEY = 'the-secret-key-of-the-backend';
const auth = { type: 'apiKey', config: { headerName: 'X-Backend-Key', value: KEY } };

type Issued = { readonly session: string; readonly token: string; readonly id: string; readonly wallet: RawWallet };

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
  const issue = async (id: string, more: object = {}): Promise<Issued> => {
    const offer = await call('POST', '/issuer/offer', {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: [id],
      ...more,
    });
    expect(offer.status, offer.text).to.equal(201);
    const wallet = new RawWallet(service, 'acme');
    const token = await wallet.accessToken(offer.body.uri);
    const answer = await wallet.request(token, id);
    expect(answer.status, answer.text).to.equal(200);
    return { session: offer.body.session, token, id: answer.body.notification_id, wallet };
  };
  const notify = ({ wallet, token, id }: Issued, body: object = {}, text?: string): Promise<Answer> =>
    service.call('POST', '/acme/notification', {
      headers: {
        ...wallet.authorization(token, { path: 'notification' }),
        ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(text === undefined ? { json: { notification_id: id, event: 'credential_accepted', ...body } } : { text }),
    });
  const seen = async ({ session }: Issued) => (await call('GET', `/session/${session}`)).body;

  it('are stored with the session, each event once', async () => {
    const issued = await issue('quiet');
    const first = await notify(issued);
    expect([first.status, first.text], first.text).to.deep.equal([204, '']);
    expect((await notify(issued)).status, 'told again').to.equal(204);
    expect((await notify(issued, { event: 'credential_deleted', event_description: 'gone' })).status).to.equal(204);
    expect((await notify(issued, { event: 'credential_failure', unknown: 1 })).status).to.equal(204);
    const { notifications, status } = await seen(issued);
    expect(status).to.equal('completed');
    expect(notifications.map(({ event }: { event: string }) => event)).to.deep.equal([
      'credential_accepted',
      'credential_deleted',
      'credential_failure',
    ]);
    expect(notifications[1]).to.include({ id: issued.id, credentialConfigurationId: 'quiet', eventDescription: 'gone' });
  });

  it('are sent to the webhook of the offer, otherwise to that of the configuration, once each', async () => {
    const named = await issue('told', { notifyWebhook: { url: `${backend.url}/offered`, auth } });
    await notify(named);
    await notify(named);
    expect(backend.callsTo('/configured')).to.have.length(0);
    expect(backend.callsTo('/offered')).to.have.length(1);
    const configured = await issue('told');
    await notify(configured, { event: 'credential_failure', event_description: 'no room' });
    const [told] = backend.callsTo('/configured');
    expect(told?.body).to.deep.equal({
      session: configured.session,
      notification: { id: configured.id, event: 'credential_failure', credentialConfigurationId: 'told', eventDescription: 'no room' },
    });
    expect(told?.headers['x-backend-key']).to.equal(KEY);
    const { deliveries, notifyWebhook } = await seen(named);
    expect(deliveries.at(-1)).to.include({ webhook: 'notification', result: 'delivered' });
    expect(deliveries.at(-1).id).to.equal(backend.callsTo('/offered')[0]?.headers['idempotency-key']);
    expect(notifyWebhook.url).to.equal(`${backend.url}/offered`);
    expect(JSON.stringify(notifyWebhook), 'its key is not shown').not.to.include(KEY);
  });

  it('reach the backend once with concurrent requests', async () => {
    const issued = await issue('told');
    const answers = await Promise.all(Array.from({ length: 20 }, () => notify(issued)));
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(20).fill(204));
    expect(backend.callsTo('/configured')).to.have.length(1);
    expect((await seen(issued)).notifications).to.have.length(1);
  });

  it('are delivered with any 2xx status, regardless of the answer', async () => {
    backend.on('/configured', (response) => response.writeHead(201).end('Thank you.'));
    const issued = await issue('told');
    expect((await notify(issued)).status).to.equal(204);
    const { deliveries } = await seen(issued);
    expect(deliveries.at(-1)).to.include({ webhook: 'notification', result: 'delivered' });
    backend.on('/configured', { json: {} });
  });

  it('are accepted although the backend fails, which the operator can see', async () => {
    backend.on('/configured', (response) => response.writeHead(500).end());
    const issued = await issue('told');
    expect((await notify(issued)).status).to.equal(204);
    const { deliveries, notifications, status } = await seen(issued);
    expect(deliveries.at(-1)).to.include({ webhook: 'notification', result: 'failed' });
    expect(notifications).to.have.length(1);
    expect(status).to.equal('completed');
    backend.on('/configured', { json: {} });
  });

  it('are rejected with the error of the specification', async () => {
    const [issued, other] = [await issue('quiet'), await issue('quiet')];
    const refused = async (what: string, answer: Promise<Answer>, error: string) => {
      const { status, body } = await answer;
      expect([status, body.error], what).to.deep.equal([400, error]);
    };
    const request = 'invalid_notification_request';
    await refused('an unknown id', notify(issued, { notification_id: 'unknown' }), 'invalid_notification_id');
    await refused('a foreign id', notify(issued, { notification_id: other.id }), 'invalid_notification_id');
    await refused('no id', notify(issued, { notification_id: undefined }), request);
    await refused('an id that is no text', notify(issued, { notification_id: 7 }), request);
    await refused('no event', notify(issued, { event: undefined }), request);
    await refused('an event in capitals', notify(issued, { event: 'Credential_Accepted' }), request);
    await refused('an unknown event', notify(issued, { event: 'credential_lost' }), request);
    await refused('a quote', notify(issued, { event_description: 'say "no"' }), request);
    await refused('an umlaut', notify(issued, { event_description: 'Grüße' }), request);
    await refused('no JSON', notify(issued, {}, '{'), request);
    await refused('a member twice', notify(issued, {}, '{"event":"x","event":"y"}'), request);
    const form = service.call('POST', '/acme/notification', {
      headers: issued.wallet.authorization(issued.token, { path: 'notification' }),
      form: { notification_id: issued.id, event: 'credential_accepted' },
    });
    await refused('a form', form, request);
    expect((await seen(issued)).notifications).to.deep.equal([]);
    const anonymous = await service.call('POST', '/acme/notification', { json: {} });
    expect([anonymous.status, anonymous.body.error]).to.deep.equal([401, 'invalid_token']);
  });
});
