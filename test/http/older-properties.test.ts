import { expect } from 'chai';
import { Clock } from '../../application/ports/clock.ts';
import { Store } from '../../application/ports/store.ts';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

type Json = Readonly<Record<string, unknown>>;

describe('A PATCH of a resource with a property that only an earlier release accepted', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: object) =>
    service.call(method, path, { token, ...(json && { json }) });
  /** Changes a stored document past all rules, as an earlier release could have written it. */
  const age = async (
    kind: 'credentialConfigurations' | 'presentationConfigurations',
    id: string,
    change: Json,
  ) => {
    const store = service.service.container.get(Store);
    await store.forTenant(
      'acme' as TenantId,
      async (own) => {
        const stored = await own[kind].get(id);
        const now = service.service.container.get(Clock).now();
        await own[kind].put({ ...stored, ...change, updatedAt: now } as never);
      },
      { by: SYSTEM },
    );
  };
  const credential = async (change: Json, written: Json = {}) => {
    const json = {
      ...{ id: 'card', vct: 'urn:card:1', claims: { name: 'Ada' } },
      config: { format: 'dc+sd-jwt', scope: 'card', display: [{ name: 'Card', locale: 'en' }] },
      ...written,
    };
    expect((await call('POST', '/issuer/credentials', json)).status).to.equal(201);
    await age('credentialConfigurations', 'card', change);
  };
  const request = async (change: Json) => {
    const query = {
      id: 'a',
      format: 'dc+sd-jwt',
      meta: { vct_values: ['urn:a'] },
      claims: [{ id: 'x', path: ['x'] }],
    };
    const json = { id: 'q', dcql_query: { credentials: [query] } };
    expect((await call('POST', '/verifier/config', json)).status).to.equal(201);
    await age('presentationConfigurations', 'q', change);
  };
  const patched = async (path: string, json: object, warned: RegExp) => {
    const answer = await call('PATCH', path, json);
    expect(answer.status, answer.text).to.equal(200);
    const members = answer.body.warnings.map(({ member }: { member: string }) => member);
    expect(
      members.filter((member: string) => warned.test(member)),
      members.join(),
    ).to.have.length.above(0);
    return answer.body;
  };
  const refused = async (path: string, json: object, member: string) => {
    const answer = await call('PATCH', path, json);
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.body.errors.map((error: { path: string }) => error.path).join()).to.include(member);
  };
  const CARD = '/issuer/credentials/card';
  const QUERY = '/verifier/config/q';

  it('changes a credential configuration, keeps the property and warns about it', async () => {
    await credential({ vct: 'urn:karte:ä' });
    const body = await patched(CARD, { description: 'Changed' }, /^vct$/);
    expect([body.description, body.vct]).to.deep.equal(['Changed', 'urn:karte:ä']);
    await refused(CARD, { vct: 'urn:andere:ä' }, 'vct');
  });

  it('changes a credential configuration whose webhook may not be called any more', async () => {
    await credential({ claimsWebhook: { url: 'http://10.1.2.3/claims' } });
    expect((await call('PATCH', CARD, { lifeTime: 3600 })).status).to.equal(200);
    await refused(CARD, { claimsWebhook: { url: 'http://10.1.2.3/other' } }, 'claimsWebhook.url');
  });

  it('changes a credential configuration with a webhook header that later became reserved', async () => {
    const config = { headerName: 'webhook-key', value: 'the-key-of-the-webhook' };
    await credential({ claimsWebhook: { url: 'https://a.example', auth: { type: 'apiKey', config } } });
    await patched(CARD, { lifeTime: 3600 }, /^claimsWebhook\.auth\.config\.headerName$/);
  });

  it('is validated for a rule between two properties when it contains one of them', async () => {
    await credential({ oneActiveSet: true, statusManagement: false });
    await patched(CARD, { description: 'Changed' }, /^oneActiveSet$/);
    await refused(CARD, { statusManagement: false }, 'oneActiveSet');
    await refused(CARD, { followWalletStatus: true }, 'followWalletStatus');
    expect((await call('PATCH', CARD, { statusManagement: true })).status).to.equal(200);
  });

  it('is validated for the type metadata when it changes the disclosure frame', async () => {
    const vct = { claims: [{ path: ['name'], sd: 'always' }] };
    await credential({ vct });
    await patched(CARD, { description: 'Changed' }, /^vct\./);
    await refused(CARD, { disclosureFrame: { _sd: [] } }, 'vct.claims.0.sd');
    expect((await call('PATCH', CARD, { disclosureFrame: { _sd: ['name'] } })).status).to.equal(200);
  });

  it('resets a property to its default with null', async () => {
    await credential({ vct: 'urn:karte:ä', lifeTime: 3600, keyBinding: true });
    const body = await patched(CARD, { lifeTime: null, keyBinding: null }, /^vct$/);
    expect([body.lifeTime ?? null, body.keyBinding]).to.deep.equal([null, true]);
    await refused(CARD, { config: null }, 'config');
    await refused(CARD, { other: 1 }, 'other');
  });

  it('changes a presentation configuration, keeps the property and warns about it', async () => {
    await request({ redirectUri: 'custom:/done' });
    const body = await patched(QUERY, { lifeTime: 60 }, /^redirectUri$/);
    expect([body.lifeTime, body.redirectUri]).to.deep.equal([60, 'custom:/done']);
    await refused(QUERY, { redirectUri: 'other:/done' }, 'redirectUri');
  });

  it('changes a presentation configuration whose query or anchors became invalid, but not these', async () => {
    const dcql_query = {
      credentials: [
        { id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:a'] }, claims: [{ path: [0] }] },
      ],
    };
    await request({ dcql_query, trustAnchors: [{ keyChainId: 'gone' }] });
    await patched(QUERY, { description: 'Changed' }, /^dcql_query\./);
    await refused(QUERY, { dcql_query }, 'dcql_query.credentials.0.claims.0.path.0');
    await refused(QUERY, { trustAnchors: [{ keyChainId: 'gone' }] }, 'trustAnchors.0.keyChainId');
  });

  it('is validated for transaction data against an unchanged query', async () => {
    await request({ transaction_data: [{ type: 't', credential_ids: ['gone'] }] });
    await patched(QUERY, { description: 'Changed' }, /^transaction_data\./);
    await refused(
      QUERY,
      { transaction_data: [{ type: 't', credential_ids: ['missing'] }] },
      'transaction_data.0',
    );
  });

  it('signs a trust list anew whose scheme is not complete any more', async () => {
    const type = 'http://uri.etsi.org/19602/LoTEType/EUPIDProvidersList';
    const json = { id: 'list', entities: [] };
    expect((await call('POST', '/trust-list', json)).status).to.equal(201);
    const store = service.service.container.get(Store);
    await store.forTenant(
      'acme' as TenantId,
      async ({ trustLists }) => {
        const list = await trustLists.get('list');
        const data = { LoTE: { ListAndSchemeInformation: { LoTEType: type } } };
        const older = { ...list, data, sequenceNumber: list.sequenceNumber + 1 };
        await trustLists.replace(older as never, { id: 'version', list });
      },
      { by: SYSTEM, alone: true },
    );
    const answer = await call('PATCH', '/trust-list/list', { description: 'Changed' });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.description).to.equal('Changed');
    const data = { LoTE: { ListAndSchemeInformation: { LoTEType: type } } };
    await refused('/trust-list/list', { data }, 'data.LoTE.ListAndSchemeInformation.SchemeName');
  });
});
