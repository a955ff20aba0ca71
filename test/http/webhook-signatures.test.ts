import { expect } from 'chai';
import { Log } from '../../application/ports/log.ts';
import type { TenantRepositories } from '../../application/ports/repositories.ts';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { BackendCall } from '../support/backend.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { Issuer } from '../support/interactive-issuer.ts';
import { ask, type Held, present } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import {
  bentCalls,
  isSignedWith,
  rotateWebhookSecret,
  signaturesOf,
  switchSigning,
} from '../support/signed-calls.ts';
import { createTenant } from '../support/test-service.ts';

for (const kind of databases()) {
  describe(`Calls of backends, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let issuer: Issuer;
    let held: Held;
    let foreign: string;
    const logged: unknown[] = [];
    const told: string[] = [];

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      issuer = await Issuer.open({ DATABASE_URL: database.url });
      keepLog();
      held = await issuer.hold();
      const url = (path: string) => `${issuer.backend.url}/${path}`;
      await issuer.check('told', { webhook: { url: url('presented') } });
      await issuer.badge('friend', [{ type: 'openid4vp_presentation', presentationConfigId: 'told' }]);
      const page = { type: 'redirect_to_web', url: url('page?visit={auth_session}') };
      await issuer.badge('guest', [{ ...page, callbackUrl: url('confirm') }]);
      foreign = await rotate(await createTenant(issuer.service, 'other'));
    });
    after(async () => {
      await issuer?.close();
      await database?.drop();
    });
    beforeEach(() => {
      issuer.backend.forget();
      issuer.backend.on('/presented', { json: {} });
    });

    /** Everything that anybody logs, whatever its level. */
    const keepLog = () => {
      const log = issuer.service.service.container.get(Log);
      for (const level of ['debug', 'info', 'warn', 'error'] as const) {
        (log as unknown as Record<string, unknown>)[level] = (...what: unknown[]) =>
          logged.push(what.map(legible));
      }
    };
    const legible = (value: unknown) => (value instanceof Error ? `${value.stack} ${value.cause}` : value);
    const rotate = async ({ token }: { readonly token: string } = issuer, json: object = {}) => {
      const secret = await rotateWebhookSecret({ service: issuer.service, token }, json);
      told.push(secret);
      return secret;
    };
    const offer = async (id: string, more: object = {}) => {
      const json = {
        ...{ response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id] },
        ...more,
      };
      const made = await issuer.service.call('POST', '/issuer/offer', { token: issuer.token, json });
      expect(made.status, made.text).to.equal(201);
      const wallet = new RawWallet(issuer.service, issuer.id);
      const token = await wallet.accessToken(made.body.uri);
      return { wallet, token, issued: await wallet.request(token, id) };
    };
    const claims = (path: string) => ({
      credentialClaims: { card: { type: 'webhook', webhook: { url: `${issuer.backend.url}/${path}` } } },
    });
    const only = (path: string): BackendCall => {
      const calls = issuer.backend.at(path);
      expect(calls, path).to.have.length(1);
      return calls[0] as BackendCall;
    };
    const claimsCall = async () => {
      issuer.backend.forget();
      issuer.backend.on('/of-offer', { json: { card: { name: 'Ada' } } });
      const { issued } = await offer('card', claims('of-offer'));
      expect(issued.status, issued.text).to.equal(200);
      return only('/of-offer');
    };

    /** Has the service make each kind of call. */
    const CALLS: Record<string, () => Promise<BackendCall>> = {
      'the claims webhook': claimsCall,
      async 'the claims webhook that defers'() {
        issuer.backend.on('/later', { json: { deferred: true, interval: 5 } });
        const { issued } = await offer('card', claims('later'));
        expect(issued.status, issued.text).to.equal(202);
        return only('/later');
      },
      async 'the claims webhook that fails'() {
        issuer.backend.on('/down', (response) => response.writeHead(503).end());
        const { issued } = await offer('card', claims('down'));
        expect(issued.status, issued.text).to.equal(400);
        return only('/down');
      },
      async 'the notification webhook'() {
        const notifyWebhook = { url: `${issuer.backend.url}/notified` };
        const { wallet, token, issued } = await offer('card', { notifyWebhook });
        const answer = await issuer.service.call('POST', `/${issuer.id}/notification`, {
          headers: wallet.authorization(token, { path: 'notification' }),
          json: { notification_id: issued.body.notification_id, event: 'credential_accepted' },
        });
        expect(answer.status, answer.text).to.equal(204);
        return only('/notified');
      },
      async 'the presentation webhook'() {
        const asked = await ask(issuer.service, issuer.token, 'told');
        expect((await present(issuer.service, asked, held)).status).to.equal(200);
        return only('/presented');
      },
      async 'the presentation webhook of a refused response'() {
        const asked = await ask(issuer.service, issuer.token, 'told');
        const bad = { ...held, holder: (await issuer.hold()).holder };
        expect((await present(issuer.service, asked, bad)).status).to.equal(400);
        return only('/presented');
      },
      async 'the presentation webhook before an issuance'() {
        const wallet = issuer.wallet();
        const { uri } = await issuer.offer('friend');
        const asked = wallet.asksPresentation(await wallet.begin(uri, { scope: 'friend' }));
        wallet.issuedCode(await wallet.present(asked, held));
        return only('/presented');
      },
      async 'the presentation webhook of a refused response before an issuance'() {
        const wallet = issuer.wallet();
        const { uri } = await issuer.offer('friend');
        const asked = wallet.asksPresentation(await wallet.begin(uri, { scope: 'friend' }));
        const answer = await wallet.present(asked, { ...held, holder: (await issuer.hold()).holder });
        expect(answer.body.error).to.equal('access_denied');
        return only('/presented');
      },
      async 'the question whether a web step is done'() {
        const wallet = issuer.wallet();
        const { uri } = await issuer.offer('guest');
        const asked = wallet.asksWeb(await wallet.begin(uri, { scope: 'guest' }));
        const { back } = await wallet.visit(asked);
        wallet.issuedCode(await wallet.resume(back));
        return only('/confirm');
      },
    };

    it('are signed from the beginning, though nobody was told a secret', async () => {
      const before = await issuer.service.call('GET', '/webhook-secret', { token: issuer.token });
      expect(before.body).to.deep.equal({ signing: 'v1', createdAt: null, former: [] });
      const call = await claimsCall();
      expect(signaturesOf(call)).to.equal(1);
      expect(isSignedWith(foreign, call)).to.equal(false);
      const secret = await rotate();
      expect(isSignedWith(secret, call), 'what was sent before is not vouched for').to.equal(false);
      const next = await claimsCall();
      expect([signaturesOf(next), isSignedWith(secret, next)], 'nobody knew the former').to.deep.equal([
        1,
        true,
      ]);
    });

    for (const [name, make] of Object.entries(CALLS)) {
      it(`bear a signature: ${name}`, async () => {
        const secret = await rotate(issuer, { overlapSeconds: 0 });
        const call = await make();
        expect(isSignedWith(secret, call)).to.equal(true);
        expect(isSignedWith(foreign, call), 'of another tenant').to.equal(false);
        for (const bent of bentCalls(call))
          expect(isSignedWith(secret, bent), JSON.stringify(bent)).to.equal(false);
        expect(call.headers['webhook-id']).to.equal(call.headers['idempotency-key']);
        expect(Number(call.headers['webhook-timestamp'])).to.be.closeTo(Date.now() / 1000, 5);
      });
    }

    it('bear a signature of each secret during the overlap, and of the new one afterwards', async () => {
      const first = await rotate(issuer, { overlapSeconds: 0 });
      const second = await rotate(issuer, { overlapSeconds: 2 });
      const third = await rotate(issuer, { overlapSeconds: 604_800 });
      const during = await claimsCall();
      expect([first, second, third].map((secret) => isSignedWith(secret, during))).to.deep.equal([
        true,
        true,
        true,
      ]);
      const { body } = await issuer.service.call('GET', '/webhook-secret', { token: issuer.token });
      expect(body.former).to.have.length(2);
      const left = body.former.map(
        ({ signsUntil }: { signsUntil: string }) => Date.parse(signsUntil) - Date.now(),
      );
      expect(left[0]).to.be.closeTo(604_800_000, 5_000);
      expect(left[1]).to.be.within(-1_000, 2_000);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, left[1]) + 50));
      const after = await claimsCall();
      expect([first, second, third].map((secret) => isSignedWith(secret, after))).to.deep.equal([
        false,
        true,
        true,
      ]);
      const shown = await issuer.service.call('GET', '/webhook-secret', { token: issuer.token });
      expect(shown.body.former).to.have.length(1);
      const fourth = await rotate(issuer, { overlapSeconds: 0 });
      const last = await claimsCall();
      expect([second, third, fourth].map((secret) => isSignedWith(secret, last))).to.deep.equal([
        false,
        false,
        true,
      ]);
      expect(signaturesOf(last)).to.equal(1);
    });

    it('bear none of the three headers where that is configured, and nowhere else', async () => {
      const secret = await rotate();
      expect((await switchSigning(issuer, 'off')).body.signing).to.equal('off');
      const { headers } = await claimsCall();
      expect(Object.keys(headers).filter((name) => name.startsWith('webhook-'))).to.deep.equal([]);
      expect(headers['idempotency-key'], 'the delivery has its name').to.be.a('string');
      await switchSigning(issuer, 'v1');
      expect(isSignedWith(secret, await claimsCall())).to.equal(true);
    });

    it('keep the key that a webhook asks for, in every header but those of the signature', async () => {
      const refused = await issuer.service.call('POST', '/verifier/config', {
        token: issuer.token,
        json: {
          id: 'own',
          webhook: {
            url: issuer.backend.url,
            auth: { type: 'apiKey', config: { headerName: 'Webhook-Signature', value: 'mine' } },
          },
        },
      });
      expect(refused.status).to.equal(400);
      expect(refused.body.errors.map(({ path }: { path: string }) => path)).to.include(
        'webhook.auth.config.headerName',
      );
    });

    it('go on for a configuration of an earlier release with such a header, until it is changed', async () => {
      const store = issuer.service.service.container.get(Store);
      const config = { headerName: 'Webhook-Token', value: 'key-of-an-earlier-release' };
      const webhook = { url: `${issuer.backend.url}/presented`, auth: { type: 'apiKey', config } } as const;
      await issuer.check('earlier', { webhook: { url: webhook.url } });
      const write = async (own: TenantRepositories) => {
        const stored = await own.presentationConfigurations.get('earlier');
        await own.presentationConfigurations.put({ ...stored, webhook });
      };
      await store.forTenant(issuer.id as TenantId, write, { by: 'system' });
      const path = '/verifier/config/earlier';
      const shown = await issuer.service.call('GET', path, { token: issuer.token });
      expect(shown.body.webhook.auth.config).to.deep.equal({ ...config, value: '***' });
      const secret = await rotate(issuer, { overlapSeconds: 0 });
      const asked = await ask(issuer.service, issuer.token, 'earlier');
      expect((await present(issuer.service, asked, held)).status).to.equal(200);
      const call = only('/presented');
      expect(call.headers['webhook-token']).to.equal(config.value);
      expect(isSignedWith(secret, call)).to.equal(true);
      const change = (json: object) => issuer.service.call('PATCH', path, { token: issuer.token, json });
      const refused = await change({ lifeTime: 600 });
      expect([refused.status, refused.body.errors[0].path]).to.deep.equal([
        400,
        'webhook.auth.config.headerName',
      ]);
      const other = { ...webhook.auth, config: { ...config, headerName: 'X-Token' } };
      const changed = await change({ lifeTime: 600, webhook: { ...webhook, auth: other } });
      expect(changed.status, changed.text).to.equal(200);
    });

    it('leave the secret nowhere: no answer, log or audit entry has it', async () => {
      const seen = await Promise.all(
        ['/webhook-secret', '/audit-log?limit=500', '/session?limit=100', '/issuer/credentials'].map((path) =>
          issuer.service.call('GET', path, { token: issuer.token }),
        ),
      );
      const bad = { overlapSeconds: 'a while', secret: told[0] };
      const json = bad;
      seen.push(await issuer.service.call('POST', '/webhook-secret/rotate', { token: issuer.token, json }));
      expect(seen.at(-1)?.status).to.equal(400);
      const texts = [...seen.map(({ text }) => text), JSON.stringify(logged)];
      expect(told.length).to.be.greaterThan(10);
      expect(logged.length, 'something was logged').to.be.greaterThan(0);
      for (const secret of told) {
        for (const text of texts) expect(text).to.not.include(secret.slice('whsec_'.length));
      }
    });
  });
}
