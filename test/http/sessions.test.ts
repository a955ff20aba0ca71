import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import sinon from 'sinon';
import { maskSession } from '../../adapters/http/sessions/masked-session.ts';
import { type HeldCredential, present, Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';

describe('Sessions through HTTP', () => {
  let shop: Shop;

  before(async () => {
    shop = await Shop.open();
  });
  after(() => shop.close());

  const asAcme = (method: string, path: string, json?: unknown) => shop.call(method, path, json, shop.acme.token);
  const offer = async (): Promise<{ uri: string; session: string }> => {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    return (await asAcme('POST', '/issuer/offer', json)).body;
  };
  const client = async (clientId: string, more: object): Promise<string> => {
    const secret = 'a-secret-of-this-very-client';
    const made = await asAcme('POST', '/client', { clientId, secret, ...more });
    expect(made.status, made.text).to.equal(201);
    return shop.service.token(clientId, secret);
  };

  describe('in a list', () => {
    const ids: string[] = [];

    before(async () => {
      for (let i = 0; i < 250; i++) ids.push((await offer()).session);
    });

    const next = (link: string | null) => /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1];
    const walk = async (path: string) => {
      const pages: { id: string; createdAt: string }[][] = [];
      for (let url: string | undefined = path; url !== undefined; ) {
        const page = await asAcme('GET', url);
        expect(page.status, page.text).to.equal(200);
        pages.push(page.body);
        const link = page.headers.get('link');
        url = next(link);
        if (url !== undefined) expect(url).to.match(new RegExp(`^${shop.service.address}/session\\?`));
      }
      return pages;
    };

    it('are returned a hundred at a time, the newest first, each once, with a link to the next page', async () => {
      const pages = await walk('/session');
      expect(pages.map((page) => page.length)).to.deep.equal([100, 100, 50]);
      const all = pages.flat();
      expect(all.map(({ id }) => id)).to.have.members(ids);
      const times = all.map(({ createdAt }) => createdAt);
      expect(times).to.deep.equal(times.toSorted().reverse());
    });

    it('are returned in the requested size and order, which the link repeats', async () => {
      const pages = await walk('/session?limit=120&sort=asc');
      expect(pages.map((page) => page.length)).to.deep.equal([120, 120, 10]);
      const times = pages.flat().map(({ createdAt }) => createdAt);
      expect(times).to.deep.equal(times.toSorted());
      expect(new Set(pages.flat().map(({ id }) => id)).size).to.equal(250);
    });

    it('are neither repeated nor missed when new ones are created in the meantime', async () => {
      const first = await asAcme('GET', '/session?limit=100');
      ids.push((await offer()).session);
      const rest = await walk(next(first.headers.get('link')) ?? '');
      const seen = [...first.body, ...rest.flat()].map(({ id }: { id: string }) => id);
      expect(seen).to.have.length(250);
      expect(new Set(seen).size).to.equal(250);
    });

    it('are found by status and by time', async () => {
      const marker = new Date().toISOString();
      const { uri, session } = await offer();
      await new RawWallet(shop.service, 'acme').offer(uri);
      const list = async (query: string) => (await asAcme('GET', `/session?limit=500&${query}`)).body.map(({ id }: { id: string }) => id);
      expect(await list('status=fetched')).to.deep.equal([session]);
      expect(await list('status=active')).to.have.members(ids);
      expect(await list('status=completed')).to.deep.equal([]);
      expect(await list(`since=${marker}`)).to.deep.equal([session]);
      expect(await list(`since=${marker}&status=active`)).to.deep.equal([]);
      expect(await list(`since=${new Date(Date.now() + 60_000).toISOString()}`)).to.deep.equal([]);
    });

    const bad = ['limit=0', 'limit=501', 'limit=x', 'status=open', 'since=yesterday', 'cursor=x', 'sort=up'];
    for (const query of bad) {
      it(`are rejected with ${query}`, async () => {
        const answer = await asAcme('GET', `/session?${query}`);
        expect([answer.status, answer.body.code]).to.deep.equal([400, 'invalid_input']);
        expect(answer.body.errors[0].path).to.include(query.split('=')[0]);
      });
    }
  });

  describe('individually', () => {
    it('contain their whole request, without keys of webhooks', async () => {
      const auth = { type: 'apiKey', config: { headerName: 'X-Key', value: 'hush' } };
      const notifyWebhook = { url: `${shop.backend.url}/told`, auth };
      const credentialClaims = { card: { type: 'inline', claims: { name: 'Ada' } } };
      const json = {
        response_type: 'uri',
        flow: 'pre_authorized_code',
        credentialConfigurationIds: ['card'],
        credentialClaims,
        notifyWebhook,
      };
      const { session } = (await asAcme('POST', '/issuer/offer', json)).body;
      const { body, text } = await asAcme('GET', `/session/${session}`);
      const masked = { ...auth, config: { ...auth.config, value: '***' } };
      expect(body.credentialPayload).to.deep.equal({ ...json, notifyWebhook: { ...notifyWebhook, auth: masked } });
      expect(text).to.not.include('hush');
    });

    it('contain the properties of the API document', async () => {
      const { session, uri } = await offer();
      const { body } = await asAcme('GET', `/session/${session}`);
      expect(body).to.deep.include({ id: session, status: 'active', tenantId: 'acme', useDcApi: false, notifications: [], offerUrl: uri });
      expect(Object.keys(body.tenant)).to.deep.equal(['id', 'name', 'description', 'status', 'createdAt']);
      expect(body.tenant).to.include({ id: 'acme', name: 'Tenant acme', description: null, status: 'active' });
      for (const name of ['createdAt', 'updatedAt', 'expiresAt']) expect(new Date(body[name]).toISOString()).to.equal(body[name]);
      const asked = await shop.requestPresentation();
      const verification = await shop.session(asked.session);
      expect(verification).to.deep.include({
        status: 'fetched',
        requestId: 'check',
        requestUrl: asked.url,
        request_uri: asked.url,
        requestObject: asked.text,
        clientId: asked.payload['client_id'],
        vp_nonce: asked.payload['nonce'],
        responseUri: asked.payload['response_uri'],
        redirectUri: null,
      });
      expect(JSON.stringify(verification), 'no private key').to.not.match(/"d":/);
    });

    it('can be deleted, for the wallet as well', async () => {
      const { session, uri } = await offer();
      const asked = await shop.requestPresentation();
      expect((await asAcme('DELETE', `/session/${asked.session}`)).status, 'not by another tenant').to.equal(404);
      expect((await asAcme('DELETE', `/session/${session}`)).body).to.deep.equal({ id: session });
      for (const method of ['GET', 'DELETE']) expect((await asAcme(method, `/session/${session}`)).status).to.equal(404);
      const link = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      expect((await shop.service.call('GET', link)).status).to.equal(404);
      expect((await shop.call('DELETE', `/session/${asked.session}`)).status).to.equal(200);
      expect((await shop.service.call('GET', asked.url)).status).to.equal(404);
    });

    it('are deleted together with the revocation of their credentials, as the page and the description say', async () => {
      const wallet = new RawWallet(shop.service, 'acme');
      const [early, late] = [await offer(), await offer()];
      const code = await wallet.code(early.uri);
      const accessToken = await wallet.accessToken(late.uri);
      const asked = await shop.requestPresentation();
      for (const { session } of [early, late]) await asAcme('DELETE', `/session/${session}`);
      await shop.call('DELETE', `/session/${asked.session}`);
      const refused = await wallet.redeem(code);
      expect([refused.status, refused.body.error]).to.deep.equal([400, 'invalid_grant']);
      const request = await wallet.request(accessToken, 'card');
      expect(request.status, request.text).to.be.oneOf([400, 401]);
      const answer = { error: 'access_denied', state: asked.payload['state'] };
      expect((await shop.postResponse(asked, answer)).status).to.equal(404);
      const { paths } = (await shop.service.call('GET', '/openapi.json')).body;
      const { description } = paths['/session/{id}'].delete;
      const page = readFileSync(new URL('../../docs/reference/sessions.md', import.meta.url), 'utf8');
      for (const text of [description, page]) {
        expect(text).to.match(/404 (at its link|for the link) and for a response/);
        expect(text).to.include('`invalid_grant` for the code');
      }
      expect(page).to.include('DELETE /session/{id}').and.to.include('a rejection for an access token');
    });

    it('never change after they have ended', async () => {
      const held = await shop.issue();
      const good = await shop.requestPresentation();
      expect((await shop.present(good, held)).status).to.equal(200);
      const bad = await shop.requestPresentation();
      await shop.postResponse(bad, { error: 'access_denied', state: bad.payload['state'] });
      for (const [asked, status] of [
        [good, 'completed'],
        [bad, 'failed'],
      ] as const) {
        const before = await shop.session(asked.session);
        await shop.service.call('GET', asked.url);
        await shop.postResponse(asked, { error: 'access_denied', state: asked.payload['state'] });
        await shop.present(asked, held);
        const clock = sinon.useFakeTimers({ now: Date.now() + 3_600_000, toFake: ['Date'] });
        try {
          expect(await shop.session(asked.session)).to.deep.equal(before);
        } finally {
          clock.restore();
        }
        expect(before['status']).to.equal(status);
      }
    });

    it('expire by the clock, for reader, list and wallet alike', async () => {
      await asAcme('PUT', '/session-config', { ttlSeconds: 60 });
      const { uri, session } = await offer();
      expect((await asAcme('DELETE', '/session-config')).body.ttlSeconds).to.equal(86_400);
      const wallet = new RawWallet(shop.service, 'acme');
      const code = await wallet.code(uri);
      const { expiresAt } = (await asAcme('GET', `/session/${session}`)).body;
      const clock = sinon.useFakeTimers({ now: Date.now() + 61_000, toFake: ['Date'] });
      try {
        const { body } = await asAcme('GET', `/session/${session}`);
        expect([body.status, body.updatedAt]).to.deep.equal(['expired', expiresAt]);
        for (const status of ['active', 'fetched']) {
          const list = await asAcme('GET', `/session?status=${status}&limit=500`);
          expect(list.text, status).to.not.include(session);
        }
        const redeemed = await wallet.redeem(code);
        expect([redeemed.status, redeemed.body.error]).to.deep.equal([400, 'invalid_grant']);
      } finally {
        clock.restore();
      }
    });

    it('are seen by roles of their kind, and by restricted clients if they may use their configurations', async () => {
      const { session } = await offer();
      const see = async (token: string) => {
        const one = await shop.call('GET', `/session/${session}`, undefined, token);
        const list = await shop.call('GET', '/session?limit=500', undefined, token);
        const events = await shop.call('GET', `/session/${session}/events?token=x`, undefined, token);
        const listed = list.text.includes(session);
        return [one.status, listed, events.status];
      };
      const issuing = await client('issuing', { roles: ['issuance:offer'] });
      const presenting = await client('presenting', { roles: ['presentation:request'] });
      const restricted = await client('restricted', { roles: ['issuance:offer'], allowedIssuanceConfigs: ['card-status'] });
      const other = await client('other', { roles: ['clients:manage'] });
      expect((await shop.call('GET', `/session/${session}`, undefined, issuing)).status).to.equal(200);
      expect(await see(presenting)).to.deep.equal([404, false, 404]);
      expect(await see(restricted)).to.deep.equal([404, false, 404]);
      expect(await see(other)).to.deep.equal([403, false, 403]);
      const deletion = await shop.call('DELETE', `/session/${session}`, undefined, restricted);
      expect(deletion.status).to.equal(404);
      const json = { sessionId: session, status: 1 };
      expect((await shop.call('POST', '/session/revoke', json, restricted)).status).to.equal(404);
    });
  });
});

