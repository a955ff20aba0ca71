import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { GuardedHttpClient } from '../../adapters/remote/http-client.ts';
import { RemoteWebhooks } from '../../adapters/remote/webhooks.ts';
import { SystemClock } from '../../adapters/system/clock.ts';
import { Remote, RemoteError } from '../../application/ports/remote.ts';
import { WebhookError } from '../../application/ports/webhooks.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { INITIAL_WEBHOOK_SECRET, rotateWebhookSecret, writeSecret } from '../../domain/webhooks/webhook-secret.ts';

const delivery = { deliveryId: 'delivery-1', tenantId: 'acme' as TenantId, secret: INITIAL_WEBHOOK_SECRET };
const clock = new SystemClock();
const cipher = new MasterCipher({ masterSecrets: ['a master secret for the tests 0123456789'] });

async function errorOf(work: Promise<unknown>): Promise<WebhookError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof WebhookError)) throw new Error('Expected a WebhookError.');
  return error;
}

describe('RemoteWebhooks', () => {
  let server: Server;
  let base: string;
  let received: { headers: IncomingHttpHeaders; body: string } | undefined;
  let attempts = 0;
  let respond: (response: ServerResponse) => void;
  const remote = new GuardedHttpClient({ allow: ['127.0.0.1/32'] });
  const webhooks = new RemoteWebhooks({ remote, clock, cipher });

  before((done) => {
    server = createServer((request, response) => {
      attempts++;
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        received = { headers: request.headers, body: Buffer.concat(chunks).toString() };
        respond(response);
      });
    });
    server.listen(0, '127.0.0.1', () => {
      base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      done();
    });
  });

  beforeEach(() => {
    attempts = 0;
    received = undefined;
    respond = (response) => response.end('{"pid":{"given_name":"Erika"}}');
  });

  after(async () => {
    await remote.close();
    server.close();
  });

  it('posts JSON with the delivery id and the API key, and returns the answer', async () => {
    const auth = { type: 'apiKey', config: { headerName: 'X-Api-Key', value: 'top secret' } } as const;
    const answer = await webhooks.post({ url: `${base}/claims`, auth }, { session: 's1' }, delivery);
    expect(answer).to.deep.equal({ status: 200, body: { pid: { given_name: 'Erika' } } });
    expect(received?.body).to.equal('{"session":"s1"}');
    expect(received?.headers).to.include({
      'content-type': 'application/json',
      'idempotency-key': 'delivery-1',
      'x-api-key': 'top secret',
    });
  });

  it('sends the signature instead of an API key that is stored under one of its headers, and keeps all other keys', async () => {
    const withHeaderKey = (headerName: string): WebhookConfig => ({
      url: base,
      auth: { type: 'apiKey', config: { headerName, value: 'stored by an earlier release' } },
    });
    for (const name of ['Webhook-Signature', 'webhook-id', 'WEBHOOK-TIMESTAMP']) {
      await webhooks.post(withHeaderKey(name), {}, delivery);
      expect(JSON.stringify(received?.headers), name).to.not.include('earlier release');
      expect(received?.headers['webhook-id']).to.equal('delivery-1');
      expect(received?.headers['webhook-signature']).to.match(/^v1,[A-Za-z0-9+/]{43}=$/);
      const unsignedDelivery = { ...delivery, secret: { ...INITIAL_WEBHOOK_SECRET, signing: 'off' } } as const;
      await webhooks.post(withHeaderKey(name), {}, unsignedDelivery);
      expect(received?.headers[name.toLowerCase()], 'without a signature').to.equal('stored by an earlier release');
    }
    await webhooks.post(withHeaderKey('Webhook-Token'), {}, delivery);
    expect(received?.headers['webhook-token']).to.equal('stored by an earlier release');
  });

  it('signs the exact bytes that it sends, at the time of the attempt', async () => {
    const secret = rotateWebhookSecret(undefined, writeSecret(Buffer.alloc(32, 1)), {}, new Date());
    const body = { name: 'Zoë 😀', lone: '\ud800', 'a"b': '\u2028' };
    await webhooks.post({ url: base }, body, { ...delivery, secret });
    const { headers = {}, body: text = '' } = received ?? {};
    expect(JSON.parse(text)).to.deep.equal(body);
    expect(new Webhook(secret.current.secret).verify(text, headers as Record<string, string>)).to.deep.equal(body);
  });

  it('signs for a tenant without a configured secret with a key of that tenant', async () => {
    const sign = async (tenantId: string, sender = webhooks) => {
      await sender.post({ url: base }, {}, { ...delivery, tenantId: tenantId as TenantId });
      return received?.headers['webhook-signature'];
    };
    const fixed = { now: () => new Date() };
    const signedAt = fixed.now();
    fixed.now = () => signedAt;
    const [one, other] = [0, 1].map(() => new RemoteWebhooks({ remote, clock: fixed, cipher }));
    expect(await sign('acme', one), 'in each process').to.equal(await sign('acme', other));
    expect(await sign('acme', one)).to.not.equal(await sign('other', one));
  });

  it('returns no body for a response without a body', async () => {
    respond = (response) => response.writeHead(204).end();
    expect(await webhooks.post({ url: base }, {}, delivery)).to.deep.equal({ status: 204, body: undefined });
  });

  it('fails for a status other than 2xx, after one attempt', async () => {
    respond = (response) => response.writeHead(503).end('{"secret":"in the body"}');
    const error = await errorOf(webhooks.post({ url: base }, {}, delivery));
    expect(error).to.include({ reason: 'bad_status', status: 503 });
    expect(error.message).to.not.contain('in the body');
    expect(attempts).to.equal(1);
  });

  it('fails on a redirect without following it', async () => {
    respond = (response) => response.writeHead(307, { location: `${base}/other` }).end();
    expect(await errorOf(webhooks.post({ url: base }, {}, delivery))).to.include({ reason: 'bad_status' });
    expect(attempts).to.equal(1);
  });

  for (const [name, text] of Object.entries({
    'plain text': 'OK',
    'a doubled property': '{"a":1,"a":2}',
    'invalid UTF-8': Buffer.from([0x22, 0xff, 0x22]),
  })) {
    it(`fails when the response is ${name}`, async () => {
      respond = (response) => response.end(text);
      expect(await errorOf(webhooks.post({ url: base }, {}, delivery))).to.include({ reason: 'not_json' });
    });
  }

  it('accepts any 2xx response when no body is required, and parses it if it is JSON', async () => {
    const optional = { ...delivery, isAnswerOptional: true };
    for (const text of ['OK', '', '{"a":1,"a":2}', '<html>', Buffer.from([0x22, 0xff, 0x22])]) {
      respond = (response) => response.writeHead(202).end(text);
      const answer = await webhooks.post({ url: base }, {}, optional);
      expect(answer).to.deep.equal({ status: 202, body: undefined });
    }
    respond = (response) => response.end('{"redirectUri":"https://shop.example"}');
    expect((await webhooks.post({ url: base }, {}, optional)).body).to.deep.equal({ redirectUri: 'https://shop.example' });
    respond = (response) => response.writeHead(500).end('OK');
    expect(await errorOf(webhooks.post({ url: base }, {}, optional))).to.include({ reason: 'bad_status' });
  });

  it('fails on a response of more than 1 MiB', async () => {
    respond = (response) => response.end(JSON.stringify('x'.repeat(1024 * 1024)));
    expect(await errorOf(webhooks.post({ url: base }, {}, delivery))).to.include({ reason: 'too_large' });
  });

  it('fails for a blocked address', async () => {
    const closedWebhooks = new RemoteWebhooks({ remote: new GuardedHttpClient({ allow: [] }), clock, cipher });
    expect(await errorOf(closedWebhooks.post({ url: base }, {}, delivery))).to.include({ reason: 'refused_address' });
    expect(attempts).to.equal(0);
  });

  it('logs the address without the API key, the query or a body', async () => {
    const auth = { type: 'apiKey', config: { headerName: 'X-Api-Key', value: 'the-key' } } as const;
    respond = (response) => response.writeHead(500).end('the-answer');
    const error = await errorOf(webhooks.post({ url: `${base}/claims?token=the-query`, auth }, { name: 'the-body' }, delivery));
    expect(error.message).to.contain(`${base}/claims`);
    for (const secretText of ['the-key', 'the-query', 'the-body', 'the-answer']) {
      expect(error.message).to.not.contain(secretText);
    }
  });

  it('reports a timeout, an unreachable backend and a busy service with separate codes, within ten seconds and 1 MiB', async () => {
    for (const fault of ['timeout', 'unreachable', 'busy'] as const) {
      let limits: object = {};
      class FailingRemote extends Remote {
        override refuses(): boolean {
          return false;
        }
        override async request(_url: string, options: object): Promise<never> {
          limits = options;
          throw new RemoteError(fault, 'no answer');
        }
      }
      const failingWebhooks = new RemoteWebhooks({ remote: new FailingRemote(), clock, cipher });
      const error = await errorOf(failingWebhooks.post({ url: 'https://backend.example' }, {}, delivery));
      expect(error).to.include({ reason: fault });
      expect(limits).to.include({ timeoutMs: 10_000, maxBytes: 1_048_576 });
    }
  });
});

