import { expect } from 'chai';
import { maskSession } from '../../adapters/http/sessions/masked-session.ts';
import { type Held, present, Shop } from '../support/present.ts';

const PLANTED = 'Zyxwvut-Planted';
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The text of an answer, and of what is encoded in it once and twice. */
function unfolded(text: string, depth = 3): string {
  if (depth === 0) return text;
  const inner = [...text.matchAll(/[\w-]{20,}/g)].map(([part]) => Buffer.from(part, 'base64url').toString());
  return [text, ...inner.map((part) => unfolded(part, depth - 1))].join('\n');
}

describe('a session without values of persons', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
  });
  after(() => shop.close());

  const asAcme = (method: string, path: string, json?: unknown) =>
    shop.call(method, path, json, shop.acme.token);
  const offer = async () => {
    const made = await asAcme('POST', '/issuer/offer', {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
      credentialClaims: { card: { type: 'inline', claims: { family_name: PLANTED } } },
    });
    expect(made.status, made.text).to.equal(201);
    return made.body.session as string;
  };
  const entries = async (id: string, token = shop.acme.token) => {
    const { body } = await shop.call('GET', `/audit-log?kind=session&target=${id}`, undefined, token);
    return (body as { action: string; actor: string }[]).filter(({ action }) => action === 'shown');
  };

  it('has none of the claims that were given, alone and in the list, and keeps their names', async () => {
    const id = await offer();
    expect((await asAcme('GET', `/session/${id}`)).text).to.include(PLANTED);
    for (const path of [`/session/${id}?values=masked`, '/session?values=masked&limit=5']) {
      const { status, text } = await asAcme('GET', path);
      expect(status, text).to.equal(200);
      expect(text).to.include('family_name').and.to.include('•••');
      expect(unfolded(text)).not.to.include(PLANTED);
    }
    expect((await asAcme('GET', `/session/${id}?values=other`)).status).to.equal(400);
    expect(await entries(id), 'masked, nobody is on record').to.deep.equal([]);
  });

  it('has no free text about the transaction code, and no path of a webhook', async () => {
    const made = await asAcme('POST', '/issuer/offer', {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
      tx_code: '98765432',
      tx_code_description: `sent to ${PLANTED}`,
      notifyWebhook: { url: `https://backend.example/${PLANTED}/x?of=${PLANTED}` },
    });
    expect(made.status, made.text).to.equal(201);
    const { text, body } = await asAcme('GET', `/session/${made.body.session}?values=masked`);
    expect(unfolded(text)).not.to.include(PLANTED);
    expect(text).not.to.match(/"length":\s*8/);
    expect(body.notifyWebhook.url).to.equal('https://backend.example/•••');
  });

  it('has none of the claims that were verified', async () => {
    const asked = await shop.ask('check');
    const answer = await present(shop.service, asked, held);
    expect(answer.status, answer.text).to.equal(200);
    const whole = (await shop.call('GET', `/session/${asked.session}`)).body;
    const [{ values }] = whole.credentials;
    const masked = await shop.call('GET', `/session/${asked.session}?values=masked`);
    expect(Object.keys(masked.body.credentials[0].values)).to.deep.equal(Object.keys(values));
    expect(JSON.stringify(masked.body.credentials[0].values)).not.to.match(/[a-z]":"[^•]/);
    expect(masked.body.report).to.deep.equal(whole.report);
  });

  it('is shown whole to who is on record for it', async () => {
    const id = await offer();
    const shown = await asAcme('POST', `/session/${id}/show`);
    expect(shown.status, shown.text).to.equal(200);
    expect(shown.body).to.deep.equal((await asAcme('GET', `/session/${id}`)).body);
    const [entry, ...others] = await entries(id);
    expect(others).to.deep.equal([]);
    expect(entry?.actor).to.equal('acme-admin');
    expect(JSON.stringify(entry)).not.to.include(PLANTED);
  });

  it('is shown to nobody else: not to another tenant, nor to a client that is restricted to others', async () => {
    const id = await offer();
    const unknown = await asAcme('POST', '/session/nothing/show');
    const secret = 'a-secret-of-this-very-client';
    const clients = [
      { clientId: 'restricted', roles: ['issuance:offer'], allowedIssuanceConfigs: ['another'] },
      { clientId: 'asker', roles: ['presentation:request'] },
    ];
    const tokens = [shop.token];
    for (const client of clients) {
      expect((await asAcme('POST', '/client', { ...client, secret })).status).to.equal(201);
      tokens.push(await shop.service.token(client.clientId, secret));
    }
    for (const token of tokens) {
      const { status, body } = await shop.call('POST', `/session/${id}/show`, undefined, token);
      expect([status, body.detail]).to.deep.equal([404, unknown.body.detail]);
    }
    expect(await entries(id)).to.deep.equal([]);
  });

  it('hides a value wherever a session can have one', () => {
    const words = { planted: PLANTED, list: [{ deeper: PLANTED }] };
    const query = { credentials: [{ id: 'a', claims: [{ path: ['family_name'], values: [PLANTED] }] }] };
    const webhook = { url: `https://shop.example/hook?user=${PLANTED}` };
    const data = { type: 'payment', credential_ids: ['a'], payload: words };
    const request = { nonce: 'n', dcql_query: query, transaction_data: [encoded(data)] };
    const masked = maskSession({
      id: 'id',
      notifications: [{ id: 'n', event: 'credential_failure', eventDescription: PLANTED }],
      credentials: [{ id: 'a', values: [words], authentication: { jti: PLANTED, amr: [{ a: PLANTED }] } }],
      credentialPayload: {
        requestId: 'check',
        redirectUri: `https://shop.example/?u=${PLANTED}`,
        transaction_data: [data],
        credentialClaims: { a: { type: 'inline', claims: words }, b: { type: 'webhook', webhook } },
        something: { of: { tomorrow: PLANTED } },
        webhook,
      },
      notifyWebhook: webhook,
      parsedWebhook: webhook,
      redirectUri: `https://shop.example/#${PLANTED}`,
      transaction_data: [data],
      auth_queries: { login_hint: PLANTED },
      offer: { dcql_query: query },
      externalSubject: PLANTED,
      requestObject: `${encoded({ alg: 'ES256' })}.${encoded(request)}.c2lnbmF0dXJl`,
      failure: { code: 'access_denied', message: PLANTED },
    } as never);
    const text = JSON.stringify(masked);
    expect(unfolded(text)).not.to.include(PLANTED);
    expect(text).to.include('family_name').and.to.include('"type":"payment"').and.to.include('login_hint');
    const payload = masked.requestObject?.split('.')[1] ?? '';
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString()).nonce).to.equal('n');
  });
});