const PLANTED = 'Zyxwvut-Planted';
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The text of an answer, and of what is encoded in it once and twice. */
function unfolded(text: string, depth = 3): string {
  if (depth === 0) return text;
  const inner = [...text.matchAll(/[\w-]{20,}/g)].map(([part]) => Buffer.from(part, 'base64url').toString());
  return [text, ...inner.map((part) => unfolded(part, depth - 1))].join('\n');
}

describe('session without personal data', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
  });
  after(() => shop.close());

  const asAcme = (method: string, path: string, json?: unknown) => shop.call(method, path, json, shop.acme.token);
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

  it('contains none of the claims of the offer, in the session and in the list, but keeps their names', async () => {
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

  it('contains no free text about the transaction code, and no path of a webhook', async () => {
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

  it('contains none of the verified claims', async () => {
    const asked = await shop.requestPresentation('check');
    const answer = await present(shop.service, asked, held);
    expect(answer.status, answer.text).to.equal(200);
    const whole = (await shop.call('GET', `/session/${asked.session}`)).body;
    const [{ values }] = whole.credentials;
    const masked = await shop.call('GET', `/session/${asked.session}?values=masked`);
    expect(Object.keys(masked.body.credentials[0].values)).to.deep.equal(Object.keys(values));
    expect(JSON.stringify(masked.body.credentials[0].values)).not.to.match(/[a-z]":"[^•]/);
    expect(masked.body.report).to.deep.equal(whole.report);
  });

  it('is returned whole to a client whose access is recorded', async () => {
    const id = await offer();
    const shown = await asAcme('POST', `/session/${id}/show`);
    expect(shown.status, shown.text).to.equal(200);
    expect(shown.body).to.deep.equal((await asAcme('GET', `/session/${id}`)).body);
    const [entry, ...others] = await entries(id);
    expect(others).to.deep.equal([]);
    expect(entry?.actor).to.equal('acme-admin');
    expect(JSON.stringify(entry)).not.to.include(PLANTED);
  });

  it('is returned to no other tenant, and to no client restricted to other configurations', async () => {
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

  it('hides values at every place of a session', () => {
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
