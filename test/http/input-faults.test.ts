import { expect } from 'chai';
import { httpDatabases, type TestDatabase } from '../support/databases.ts';
import { claimsWebhookOffer, type PopulatedTenant, populate } from '../support/populated.ts';
import { QUERY } from '../support/present.ts';
import { type RawRequest, send } from '../support/raw-request.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const ALTERNATIVES = 'one of ownAuthorities, certificate, keyChainId, trustList';
const NOBODY = 'there is no such property';
const meant = (name: string) => `${NOBODY}; did you mean ${name}?`;

/** What administrators mistype, and what the answer says of it. */
describe('The error message of invalid input', () => {
  let service: TestService;
  let tenant: { id: string; token: string };

  before(async () => {
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
  });
  after(() => service.close());

  const call = (method: string, path: string, json: unknown) => service.call(method, path, { token: tenant.token, json });
  const faultsOf = (answer: Answer): Record<string, string> => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    return Object.fromEntries(answer.body.errors.map(({ path, message }: { path: string; message: string }) => [path, message]));
  };
  const ask = (more: object) => call('POST', '/verifier/config', { id: 'ask', dcql_query: QUERY, ...more });

  describe('for a missing required property', () => {
    const cases: [string, string, unknown, string][] = [
      ['at the top', '/issuer/config', { displai: [{ name: 'Acme' }] }, `display: is missing. Also displai: ${meant('display')}`],
      ['in a list', '/issuer/config', { display: [{ nmae: 'Acme' }] }, `display.0.name: is missing. Also display.0.nmae: ${meant('name')}`],
      [
        'where other properties are allowed',
        '/verifier/config',
        { id: 'ask', dcql_query: QUERY, transaction_data: [{ type: 'x', credentialIds: ['a'] }] },
        `transaction_data.0.credential_ids: is missing. Also transaction_data.0.credentialIds: ${meant('credential_ids')}`,
      ],
    ];
    for (const [place, path, json, detail] of cases) {
      it(`also names a misspelled property ${place} in the detail`, async () => {
        const { status, body } = await call('POST', path, json);
        expect([status, body.detail]).to.deep.equal([400, detail]);
      });
    }

    it('names the first five errors in the detail and the number of others', async () => {
      const display = Array.from({ length: 7 }, () => ({}));
      const { body } = await call('POST', '/issuer/config', { display });
      expect(body.errors).to.have.length(7);
      expect(body.detail.split('. Also ')).to.deep.equal([
        ...[0, 1, 2, 3, 4].map((index) => `display.${index}.name: is missing`),
        '2 more in errors',
      ]);
    });
  });

  describe('for several alternatives', () => {
    const anchors: [string, unknown, Record<string, string>][] = [
      ['has an unknown type', {}, { '': ALTERNATIVES }],
      ['is not an object', 'signing', { '': ALTERNATIVES }],
      ['is two of them', { keyChainId: 'signing', certificate: 'x' }, { '': ALTERNATIVES }],
      ['is misspelt', { certificte: 'x' }, { '': ALTERNATIVES, '.certificte': meant('certificate') }],
      ['is written in small letters', { trustlist: 'https://lists.example' }, { '': ALTERNATIVES, '.trustlist': meant('trustList') }],
    ];
    for (const [name, anchor, expected] of anchors) {
      it(`names them when a trust anchor ${name}`, async () => {
        const found = faultsOf(await ask({ trustAnchors: [anchor] }));
        const wanted = Object.entries(expected).map(([path, text]) => [`trustAnchors.0${path}`, text]);
        expect(found).to.deep.equal(Object.fromEntries(wanted));
      });
    }

    it('describes the error of the intended alternative', async () => {
      const anchor = { trustList: 'https://lists.example/list', signedBy: 'x' };
      const found = faultsOf(await ask({ trustAnchors: [anchor] }));
      expect(Object.keys(found)).to.deep.equal(['trustAnchors.0.signedBy']);
    });

    it('names values of numbers and enumerations', async () => {
      expect(faultsOf(await call('PUT', '/status-list-config', { bits: 3 }))).to.deep.equal({ bits: '1, 2, 4 or 8' });
      const query = { credentials: [{ ...QUERY.credentials[0], claims: [{ path: [{}] }] }] };
      expect(faultsOf(await ask({ dcql_query: query }))).to.deep.equal({
        'dcql_query.credentials.0.claims.0.path.0': 'expected string, null or number',
      });
    });

    it('names them when one property of a stored configuration is changed', async () => {
      expect((await ask({ id: 'stored' })).status).to.equal(201);
      const found = faultsOf(await call('PATCH', '/verifier/config/stored', { trustAnchors: [{}] }));
      expect(found).to.deep.equal({ 'trustAnchors.0': ALTERNATIVES });
    });
  });

  describe('for a property that does not belong to any query', () => {
    const [credential] = QUERY.credentials;
    const authority = { type: 'aki', values: ['AAAA'] };
    const inCredential = (more: object) => ({ credentials: [{ ...credential, ...more }] });
    const at = 'dcql_query.credentials.0';
    const unknown: [string, object, string, string][] = [
      ['in a credential query', inCredential({ trusted_authority: [authority] }), `${at}.trusted_authority`, meant('trusted_authorities')],
      ['as a misspelt flag', inCredential({ multipel: true }), `${at}.multipel`, meant('multiple')],
      [
        'as a misspelt long name',
        inCredential({ require_cryptographic_holder_bindng: true }),
        `${at}.require_cryptographic_holder_bindng`,
        meant('require_cryptographic_holder_binding'),
      ],
      ['in meta', inCredential({ meta: { ...credential?.meta, vct_value: ['urn:x'] } }), `${at}.meta.vct_value`, meant('vct_values')],
      [
        'in the meta of another format',
        inCredential({ meta: { ...credential?.meta, doctype_value: 'org.iso.18013.5.1.mDL' } }),
        `${at}.meta.doctype_value`,
        NOBODY,
      ],
      ['in a claims query', inCredential({ claims: [{ path: ['name'], value: ['Ada'] }] }), `${at}.claims.0.value`, meant('values')],
      [
        'in a trusted authority',
        inCredential({ trusted_authorities: [{ ...authority, kind: 'x' }] }),
        `${at}.trusted_authorities.0.kind`,
        NOBODY,
      ],
      [
        'in a credential set',
        { ...QUERY, credential_sets: [{ options: [[credential?.id]], require: false }] },
        'dcql_query.credential_sets.0.require',
        meant('required'),
      ],
      ['in the query', { ...QUERY, credential_set: [] }, 'dcql_query.credential_set', meant('credential_sets')],
    ];
    for (const [name, dcql_query, path, message] of unknown) {
      it(`names it ${name}`, async () => {
        expect(faultsOf(await ask({ id: 'misspelt', dcql_query }))).to.deep.equal({ [path]: message });
      });
    }

    it('names it in a change of a stored configuration, which stays unchanged', async () => {
      expect((await ask({ id: 'kept' })).status).to.equal(201);
      const [, changed, path, message] = unknown[0] ?? [];
      const answer = await call('PATCH', '/verifier/config/kept', { dcql_query: changed });
      expect(faultsOf(answer)).to.deep.equal({ [String(path)]: message });
      const { body } = await service.call('GET', '/verifier/config/kept', { token: tenant.token });
      expect(body.dcql_query).to.deep.equal(QUERY);
    });
  });

  describe('for a misspelled required property', () => {
    const needed: [string, string, unknown, Record<string, string>][] = [
      ['of a client', '/client', { clientID: 'reg', roles: ['issuance:offer'] }, { clientId: '', clientID: meant('clientId') }],
      ['of a client under another name', '/client', { id: 'reg', roles: ['issuance:offer'] }, { clientId: '', id: NOBODY }],
      [
        'of a presentation request',
        '/verifier/offer',
        { response_type: 'uri', requestID: 'ask' },
        { requestId: '', requestID: meant('requestId') },
      ],
      [
        'of a claim',
        '/verifier/config',
        { id: 'ask', dcql_query: { credentials: [{ ...QUERY.credentials[0], claims: [{ pth: ['name'] }] }] } },
        { 'dcql_query.credentials.0.claims.0.path': '', 'dcql_query.credentials.0.claims.0.pth': meant('path') },
      ],
      [
        'of an alternative',
        '/trust-list',
        { entities: [{ type: 'internal', issuerKeyChain: 'a', info: { name: 'A' } }] },
        { 'entities.0.issuerKeyChainId': '', 'entities.0.issuerKeyChain': meant('issuerKeyChainId') },
      ],
    ];
    for (const [name, path, body, expected] of needed) {
      it(`names both errors ${name}`, async () => {
        const found = faultsOf(await call('POST', path, body));
        expect(Object.keys(found).sort()).to.include.members(Object.keys(expected));
        for (const [member, text] of Object.entries(expected)) expect(found[member]).to.include(text);
      });
    }
  });

  it('for a missing value and for a value that is not a number', async () => {
    expect(faultsOf(await call('POST', '/client', {}))).to.deep.equal({ clientId: 'is missing', roles: 'is missing' });
    const query = await service.call('GET', '/session?limit=many', { token: tenant.token });
    expect(query.body.errors).to.deep.equal([{ path: 'query.limit', message: 'is not a number' }]);
  });

  describe('for an unreadable body', () => {
    let root: string;
    before(async () => {
      root = await service.rootToken();
    });
    const stored = async () => (await service.call('GET', '/tenant/acme', { token: root })).text;
    const send = (body: Uint8Array | string, type = 'application/json') =>
      fetch(`${service.address}/tenant/acme`, {
        method: 'PATCH',
        headers: { Authorization: `Bearer ${root}`, 'Content-Type': type },
        body: typeof body === 'string' ? body : Buffer.from(body),
      });
    const detail = async (answer: Response) => [answer.status, ((await answer.json()) as { detail: string }).detail];

    it('names the position of the JSON error without repeating the content', async () => {
      expect(await detail(await send('{\n  "name": "x",\n}'))).to.deep.equal([400, 'the body is not JSON (line 3, column 1)']);
      expect((await detail(await send('{"name": a secret}')))[1]).to.equal('the body is not JSON');
      expect(await detail(await send('{"name": "x"'))).to.deep.equal([400, 'the body is not JSON (line 1, column 13)']);
      expect(await detail(await send('{"name": "'))).to.deep.equal([400, 'the body is not JSON (line 1, column 11)']);
      expect((await detail(await send('{"__proto__": "x"}')))[1]).to.equal(
        'the body has a property called "__proto__", which is not allowed (line 1, column 2)',
      );
    });

    it('rejects encodings other than UTF-8, which would change names', async () => {
      const latin = Buffer.from('{"description":"M\u00fcller"}', 'latin1');
      const before = await stored();
      expect(await detail(await send(latin))).to.deep.equal([400, 'the body is not UTF-8']);
      expect(await detail(await send(latin, 'application/json; charset=ISO-8859-1'))).to.deep.equal([415, 'send the body in UTF-8']);
      expect(await stored()).to.equal(before);
      const named = await send(Buffer.from('{"description":"M\u00fcller"}'), 'application/json;charset="UTF-8"');
      expect(named.status).to.equal(200);
      const form = await service.call('POST', '/acme/token', {
        text: 'grant_type=%ff',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      });
      expect([form.status, form.body.error]).to.deep.equal([400, 'invalid_request']);
    });
  });
});

