import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { claimsWebhookOffer, type Populated, populate } from '../support/populated.ts';
import { type RawRequest, send } from '../support/raw-request.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const encode = (text: string, encoding: 'base64' | 'base64url') => Buffer.from(text).toString(encoding);

for (const kind of databases()) {
  describe(`NUL, which no database keeps, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let world: Populated;
    let root: string;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      world = await populate(service, 'acme');
      root = await service.rootToken();
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    const answer = async (
      method: string,
      path: string,
      more: Partial<RawRequest> = {},
      token = world.token,
    ) => {
      const headers = { authorization: `Bearer ${token}`, ...more.headers };
      const { status, text } = await send(service.address, { method, path, ...more, headers });
      const body = JSON.parse(text);
      return [status, body.code ?? body.error];
    };
    const json = (body: string) => ({ headers: { 'content-type': 'application/json' }, body });
    const form = (body: string) => ({
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body,
    });

    it('is in the name of nothing', async () => {
      for (const path of [
        '/client/%00',
        '/session/a%00',
        '/key-chain/%00',
        '/certs/%00',
        '/issuer/credentials/%00',
      ]) {
        expect(await answer('GET', path), path).to.deep.equal([404, 'not_found']);
      }
      expect(await answer('GET', '/tenant/a%00', {}, root)).to.deep.equal([404, 'not_found']);
      for (const path of ['/acme/request/%00', '/acme/credential-offer/%00', '/%00/credential-offer/x']) {
        expect(await answer('GET', path), path).to.deep.equal([404, 'invalid_request']);
      }
      for (const path of ['/acme/status-list/%00', '/%00/.well-known/jwks.json', '/acme/vct/%00']) {
        expect(await answer('GET', path), path).to.deep.equal([404, 'not_found']);
      }
    });

    it('is refused in queries and cursors', async () => {
      const cursor = encode('1.\0', 'base64url');
      expect(await answer('GET', `/session?cursor=${cursor}`)).to.deep.equal([400, 'invalid_input']);
      expect(await answer('GET', '/session?cursor=%00')).to.deep.equal([400, 'invalid_input']);
      expect(await answer('GET', '/certs?keyId=%00')).to.deep.equal([400, 'invalid_input']);
    });

    it('is refused in bodies, wherever it stands, and so is half a character', async () => {
      for (const text of [
        '"\\u0000"',
        '"a\\u0000b"',
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '["\\u0000"]',
        '{"\\u0000":1}',
      ]) {
        const bodies: [string, string, string][] = [
          ['POST', '/client', `{"clientId":"nul","roles":["clients:manage"],"description":${text}}`],
          ['PATCH', '/key-chain/acme-keys', `{"description":${text}}`],
          ['PATCH', '/issuer/credentials/acme-credential', `{"claims":{"name":${text}}}`],
          ['POST', '/certs', `{"keyId":"acme-keys","certUsageTypes":["signing"],"subjectName":${text}}`],
          ['POST', '/session/revoke', `{"sessionId":${text},"status":1}`],
        ];
        for (const [method, path, body] of bodies) {
          expect(await answer(method, path, json(body)), body).to.deep.equal([400, 'invalid_input']);
        }
      }
      const tenant = json('{"id":"nul","name":"a\\u0000b"}');
      expect(await answer('POST', '/tenant', tenant, root)).to.deep.equal([400, 'invalid_input']);
    });

    it('may be spoken of, as long as it is not meant', async () => {
      const offer = JSON.stringify(claimsWebhookOffer(world.ids.credential)).replace(
        /"type":"webhook".*$/,
        '"type":"inline","claims":{"given_name":"\\\\u0000 and \\ud83d\\ude00"}}}}',
      );
      const { status, text } = await send(service.address, {
        method: 'POST',
        path: '/issuer/offer',
        headers: { authorization: `Bearer ${world.token}`, 'content-type': 'application/json' },
        body: offer,
      });
      expect(status, text).to.equal(201);
    });

    it('is refused in forms and credentials', async () => {
      const response = `/acme/response/${world.artefacts.requestId}`;
      for (const body of ['error=%00', 'state=%00&error=access_denied', 'error_description=%00&error=x']) {
        expect(await answer('POST', response, form(body)), body).to.deep.equal([400, 'invalid_request']);
      }
      const grant = form('grant_type=client_credentials');
      for (const pair of ['\0:x', 'x:\0', '%00:x']) {
        const authorization = `Basic ${encode(pair, 'base64')}`;
        const refused = await answer('POST', '/oauth2/token', {
          ...grant,
          headers: { ...grant.headers, authorization },
        });
        expect(refused, pair).to.deep.equal([401, 'invalid_client']);
      }
    });
  });
}
