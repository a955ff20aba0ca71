import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { Issuer } from '../support/interactive-issuer.ts';
import { issue } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
};

describe('the description of webhooks', () => {
  let service: TestService;
  let backend: Backend;
  let tenant: { id: string; token: string };
  // biome-ignore lint/suspicious/noExplicitAny: a document of many shapes
  let document: any;

  before(async () => {
    backend = await Backend.start();
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    const claimsWebhook = { url: `${backend.url}/claims` };
    const notificationWebhook = { url: `${backend.url}/notified` };
    await call('/issuer/credentials', { ...CARD, claimsWebhook, notificationWebhook });
    document = (await service.call('GET', '/openapi.json')).body;
  });
  after(async () => {
    await service.close();
    await backend.close();
  });
  beforeEach(() => backend.forget());

  const call = async (path: string, json: object) => {
    const answer = await service.call('POST', path, { token: tenant.token, json });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const operation = (name: string) => document.webhooks[name].post;
  /** What is wrong with a value by a schema of the document; undefined for nothing. */
  const fault = (value: unknown, schema: object): string | undefined => {
    const ajv = new Ajv2020({ strict: false });
    const validate = ajv.compile({ ...schema, components: document.components });
    return validate(value) ? undefined : ajv.errorsText(validate.errors);
  };
  const requestOf = (name: string) => operation(name).requestBody.content['application/json'].schema;
  const answerOf = (name: string) => operation(name).responses['2XX'].content['application/json'].schema;

  it('names all of them, with limits and header', () => {
    expect(Object.keys(document.webhooks)).to.deep.equal([
      'claims',
      'notification',
      'presentation',
      'webStep',
    ]);
    for (const name of Object.keys(document.webhooks)) {
      const { description, parameters } = operation(name);
      expect(description, name)
        .to.match(/10 seconds/)
        .and.match(/1 MiB/)
        .and.match(/never repeated/);
      expect(parameters[0], name).to.deep.include({ name: 'Idempotency-Key', in: 'header', required: true });
      const signature = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
      expect(parameters.slice(1).map((parameter: { name: string }) => parameter.name)).to.deep.equal(
        signature,
      );
      expect(
        parameters.slice(1).some(({ required }: { required?: boolean }) => required),
        name,
      ).to.equal(false);
      expect(description, name).to.match(/signed/);
    }
  });

  it('fits what the claims webhook is asked, and no more is asked', async () => {
    backend.on('/claims', { json: { card: { name: 'Ada' } } });
    await issue(service, tenant, 'card');
    const [asked] = backend.at('/claims');
    expect(fault(asked?.body, requestOf('claims'))).to.equal(undefined);
    const name = requestOf('claims').$ref.split('/').at(-1);
    const { properties } = document.components.schemas[name];
    expect(properties).to.have.all.keys('reference', ...Object.keys(asked?.body));
    expect(fault({ ...asked?.body, session: undefined }, requestOf('claims'))).to.match(/session/);
  });

  it('fits the answers of the claims webhook that are taken, and not those that are refused', () => {
    for (const good of [
      { card: { name: 'Ada' } },
      { card: { name: 'Ada' }, pass: { name: 'Ada', address: { street: 'x' } } },
      { deferred: true },
      { deferred: true, interval: 60 },
    ]) {
      expect(fault(good, answerOf('claims')), JSON.stringify(good)).to.equal(undefined);
    }
    for (const bad of [
      [{ name: 'x' }],
      { card: 'x' },
      { deferred: true, interval: 1e9 },
      { deferred: true, interval: 0 },
      'x',
    ]) {
      expect(fault(bad, answerOf('claims')), JSON.stringify(bad)).to.be.a('string');
    }
  });

  it('fits what the notification webhook is told', async () => {
    backend.on('/claims', { json: { card: { name: 'Ada' } } });
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    const { uri } = await call('/issuer/offer', offer);
    const wallet = new RawWallet(service, tenant.id);
    const token = await wallet.accessToken(uri);
    const proof = keyProof(newKey(), wallet.issuer, await wallet.nonce());
    const body = { credential_configuration_id: 'card', proofs: { jwt: [proof] } };
    const issued = await wallet.request(token, 'card', { body });
    const told = await service.call('POST', '/acme/notification', {
      headers: wallet.authorization(token, { path: 'notification' }),
      json: {
        notification_id: issued.body.notification_id,
        event: 'credential_accepted',
        event_description: 'kept',
      },
    });
    expect(told.status, told.text).to.equal(204);
    const [delivered] = backend.at('/notified');
    expect(delivered?.body.notification).to.include({
      event: 'credential_accepted',
      eventDescription: 'kept',
    });
    expect(fault(delivered?.body, requestOf('notification'))).to.equal(undefined);
  });

  it('fits what the presentation webhook and a page are told before an issuance', async () => {
    const issuer = await Issuer.open();
    const url = (path: string) => `${issuer.backend.url}/${path}`;
    await issuer.check('told', { webhook: { url: url('presented') } });
    await issuer.badge('friend', [{ type: 'openid4vp_presentation', presentationConfigId: 'told' }]);
    await issuer.badge('guest', [
      { type: 'redirect_to_web', url: url('page?visit={auth_session}'), callbackUrl: url('confirm') },
    ]);
    const held = await issuer.hold();
    const begin = async (id: string) => {
      const wallet = issuer.wallet();
      return { wallet, answer: await wallet.begin((await issuer.offer(id)).uri, { scope: id }) };
    };

    const friend = await begin('friend');
    const asked = friend.wallet.asksPresentation(friend.answer);
    const presented = { vp_token: { card: [friend.wallet.bind(asked, held)] } };
    friend.wallet.issuedCode(await friend.wallet.respond(asked, presented));
    const guest = await begin('guest');
    const { back } = await guest.wallet.visit(guest.wallet.asksWeb(guest.answer));
    guest.wallet.codeFrom(back);

    const told = issuer.backend.at('/presented')[0]?.body;
    expect(told.credentials[0]).to.have.keys(['id', 'values', 'issuer']);
    expect(fault(told, requestOf('presentation'))).to.equal(undefined);
    expect(fault(issuer.backend.at('/confirm')[0]?.body, requestOf('webStep'))).to.equal(undefined);
    await issuer.close();
  });
});