describe('WebhookConfig', () => {
  const url = 'https://backend.example/claims?x=1';
  const withHeader = (headerName: string, value = 'v') => ({ url, auth: { type: 'apiKey', config: { headerName, value } } });

  it('accepts an address with and without an API key', () => {
    for (const config of [{ url }, { url: 'http://localhost:8080/' }, withHeader('X-Api-Key'), withHeader('Authorization', 'Bearer a.b')]) {
      expect(WebhookConfig.safeParse(config).success, JSON.stringify(config)).to.equal(true);
    }
  });

  const invalidConfigs: Record<string, unknown> = {
    'an address with credentials': { url: 'https://user:pass@backend.example/' },
    'another scheme': { url: 'file:///etc/passwd' },
    'a relative address': { url: '/claims' },
    'an overlong address': { url: `https://backend.example/${'x'.repeat(2048)}` },
    'a header name with a space': withHeader('X Api'),
    'a header name with a line break': withHeader('X-Api\r\nHost'),
    'the Host header': withHeader('Host'),
    'a Content header': withHeader('Content-Length'),
    'a hop-by-hop header': withHeader('transfer-encoding'),
    'the Idempotency-Key header': withHeader('Idempotency-Key'),
    'a header of the signature': withHeader('Webhook-Signature'),
    'another Webhook header': withHeader('webhook-token'),
    'a value with a line break': withHeader('X-Api-Key', 'a\r\nb: c'),
    'a value with NUL': withHeader('X-Api-Key', 'a\0b'),
    'an empty value': withHeader('X-Api-Key', ''),
    'an unknown kind of authentication': { url, auth: { type: 'basic', config: {} } },
  };
  for (const [name, config] of Object.entries(invalidConfigs)) {
    it(`rejects ${name}`, () => {
      expect(WebhookConfig.safeParse(config).success).to.equal(false);
    });
  }
});