const encode = (text: string, encoding: 'base64' | 'base64url') => Buffer.from(text).toString(encoding);

for (const kind of httpDatabases()) {
  describe(`NUL characters, which no database can store, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let world: PopulatedTenant;
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

    const answer = async (method: string, path: string, more: Partial<RawRequest> = {}, token = world.token) => {
      const headers = { authorization: `Bearer ${token}`, ...more.headers };
      const { status, text } = await send(service.address, { method, path, ...more, headers });
      const body = JSON.parse(text);
      return [status, body.code ?? body.error];
    };
    const json = (body: string) => ({ headers: { 'content-type': 'application/json' }, body });
    const form = (body: string) => ({ headers: { 'content-type': 'application/x-www-form-urlencoded' }, body });

    it('are rejected in ids', async () => {
      for (const path of ['/client/%00', '/session/a%00', '/key-chain/%00', '/certs/%00', '/issuer/credentials/%00']) {
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

    it('are rejected in queries and cursors', async () => {
      const cursor = encode('1.\0', 'base64url');
      expect(await answer('GET', `/session?cursor=${cursor}`)).to.deep.equal([400, 'invalid_input']);
      expect(await answer('GET', '/session?cursor=%00')).to.deep.equal([400, 'invalid_input']);
      expect(await answer('GET', '/certs?keyId=%00')).to.deep.equal([400, 'invalid_input']);
    });

    it('are rejected anywhere in bodies, like unpaired surrogates', async () => {
      for (const text of ['"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"\\udc00\\ud800"', '["\\u0000"]', '{"\\u0000":1}']) {
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

    it('are accepted as an escaped text that does not decode to the character', async () => {
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

    it('are rejected in forms and credentials', async () => {
      const response = `/acme/response/${world.artefacts.requestId}`;
      for (const body of ['error=%00', 'state=%00&error=access_denied', 'error_description=%00&error=x']) {
        expect(await answer('POST', response, form(body)), body).to.deep.equal([400, 'invalid_request']);
      }
      const grant = form('grant_type=client_credentials');
      for (const pair of ['\0:x', 'x:\0', '%00:x']) {
        const authorization = `Basic ${encode(pair, 'base64')}`;
        const refused = await answer('POST', '/oauth2/token', { ...grant, headers: { ...grant.headers, authorization } });
        expect(refused, pair).to.deep.equal([401, 'invalid_client']);
      }
    });
  });
}
