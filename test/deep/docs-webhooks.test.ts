import type { ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import { expect } from 'chai';
import { signatureHeaders } from '../../domain/webhooks/sign-webhook.ts';
import { freePort } from '../demo/process.ts';
import { blocksOf, expectNamed, readPage, startScript } from '../support/docs-page.ts';
import { created } from '../support/populated.ts';
import { decode } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const PAGE = readPage('webhooks.md');
const VERIFIER = new URL('../../docs/examples/verify-webhook.mjs', import.meta.url).href;

describe('the page about webhooks', () => {
  let service: TestService;
  let tenant: { id: string; token: string };
  let port: number;
  let backend: ChildProcess | undefined;

  before(async () => {
    port = await freePort(createServer);
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
  });
  after(async () => {
    backend?.kill();
    await service.close();
  });

  const [begin, configuration, rotation, off] = PAGE.requests;
  const send = async (request = begin) => {
    const { method, path, text } = request as NonNullable<typeof request>;
    const json = JSON.parse(text.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`));
    const answer = await service.call(method, path, { token: tenant.token, json });
    expect(answer.status, `${path}: ${answer.text}`).to.equal(method === 'POST' ? 201 : 200);
    return answer.body;
  };
  /** The backend as it stands on the page, which knows these secrets. */
  const start = async (...secrets: string[]) => {
    backend?.kill();
    port = await freePort(createServer);
    const [code = ''] = blocksOf(PAGE, 'js');
    expect(code.split('\n')).to.have.length.lessThan(41);
    const here = code.replace("'./verify-webhook.mjs'", JSON.stringify(VERIFIER));
    backend = await startScript(here, port, { WEBHOOK_SECRETS: secrets.join(' ') });
    await send(configuration);
  };
  const isIssued = async () => {
    const offer = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['badge'],
    };
    const wallet = new RawWallet(service, tenant.id);
    const { uri } = await created(service, tenant.token, '/issuer/offer', offer);
    const answer = await wallet.request(await wallet.accessToken(uri), 'badge');
    if (answer.status !== 200) expect(answer.body.error, answer.text).to.equal('credential_request_denied');
    else expect(JSON.stringify(decode(answer.body.credentials[0].credential).payload)).to.include('Ada');
    return answer.status === 200;
  };

  it('can be followed: its backend takes what the service signed, with either secret of a rotation', async () => {
    const { secret: first } = await send(begin);
    await start(first);
    expect(await isIssued()).to.equal(true);
    const { secret: second } = await send(rotation);
    expect(await isIssued(), 'a backend that knows the former one').to.equal(true);
    await start(second);
    expect(await isIssued(), 'one that knows the new one').to.equal(true);
    await start(first, second);
    await send(begin);
    expect(await isIssued(), 'one that was told neither').to.equal(false);
    await send(off);
    expect(await isIssued(), 'without a signature').to.equal(false);
  });

  it('answers a delivery that comes again as before, and a forged one not at all', async () => {
    const key = Buffer.alloc(32, 7);
    await start(`whsec_${key.toString('base64')}`);
    const post = async (body: string, headers: Readonly<Record<string, string>>) => {
      const answer = await fetch(`http://127.0.0.1:${port}/claims`, { method: 'POST', body, headers });
      return [answer.status, await answer.text()];
    };
    const signed = (id: string, configuration: string) => {
      const body = JSON.stringify({ credential_configuration_id: configuration });
      return [body, signatureHeaders(id, body, [key], new Date())] as const;
    };
    const first = await post(...signed('one', 'badge'));
    expect(first).to.deep.equal([200, '{"badge":{"name":"Ada"}}']);
    expect(await post(...signed('one', 'other'))).to.deep.equal(first);
    expect(await post(...signed('two', 'other'))).to.deep.equal([200, '{"other":{"name":"Ada"}}']);
    const [, headers] = signed('three', 'badge');
    expect(await post('{}', headers)).to.deep.equal([401, '']);
  });

  it('names all webhooks and all headers', async () => {
    const { webhooks } = (await service.call('GET', '/openapi.json')).body;
    for (const name of Object.keys(webhooks)) {
      const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
      expect(PAGE.text, name).to.match(new RegExp(`^\\| ${words} \\|`, 'm'));
    }
    const members = ['claimsWebhook', 'notificationWebhook', 'notifyWebhook', 'webhook', 'callbackUrl'];
    expectNamed(PAGE, [...members, 'webhook-id', 'webhook-timestamp', 'webhook-signature']);
  });
});
